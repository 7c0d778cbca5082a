/**
 * Observes every change of a run's keys, and reads what is left of each round.
 *
 * U1. One watch from the first revision reports every change of every key, in order, whatever faults happen.
 * U2. A round's keys are read once no request for them can be in progress any more, and again at the end of the run.
 * U3. A round is over for the auditor once its watch has reported a change that came after that read.
 */
import { ServiceError } from '@remora/base';
import type { KvPair, KvWatch, RemoraClient } from 'remora';
import { inOrder, statementOf } from '../../support/bank.ts';
import type { Journal } from '../journal/journal.ts';
import { bankIn, told } from './bank.ts';
import { type Counter, counterKeys, recordsOf } from './counters.ts';
import { LEASES } from './leases.ts';
import { listKeys } from './lists.ts';
import { registerKeys } from './registers.ts';
import { elementsOf, txnKeys } from './txns.ts';
import type { SeenEvent } from './watches.ts';

export interface AuditorDeps {
  readonly journal: Journal;
  readonly remora: RemoraClient;
  /** How long after its end a round's requests may still be in progress. */
  readonly graceMs: number;
  pause(ms: number): Promise<void>;
}

const READER = 'reader';
const NOTED_AT_ONCE = 100;
const NOTED_AFTER_MS = 50;
const RETRY_MS = 100;
const PAGE = 500;
/** Far longer than any lease lives: a new leader restarts every lease's TTL. */
const LEASES_END_MS = 30_000;

export class Auditor {
  readonly #deps: AuditorDeps;
  readonly #watch: KvWatch;
  /** The current batch of events, by round. */
  readonly #batch = new Map<number, SeenEvent[]>();
  /**
   * The first round that was not read yet, and the function that releases it: until then no later round is over either.
   */
  #next: number;
  #release: () => void;
  #batched = 0;
  #seenRevision = 0;
  #reading: Promise<void> = Promise.resolve();
  #finishing = false;

  constructor(deps: AuditorDeps) {
    this.#deps = deps;
    this.#next = deps.journal.round;
    this.#release = deps.journal.hold(this.#next);
    this.#watch = deps.remora.kv.watch({ prefix: '' }, { startRevision: 1 });
  }

