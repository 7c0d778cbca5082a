import { ServiceError } from '@remora/base';
import { type KvPage, KvPair, Listing, type TxnRequest } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Change, type Storage, snapshotOf } from '../../test/support/etcd-storage.ts';
import { REVISIONS_AHEAD } from '../backup/restore.ts';
import type { Shell } from '../shell.ts';
import { EtcdSnapshot } from './etcd-snapshot.ts';
import { type Imported, type ImportOptions, importSnapshot } from './import.ts';

const shell: Shell = {
  env: {},
  out() {},
  raw() {},
  err() {},
  shown: false,
  terminal: false,
  ask: async () => undefined,
  askSecret: async () => undefined,
  input: async () => '',
};
const ALL: ImportOptions = { prefix: Buffer.alloc(0), overwrite: false, withLeases: true };

/** 200 keys; every tenth belongs to a lease. */
const CHANGES = Array.from({ length: 200 }, (_, i): Change => {
  const change = { key: `k${1_000 + i}`, value: `v${i}` };
  return i % 10 === 9 ? { ...change, lease: 7n } : change;
});
const STORAGE: Storage = { changes: CHANGES, leases: [{ id: 7n, ttlS: 60 }] };
const ABOVE = 201 + REVISIONS_AHEAD;

/** Plain keys and leases in memory. */
class FakeCluster {
  readonly pairs = new Map<string, KvPair>();
  readonly leases = new Map<bigint, number>();
  readonly raised: number[] = [];
  revision = 1;
  /** Transactions until the process is killed. */
  patience = Number.POSITIVE_INFINITY;
  /** A lease that ends before the next transaction. */
  ending: bigint | undefined;

  put(key: string, value: string, lease = 0n): void {
    this.revision++;
    const revisions = { createRevision: this.revision, modRevision: this.revision, version: 1 };
    this.pairs.set(key, new KvPair({ key: Buffer.from(key), value: Buffer.from(value), ...revisions, lease }));
  }

  get contents(): readonly string[] {
    return this.#sorted().map(({ key, value, lease }) => `${key}=${value}${lease === 0n ? '' : ` of ${lease}`}`);
  }

  #sorted(): readonly KvPair[] {
    return [...this.pairs.values()].sort((a, b) => Buffer.compare(a.key, b.key));
  }

  readonly admin = {
    beginRestore: async (to: number) => {
      this.raised.push(to);
      this.revision = Math.max(this.revision, to);
      return { revision: this.revision };
    },
    endRestore: async () => {},
  };

  readonly client = {
    kv: {
      list: (): Listing<KvPair, KvPage> => new Listing((cursor) => this.#page(Number(cursor ?? 0))),
      range: async () => {
        const kvs = this.#sorted().slice(0, 1);
        return { kvs, more: false, count: this.pairs.size, revision: this.revision };
      },
      txn: async (request: TxnRequest) => this.#txn(request),
    },
    lease: {
      grant: async (ttl: unknown, { id = 0n }: { id?: bigint | undefined } = {}) => {
        if (this.leases.has(id)) throw new ServiceError('LEASE_EXISTS', 'it exists');
        this.leases.set(id, Number(ttl));
        return { id, ttlMs: Number(ttl) };
      },
      keepAlive: async (id: bigint) => {
        const ttlMs = this.leases.get(id);
        if (ttlMs === undefined) throw new ServiceError('LEASE_NOT_FOUND', 'it has ended');
        return ttlMs;
      },
    },
  };

  #txn({ compare = [], success = [], failure = [] }: TxnRequest) {
    if (this.patience-- <= 0) throw new Error('killed');
    if (this.ending !== undefined) this.leases.delete(this.ending);
    this.ending = undefined;
    const keys = compare.flatMap((one) => ('key' in one ? [String(one.key)] : []));
    const succeeded = keys.every((key) => !this.pairs.has(key));
    const ops = succeeded ? success : failure;
    const leases = ops.flatMap((op) => ('put' in op && op.lease ? [op.lease] : []));
    if (!leases.every((lease) => this.leases.has(lease))) throw new ServiceError('LEASE_NOT_FOUND', 'it has ended');
    const results = ops.map((op) => {
      if ('get' in op) {
        const found = this.pairs.get(String(op.get));
        return { type: 'get' as const, kvs: found === undefined ? [] : [found], more: false, count: 1 };
      }
      if (!('put' in op)) throw new Error('not used');
      const { put, value, lease = 0n } = op;
      this.put(String(put), String(value), lease);
      return { type: 'put' as const, prev: undefined };
    });
    return { succeeded, results, revision: this.revision };
  }

  async #page(at: number): Promise<KvPage> {
    const all = this.#sorted();
    const next = at + 50;
    return {
      items: all.slice(at, next),
      cursor: next < all.length ? String(next) : undefined,
      revision: this.revision,
    };
  }
}

