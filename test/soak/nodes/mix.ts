/** The requests of clients in the scenarios of nodes: a mix of everything, over all ranges. */
import { type Random, ServiceError } from '@remora/base';
import { connect, type KvWatch, type RemoraClient } from 'remora';

/** Shares of a hundred requests. Each is one thing that a caller waits for, and takes as many calls as necessary. */
const SHARES = { get: 40, put: 28, txn: 12, lock: 10, lease: 4, watch: 6 } as const;
export type Kind = keyof typeof SHARES;
const KINDS = Object.keys(SHARES) as readonly Kind[];

const TABLE: readonly Kind[] = KINDS.flatMap((kind) => Array.from({ length: SHARES[kind] }, () => kind));

export const KEYS = 4_000;
const LOCKS = 200;
const SESSIONS = 3;
const VALUE_BYTES = 1_024;
/** Long enough that only the requests themselves decide whether a lease lives. */
const LEASE_TTL = '10m';
const WATCHED = 'watched/';

export interface ClientLimits {
  /** How long a request may take, retries included. */
  readonly requestTimeoutMs: number;
  readonly sessionTtlMs: number;
}

function keyOf(n: number): string {
  return `load/${String(n).padStart(4, '0')}`;
}

/**
 * The start keys of ranges, so that the keys of this load are in `ranges` ranges. The last two contain the watched
 * keys.
 */
export function bordersOf(ranges: number): readonly string[] {
  const inLoad = Array.from({ length: ranges - 3 }, (_, i) => keyOf(Math.round(((i + 1) * KEYS) / (ranges - 2))));
  return [...inLoad, WATCHED, `${WATCHED}5`];
}

export function kindOf(random: Random): Kind {
  return TABLE[random.int(TABLE.length)] ?? 'get';
}

interface MixOptions {
  readonly endpoints: readonly string[];
  readonly limits: ClientLimits;
}

/** One client: separate connections, a session that holds a lock all the time, and a watch over two ranges. */
export class MixClient {
  readonly #client: RemoraClient;
  readonly #name: string;
  readonly #random: Random;
  readonly #limits: ClientLimits;
  readonly #watch: KvWatch;
  readonly #awaited = new Map<string, () => void>();
  /** Lost sessions and locks, and ended watches. */
  readonly lost: string[] = [];
  #next = 0;
  #closing = false;

  private constructor(client: RemoraClient, name: string, random: Random, limits: ClientLimits) {
    this.#client = client;
    this.#name = name;
    this.#random = random;
    this.#limits = limits;
    this.#watch = client.kv.watch({ prefix: WATCHED });
    void this.#follow();
  }

  static async open({ endpoints, limits }: MixOptions, name: string, random: Random): Promise<MixClient> {
    const { requestTimeoutMs: requestTimeout, sessionTtlMs: sessionTtl } = limits;
    const client = await connect({ endpoints, requestTimeout, sessionTtl });
    const mix = new MixClient(client, name, random, limits);
    for (let i = 0; i < SESSIONS; i++) await mix.#hold(`held/${name}/${i}`);
    await mix.#seen();
    return mix;
  }

  async fill(from: number, to: number): Promise<void> {
    for (let n = from; n < to; n++) await this.#client.kv.put(keyOf(n), this.#value());
  }

  once(kind: Kind): Promise<unknown> {
    switch (kind) {
      case 'get':
        return this.#client.kv.get(this.#key());
      case 'put':
        return this.#client.kv.put(this.#key(), this.#value());
      case 'txn':
        return this.#txn();
      case 'lock':
        return this.#lock();
      case 'lease':
        return this.#lease();
      case 'watch':
        return this.#seen();
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#watch.close();
    await this.#client.close();
  }

  /** A lock that is held until the end: losing it would show that its session was lost. */
  async #hold(name: string): Promise<void> {
    const session = await this.#client.session({ ttl: this.#limits.sessionTtlMs });
    const lock = await session.lock(name).acquire({ wait: 0 });
    lock.signal.addEventListener('abort', () => {
      if (!this.#closing) this.lost.push(`${name}: ${lock.signal.reason}`);
    });
  }

  /** Two keys, mostly of two ranges, and a read of a third one. */
  async #txn(): Promise<void> {
    const [one, other, third] = [this.#key(), this.#key(), this.#key()];
    const value = this.#value();
    const puts = [...new Set([one, other])].map((put) => ({ put, value }));
    await this.#client.kv.txn({
      success: [...puts, ...(puts.some(({ put }) => put === third) ? [] : [{ get: third }])],
    });
  }

  async #lock(): Promise<void> {
    const lock = this.#client.lock(`turns/${this.#random.int(LOCKS)}`);
    const held = await lock.acquire({ wait: this.#limits.requestTimeoutMs });
    await held.release();
  }

  async #lease(): Promise<void> {
    const { lease, kv } = this.#client;
    const { id } = await lease.grant(LEASE_TTL);
    await kv.put(`${this.#key()}/${this.#name}/${this.#next++}`, 'leased', { lease: id });
    await lease.keepAlive(id);
    await lease.revoke(id);
  }

  /** A put whose event the watch must report. */
  async #seen(): Promise<void> {
    const key = `${WATCHED}${this.#random.int(10)}/${this.#name}/${this.#next++ % 100}`;
    const value = String(this.#next);
    const { kv } = this.#client;
    const event = `${key}=${value}`;
    const shown = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(unseen(event)), this.#limits.requestTimeoutMs);
      this.#awaited.set(event, () => {
        clearTimeout(timer);
        resolve();
      });
    });
    shown.catch(() => {}); // Awaited below, unless the put fails.
    try {
      await kv.put(key, value);
      await shown;
    } finally {
      this.#awaited.delete(event);
    }
  }

  async #follow(): Promise<void> {
    try {
      for await (const { type, kv } of this.#watch) {
        if (type === 'put') this.#awaited.get(`${kv.key}=${kv.value}`)?.();
      }
      if (!this.#closing) this.lost.push('the watch has ended');
    } catch (error) {
      this.lost.push(`the watch has ended: ${error}`);
    }
  }

  #key(): string {
    return keyOf(this.#random.int(KEYS));
  }

  #value(): Buffer {
    return Buffer.alloc(VALUE_BYTES, 'v');
  }
}

function unseen(event: string): ServiceError {
  return new ServiceError('DEADLINE_EXCEEDED', `the watch did not show ${event}`);
}
