import type { EtcdClient, EtcdFound, EtcdGet, EtcdGetAll, EtcdIf, EtcdLease, EtcdPut } from 'remora/migrate';

interface Key {
  readonly key: string;
  readonly lease: string;
  readonly revision: number;
}

type Call = 'range' | 'put' | 'txn' | 'keepAlive' | 'revoke';

/** etcd in memory, as far as locks need it, with the calls of a client of etcd3. Time passes as the test says. */
export class MemoryEtcd implements EtcdClient {
  /** By age. */
  readonly keys = new Map<string, Key>();
  readonly granted: { readonly ttlSeconds: number; readonly autoKeepAlive: boolean }[] = [];
  /** Runs before the next call of this kind is applied. */
  readonly before = new Map<Call, () => void>();
  /** The next call of this kind fails: before or after the server has applied it. */
  readonly failsAt = new Map<Call, 'before' | 'after'>();
  readonly #leases = new Map<string, { readonly ttlMs: number; endsMs: number }>();
  #nowMs = 0;
  #revision = 0;
  #nextLease: bigint;

  /** `lease`: the id of the first lease. */
  constructor({ lease = 10n }: { readonly lease?: bigint } = {}) {
    this.#nextLease = lease;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    for (const [id, { endsMs }] of this.#leases) if (endsMs <= this.#nowMs) this.end(id);
  }

  /** Puts a key, as some other program does, unless a lock does. */
  put(key: string, lease = '0'): number {
    this.keys.set(key, { key, lease, revision: ++this.#revision });
    return this.#revision;
  }

  /** Ends a lease with its keys. */
  end(id: string): boolean {
    for (const { key, lease } of this.keys.values()) if (lease === id) this.keys.delete(key);
    return this.#leases.delete(id);
  }

  lease(ttlSeconds: number, { autoKeepAlive }: { readonly autoKeepAlive: boolean }): EtcdLease {
    this.granted.push({ ttlSeconds, autoKeepAlive });
    const id = String(this.#nextLease++);
    const ttlMs = ttlSeconds * 1_000;
    this.#leases.set(id, { ttlMs, endsMs: this.#nowMs + ttlMs });
    let isOver = false;
    return {
      grant: async () => id,
      put: (key) => this.#put(key, id),
      revoked: () => isOver,
      keepaliveOnce: () =>
        this.#call('keepAlive', () => {
          const lease = this.#leases.get(id);
          isOver = lease === undefined;
          if (lease === undefined) throw new Error(`Lease ${id} is expired or revoked`);
          lease.endsMs = this.#nowMs + lease.ttlMs;
        }),
      revoke: () => {
        isOver = true;
        return this.#call('revoke', () => void this.end(id));
      },
    };
  }

  get(key: string): EtcdGet {
    return { exec: () => this.#range((each) => each.key === key) };
  }

  getAll(): EtcdGetAll {
    let start = '';
    const query: EtcdGetAll = {
      prefix: (prefix) => {
        start = prefix;
        return query;
      },
      sort: () => query,
      limit: () => query,
      exec: () => this.#range((each) => each.key.startsWith(start)),
    };
    return query;
  }

  if(key: string): EtcdIf {
    let write: EtcdPut | undefined;
    const txn: EtcdIf = {
      // biome-ignore lint/suspicious/noThenProperty: etcd3 calls it so.
      then: (put) => {
        write = put;
        return txn;
      },
      commit: () =>
        this.#call('txn', () => {
          const succeeded = !this.keys.has(key);
          if (succeeded) void write?.op();
          return { succeeded, header: { revision: String(this.#revision) } };
        }),
    };
    return txn;
  }

  #put(key: string, lease: string): EtcdPut {
    const put: EtcdPut = {
      value: () => put,
      op: async () => ({ revision: this.put(key, lease) }),
      exec: () => this.#call('put', () => this.put(key, lease)),
    };
    return put;
  }

  #range(matches: (key: Key) => boolean): Promise<EtcdFound> {
    return this.#call('range', () => {
      const [oldest] = [...this.keys.values()].filter(matches);
      const found = oldest && { key: Buffer.from(oldest.key), create_revision: String(oldest.revision) };
      return { kvs: found ? [found] : [] };
    });
  }

  async #call<Result>(call: Call, apply: () => Result): Promise<Result> {
    this.before.get(call)?.();
    this.before.delete(call);
    const fails = this.failsAt.get(call);
    this.failsAt.delete(call);
    if (fails === 'before') throw new Error('14 UNAVAILABLE');
    const result = apply();
    if (fails === 'after') throw new Error('14 UNAVAILABLE');
    return result;
  }
}
