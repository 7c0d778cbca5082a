/**
 * A process that mixes everything that clients do, as fast as it gets answers: puts, reads, deletes and transactions
 * over both APIs, locks with waiters, sessions, leases, watches and short-lived connections.
 *
 * L1. The set of keys is limited, so the cluster's data do not grow.
 * L2. While it rests it sends only a few puts per second, so that what the cluster remembers for a limited time is
 *     forgotten.
 */

import { credentials, Metadata } from '@grpc/grpc-js';
import { type Random, SeededRandom } from '@remora/base';
import { PutRequest, RangeRequest } from '@remora/protocol/etcd';
import { KVClient } from '@remora/protocol/grpc-clients';
import { connect, type RemoraClient, ServiceError } from 'remora';
import { pause } from '../e2e/eventually.ts';
import { tell } from './load-process.ts';

export interface MixedLoadSpec {
  readonly endpoints: readonly string[];
  readonly seed: number;
}

const KEYS = 5_000;
const VALUE_BYTES_MAX = 512;
const LOCKS = 6;
const REQUEST_TIMEOUT_MS = 5_000;
const REST_PUTS_PER_SECOND = 10;

/** How many workers perform each kind of work: enough to keep two cores busy, however long an answer takes. */
const WORKERS: Readonly<Record<Work, number>> = {
  kv: 96,
  etcd: 24,
  txn: 24,
  lock: 48,
  session: 2,
  lease: 4,
  watch: 4,
  connection: 1,
};
const WORKS = ['kv', 'etcd', 'txn', 'lock', 'session', 'lease', 'watch', 'connection'] as const;
type Work = (typeof WORKS)[number];

/** Runs until its parent ends it. Answers `count` with `counted`, `rest` with `resting`, `work` with `working`. */
export async function runMixedLoad(spec: MixedLoadSpec): Promise<never> {
  const client = await connect({ endpoints: spec.endpoints, requestTimeout: REQUEST_TIMEOUT_MS });
  const load = new MixedLoad(spec, client);
  process.on('message', (message) => {
    const type = typeof message === 'object' && message !== null && 'type' in message ? message.type : '';
    if (type === 'count') void tell({ type: 'counted', done: load.done, codes: load.codes });
    if (type === 'rest') void load.rest().then(() => tell({ type: 'resting' }));
    if (type === 'work') load.work();
  });
  load.work();
  await tell({ type: 'working' });
  return new Promise(() => {});
}

class MixedLoad {
  /** Operations that succeeded, by kind. */
  readonly done: Record<string, number> = {};
  /** Errors, by code. */
  readonly codes: Record<string, number> = {};
  readonly #spec: MixedLoadSpec;
  readonly #client: RemoraClient;
  readonly #etcd: readonly KVClient[];
  readonly #random: Random;
  #workers: Promise<unknown> = Promise.resolve();
  #resting = true;

  constructor(spec: MixedLoadSpec, client: RemoraClient) {
    this.#spec = spec;
    this.#client = client;
    this.#random = new SeededRandom(spec.seed);
    this.#etcd = spec.endpoints.map((endpoint) => new KVClient(endpoint, credentials.createInsecure()));
  }

  work(): void {
    this.#resting = false;
    this.#workers = Promise.all(
      WORKS.flatMap((work) => Array.from({ length: WORKERS[work] }, () => this.#repeat(work))),
    );
  }

  /** Resolves when every worker has ended its current operation. */
  async rest(): Promise<void> {
    this.#resting = true;
    await this.#workers;
    void this.#keepTimeGoing();
  }

  /** L2 */
  async #keepTimeGoing(): Promise<void> {
    while (this.#resting) {
      await this.#client.kv.put('soak/rest', 'x').catch(() => {});
      await pause(1_000 / REST_PUTS_PER_SECOND);
    }
  }