  /** Runs until `finish`. Throws if the watch ends before. */
  async run(): Promise<void> {
    const { journal, graceMs, pause } = this.#deps;
    const reading = async (): Promise<void> => {
      while (!this.#finishing) {
        if (journal.msSinceEndOf(this.#next) < graceMs) await pause(RETRY_MS);
        else await this.#readNext();
      }
    };
    this.#reading = reading();
    await Promise.race([this.#follow(), this.#reading]);
  }

  /** Compacts to a recent revision. Events that are still to be reported are kept. */
  async compact(back: number): Promise<void> {
    const { journal, remora } = this.#deps;
    const revision = this.#seenRevision - back;
    if (revision < 1) return;
    journal.note('watches', journal.round, { compaction: revision });
    await remora.kv.compact(revision);
  }

  /**
   * The load has ended and the cluster is healthy: reads everything, and waits for leases and locks that end by
   * themselves.
   */
  async finish(): Promise<void> {
    const { journal } = this.#deps;
    this.#finishing = true;
    await this.#reading;
    const last = journal.round;
    while (this.#next <= last) await this.#readNext();
    await this.#readAll(last);
    await this.#leasesEnd();
    this.#release();
    this.#watch.close();
  }

  // -------------------------------------------------------------------------------------------- the watch

  async #follow(): Promise<void> {
    const timer = setInterval(() => this.#note(), NOTED_AFTER_MS);
    try {
      for await (const { type, kv } of this.#watch) {
        this.#seenRevision = kv.modRevision;
        const key = kv.key.toString();
        const r = Number(key.split('/')[1]);
        if (!Number.isInteger(r)) continue; // Not a key of any workload.
        const batch = this.#batch.get(r) ?? [];
        batch.push([kv.modRevision, key, type === 'put' ? kv.value.toString() : null]);
        this.#batch.set(r, batch);
        this.#batched += 1;
        if (this.#batched >= NOTED_AT_ONCE) this.#note();
      }
    } finally {
      clearInterval(timer);
      this.#note();
    }
    if (!this.#finishing) throw new Error('the watch of the auditor ended');
  }

  #note(): void {
    for (const [r, events] of this.#batch) this.#deps.journal.note('audit', r, { events });
    this.#batch.clear();
    this.#batched = 0;
  }

  // -------------------------------------------------------------------------------------------- reading

  /** U2, U3. */
  async #readNext(): Promise<void> {
    const r = this.#next;
    await this.#retryUntilAnswered(() => this.#readKeys(r));
    await this.#retryUntilAnswered(() => this.#readBank(r));
    for (const counter of counterKeys(r)) await this.#retryUntilAnswered(() => this.#readCounter(r, counter));
    const marker = `audit/${r}`;
    const { revision } = await this.#retryUntilAnswered(() => this.#deps.remora.kv.put(marker, 'read'));
    while (this.#seenRevision < revision) await this.#deps.pause(RETRY_MS / 10);
    this.#note();
    this.#next = r + 1;
    const release = this.#release;
    this.#release = this.#deps.journal.hold(this.#next);
    release();
  }

  async #readKeys(r: number): Promise<void> {
    const { journal, remora } = this.#deps;
    const registers = registerKeys(r).map((k) => ({ k, w: 'registers' as const, q: { c: READER, k, op: 'get' } }));
    const lists = listKeys(r).map((k) => ({ k, w: 'lists' as const, q: { c: READER, k, op: 'get' } }));
    const single = [...registers, ...lists].map(({ k, w, q }) => ({ k, operation: journal.begin(w, r, q) }));
    const keys = txnKeys(r);
    const txn = journal.begin('txns', r, { c: READER, ops: keys.map((k) => ({ k, op: 'get' })) });
    try {
      const gets = [...single.map(({ k }) => k), ...keys];
      const { results } = await remora.kv.txn({ success: gets.map((get) => ({ get })) });
      const found = results.map((result) => (result.type === 'get' ? result.kvs[0] : undefined));
      for (const [i, { operation }] of single.entries()) operation.end('done', { a: readOf(found[i]) });
      const reads = found.slice(single.length).map((pair) => elementsOf(pair?.value.toString() ?? ''));
      txn.end('done', { a: { ok: true, reads } });
    } catch (error) {
      for (const { operation } of single) operation.end('refused');
      txn.end('refused');
      throw error;
    }
  }

  async #readBank(r: number): Promise<void> {
    const { journal, remora } = this.#deps;
    const bank = bankIn(r);
    const operation = journal.begin('bank', r, { c: READER, ops: bank.accounts.map((k) => ({ k, op: 'get' })) });
    try {
      const { kvs } = await remora.kv.range({ prefix: bank.prefix });
      operation.end('done', { a: told(statementOf(bank, inOrder(bank, kvs))) });
    } catch (error) {
      operation.end('refused');
      throw error;
    }
  }

  async #readCounter(r: number, counter: Counter): Promise<void> {
    const { journal, remora } = this.#deps;
    const { key: k, by } = counter;
    const operation = journal.begin('counters', r, { op: 'end', c: `${READER} of ${k}`, k, by });
    try {
      const { kvs } = await remora.kv.range({ prefix: k });
      const values = kvs.map((pair) => [pair.key.toString(), Number(pair.text())] as const);
      const value = values.find(([key]) => key === k)?.[1] ?? 0;
      const prefix = recordsOf(counter);
      const records = values.filter(([key]) => key !== k).map(([key, sum]) => [key.slice(prefix.length), sum] as const);
      operation.end('done', { a: { value, records } });
    } catch (error) {
      operation.end('refused');
      throw error;
    }
  }

  /** What the keys of all rounds hold at the end. */
  async #readAll(last: number): Promise<void> {
    const { journal, remora } = this.#deps;
    const left = new Map<number, (readonly [string, string])[]>();
    for (let r = 0; r <= last; r++) left.set(r, []);
    for (const prefix of ['list/', 'register/', 'txn/']) {
      for (let start = prefix; ; ) {
        const end = `${prefix.slice(0, -1)}0`; // The byte after the slash.
        const { kvs, more } = await this.#retryUntilAnswered(() => remora.kv.range({ start, end }, { limit: PAGE }));
        for (const { key, value } of kvs)
          left.get(Number(key.toString().split('/')[1]))?.push([key.toString(), value.toString()]);
        if (!more) break;
        start = `${kvs.at(-1)?.key.toString() ?? start}\0`;
      }
    }
    for (const [r, pairs] of left) journal.note('audit', r, { left: pairs });
  }

  async #leasesEnd(): Promise<void> {
    const { journal, remora, pause } = this.#deps;
    const endNs = journal.nowNs + LEASES_END_MS * 1e6;
    for (;;) {
      const keys = (await this.#retryUntilAnswered(() => remora.kv.range({ prefix: LEASES }))).kvs.map(({ key }) =>
        key.toString(),
      );
      const leases = (await this.#retryUntilAnswered(() => remora.lease.list().toArray())).length;
      if ((keys.length > 0 || leases > 0) && journal.nowNs < endNs) await pause(RETRY_MS);
      else return journal.note('leases', journal.round, { leases, keys });
    }
  }

  /** Repeats the request until there is an answer. */
  async #retryUntilAnswered<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        await this.#deps.pause(RETRY_MS);
      }
    }
  }
}

function readOf(found: KvPair | undefined): object {
  if (found === undefined) return { ok: true, out: null };
  return { ok: true, out: found.value.toString(), modRevision: found.modRevision };
}