let cluster: FakeCluster;
beforeEach(() => {
  cluster = new FakeCluster();
});

function imported(options: Partial<ImportOptions> = {}, storage = STORAGE): Promise<Imported> {
  const file = snapshotOf(storage);
  const source = { size: file.length, read: async (at: number, length: number) => file.subarray(at, at + length) };
  const all = { ...ALL, ...options };
  const reading = {
    options: { prefix: all.prefix, checkHash: true },
    progress: { hashed() {}, scanned() {} },
  };
  return EtcdSnapshot.with(source, reading, (snapshot) => importSnapshot(cluster, { snapshot, options: all, shell }));
}

const NOTHING = { keys: 0, present: 0, overwritten: 0, leftOut: 0, leases: 0, leasesLost: 0, unleased: 0 };
const WHOLE = CHANGES.map(({ key, value, lease }) => `${key}=${value}${lease === undefined ? '' : ` of ${lease}`}`);

describe('an import', () => {
  test('writes all keys with their leases, above the revisions of etcd (IM3, IM4)', async () => {
    expect(await imported()).toEqual({ ...NOTHING, keys: 200, leases: 1, above: ABOVE });
    expect(cluster.contents).toEqual(WHOLE);
    expect([...cluster.leases]).toEqual([[7n, 60_000]]);
    expect(cluster.raised).toEqual([ABOVE]);
  });

  test('that is killed after any transaction is completed by the next one, and then changes nothing (IM2)', async () => {
    for (let patience = 0; patience < 4; patience++) {
      cluster = new FakeCluster();
      cluster.patience = patience;
      await expect(imported()).rejects.toThrow('killed');
      cluster.patience = Number.POSITIVE_INFINITY;
      const present = cluster.pairs.size;
      expect(await imported()).toMatchObject({ keys: 200 - present, present, above: ABOVE });
      expect(cluster.contents).toEqual(WHOLE);
      const { revision } = cluster;
      expect(await imported()).toMatchObject({ keys: 0, present: 200 });
      expect(cluster.revision).toBe(revision);
    }
  });

  test('refuses a key with another value before it writes anything, and overwrites it on request (IM1)', async () => {
    cluster.put('k1100', 'mine');
    cluster.put('other', 'kept');
    await expect(imported()).rejects.toThrow('the cluster already has k1100 with another value');
    expect([cluster.contents, cluster.raised]).toEqual([['k1100=mine', 'other=kept'], []]);
    expect(await imported({ overwrite: true })).toMatchObject({ keys: 199, overwritten: 1, above: undefined });
    expect(cluster.contents).toEqual([...WHOLE, 'other=kept']);
  });

  test('notices a client that writes meanwhile', async () => {
    const { txn } = cluster.client.kv;
    let calls = 0;
    cluster.client.kv.txn = (request) => {
      if (++calls === 2) cluster.put('k1100', 'mine');
      return txn(request);
    };
    await expect(imported()).rejects.toThrow('k1100 has another value now');
  });

  test('leaves out keys of leases on request', async () => {
    expect(await imported({ withLeases: false })).toMatchObject({ keys: 180, leftOut: 20, leases: 0 });
    expect(cluster.leases.size).toBe(0);
  });

  test('keeps a key whose lease etcd no longer had, without one (IM4)', async () => {
    const changes = [{ key: 'a', value: '1', lease: 9n }];
    expect(await imported({}, { changes })).toMatchObject({ keys: 1, unleased: 1, leases: 0 });
    expect(cluster.contents).toEqual(['a=1']);
  });

  test('grants a lease again that ended before its keys were written', async () => {
    cluster.ending = 7n;
    expect(await imported()).toMatchObject({ keys: 200, leases: 1 });
    expect(cluster.contents).toEqual(WHOLE);
  });

  test('counts a lease that ended before the end', async () => {
    const { txn } = cluster.client.kv;
    cluster.client.kv.txn = async (request) => {
      const answer = await txn(request);
      if (cluster.pairs.size === 200) cluster.leases.clear();
      return answer;
    };
    expect(await imported()).toMatchObject({ keys: 200, leases: 0, leasesLost: 1 });
  });

  test('repeats a transaction whose answer was lost (IM2)', async () => {
    const { txn } = cluster.client.kv;
    let calls = 0;
    cluster.client.kv.txn = async (request) => {
      const answer = await txn(request);
      if (++calls === 2) throw new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost');
      return answer;
    };
    expect(await imported()).toMatchObject({ keys: 136, present: 64 });
    expect(cluster.contents).toEqual(WHOLE);
  });
});