  async #repeat(work: Work): Promise<void> {
    while (!this.#resting) {
      try {
        await this.#once(work);
        this.done[work] = (this.done[work] ?? 0) + 1;
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        const code = error instanceof ServiceError ? error.code : error.message.split(':', 1).join();
        this.codes[code] = (this.codes[code] ?? 0) + 1;
        await pause(10);
      }
    }
  }

  #once(work: Work): Promise<unknown> {
    switch (work) {
      case 'kv':
        return this.#kv();
      case 'etcd':
        return this.#etcdCall();
      case 'txn':
        return this.#txn();
      case 'lock':
        return this.#lock();
      case 'session':
        return this.#session();
      case 'lease':
        return this.#lease();
      case 'watch':
        return this.#watch();
      case 'connection':
        return this.#connection();
    }
  }

  #kv(): Promise<unknown> {
    const { kv } = this.#client;
    const kind = this.#random.int(100);
    if (kind < 45) return kv.put(this.#key(), this.#value());
    if (kind < 85) return kv.get(this.#key());
    if (kind < 95) return kv.delete(this.#key());
    return kv.range({ start: this.#key() }, { limit: 20 });
  }

  #etcdCall(): Promise<unknown> {
    const client = this.#pick(this.#etcd);
    const key = Buffer.from(this.#key());
    const options = { deadline: Date.now() + REQUEST_TIMEOUT_MS };
    return new Promise<void>((resolve, reject) => {
      const done = (error: Error | null): void => (error === null ? resolve() : reject(error));
      if (this.#random.int(2) === 0) client.range(RangeRequest.fromPartial({ key }), new Metadata(), options, done);
      else client.put(PutRequest.fromPartial({ key, value: this.#value() }), new Metadata(), options, done);
    });
  }

  /** Two keys together, if the first one is unchanged since it was read. */
  async #txn(): Promise<void> {
    const { kv } = this.#client;
    const [key, other] = [this.#key(), `soak/pair/${this.#random.int(KEYS)}`];
    const found = await kv.get(key);
    await kv.txn({
      compare: [{ key, target: 'modRevision', is: '=', than: found?.modRevision ?? 0 }],
      success: [
        { put: key, value: this.#value() },
        { put: other, value: this.#value() },
      ],
      failure: [{ get: other }],
    });
  }

  /** Some wait without a limit, some only briefly, and some cancel. */
  async #lock(): Promise<void> {
    const lock = this.#client.lock(`soak/${this.#random.int(LOCKS)}`);
    const patience = this.#random.int(10);
    const held = await lock
      .acquire({
        ...(patience === 0 ? { wait: '5ms' } : {}),
        ...(patience === 1 ? { signal: AbortSignal.timeout(5) } : {}),
      })
      .catch((error: unknown) => {
        if (error instanceof ServiceError && ['LOCK_TIMEOUT', 'CANCELED'].includes(error.code)) return undefined;
        throw error;
      });
    await held?.release();
  }

  async #session(): Promise<void> {
    await using session = await this.#client.session({ ttl: '3s', attributes: { purpose: 'soak' } });
    const held = await session.lock(`soak/session/${this.#random.int(KEYS)}`).tryAcquire();
    if (this.#random.int(2) === 0) await held?.release();
  }

  /** Half of the leases are revoked. The others expire. */
  async #lease(): Promise<void> {
    const { lease, kv } = this.#client;
    const { id } = await lease.grant(1_000 + this.#random.int(2_000));
    await Promise.all([1, 2].map((n) => kv.put(`soak/leased/${this.#random.int(KEYS)}/${n}`, 'x', { lease: id })));
    await lease.keepAlive(id);
    if (this.#random.int(2) === 0) await lease.revoke(id);
    else await pause(100);
  }

  /** Receives a few events, or waits for some in vain. */
  async #watch(): Promise<void> {
    const watch = this.#client.kv.watch({ prefix: `soak/key/${this.#random.int(10)}` });
    const enough = AbortSignal.timeout(200 + this.#random.int(2_000));
    enough.addEventListener('abort', () => watch.close());
    let left = this.#random.int(500);
    for await (const _event of watch) if (--left <= 0) break;
  }

  async #connection(): Promise<void> {
    await using client = await connect({ endpoints: this.#spec.endpoints });
    await client.kv.put(this.#key(), this.#value());
    const held = await client.lock(`soak/connection/${this.#random.int(KEYS)}`).tryAcquire();
    await held?.check();
  }

  /** L1 */
  #key(): string {
    return `soak/key/${this.#random.int(KEYS)}`;
  }

  #value(): Buffer {
    return Buffer.alloc(1 + this.#random.int(VALUE_BYTES_MAX), 'v');
  }

  #pick<Item>(items: readonly Item[]): Item {
    const item = items[this.#random.int(items.length)];
    if (item === undefined) throw new Error('nothing to choose from');
    return item;
  }
}
