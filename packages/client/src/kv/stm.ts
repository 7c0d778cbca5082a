/**
 * Software transactional memory: a function over keys that is run until nothing that it has read was changed meanwhile.
 *
 * ST1. All reads of one run show one revision: that of its first read. A run never sees half of another transaction,
 *      also if it is repeated later.
 * ST2. The writes are applied in one transaction that compares everything that was read: each key by its revision, and
 *      each range by its keys and by the absence of later changes. So committed runs are strictly serializable. A run
 *      that has only read commits without a request: it took place at the moment of its first read.
 * ST3. A run that throws writes nothing, and is not repeated. Neither is one whose outcome is unknown (AT1).
 */
import { binaryString, compareBytes, ServiceError } from '@remora/base';
import { type Compare, type KeyRange, type KvOp, rangeOp } from '@remora/protocol';
import { lockCompare } from '../lock/lock-version.ts';
import { leaseOrNone } from '../options/option-kinds.ts';
import { checkOptions } from '../options/options.ts';
import { revisionIs } from './atomic.ts';
import { Attempts } from './attempts.ts';
import { type BytesLike, type KeySelector, KvPair, keyRange, requireBytes, toBytes, toPair } from './keys.ts';
import { STM_PUT_OPTIONS, type StmOptions, type StmPutOptions } from './kv-options.ts';
import { type KvRequests, unexpected } from './kv-requests.ts';
import { putOp } from './txn.ts';

/** The function of an STM. It may be run several times, so it changes nothing but keys, and only through `t`. */
export type StmWork<Result> = (t: Stm) => Result | Promise<Result>;

/** Runs the function until it is committed. */
export async function runStm<Result>(
  requests: KvRequests,
  work: StmWork<Result>,
  options: StmOptions,
): Promise<Result> {
  const { signal, fence } = options;
  if (fence !== undefined) lockCompare(fence); // Also when nothing is written.
  const attempts = new Attempts(requests.requester.ports, {
    timeoutMs: requests.timeoutMs(options),
    signal,
    what: 'stm',
  });
  for (;;) {
    const run = new StmRun(requests, attempts);
    try {
      const result = await work(new Stm(run));
      run.end();
      if (await run.commit(fence)) return result;
    } catch (error) {
      run.end();
      if (!run.isOutdated(error)) throw error;
    }
    await attempts.again();
  }
}

/** One run. */
class StmRun {
  readonly #requests: KvRequests;
  readonly #attempts: Attempts;
  /** ST1. The first read sets it. */
  #revision: number | undefined;
  #reading: Promise<unknown> = Promise.resolve();
  #over = false;
  /** What was read, by key: undefined if the key does not exist. */
  readonly #read = new Map<string, KvPair | undefined>();
  readonly #ranges: KeyRange[] = [];
  /** What is to be written, by key. */
  readonly #writes = new Map<string, Extract<KvOp, { type: 'put' | 'delete' }>>();
  #outdated: unknown;

  constructor(requests: KvRequests, attempts: Attempts) {
    this.#requests = requests;
    this.#attempts = attempts;
  }

  end(): void {
    this.#over = true;
  }

  /** The revision that it read was compacted: the next run reads a newer one. */
  isOutdated(error: unknown): boolean {
    return error !== undefined && error === this.#outdated;
  }

  async get(key: Uint8Array): Promise<KvPair | undefined> {
    this.check();
    const name = binaryString(key);
    const write = this.#writes.get(name);
    if (write !== undefined) return write.type === 'put' ? asPair(write, this.#read.get(name)) : undefined;
    if (!this.#read.has(name)) {
      const [pair] = await this.#load({ key });
      this.#read.set(name, pair);
    }
    return this.#read.get(name);
  }

  async range(span: KeyRange): Promise<readonly KvPair[]> {
    this.check();
    const pairs = await this.#load(span);
    this.#ranges.push(span);
    const now = new Map<string, KvPair>();
    for (const pair of pairs) {
      const name = binaryString(pair.key);
      this.#read.set(name, pair);
      now.set(name, pair);
    }
    for (const [name, write] of this.#writes) {
      if (!isIn(span, write.key)) continue;
      if (write.type === 'put') now.set(name, asPair(write, this.#read.get(name)));
      else now.delete(name);
    }
    return [...now.values()].sort((a, b) => compareBytes(a.key, b.key));
  }

  write(op: Extract<KvOp, { type: 'put' | 'delete' }>): void {
    this.check();
    this.#writes.set(binaryString(op.key), op);
  }

  /** ST2. Returns whether it is committed. */
  async commit(fence: StmOptions['fence']): Promise<boolean> {
    await this.#reading; // One that the function did not wait for.
    if (this.#writes.size === 0) return true;
    const compare: Compare[] = [...this.#read].map(([name, pair]) =>
      revisionIs(pair?.key ?? Buffer.from(name, 'latin1'), pair?.modRevision ?? 0),
    );
    for (const span of this.#ranges) {
      compare.push({ ...span, result: 'less', target: { of: 'mod', value: (this.#revision ?? 0) + 1 } });
    }
    const txn = { compare, success: [...this.#writes.values()], failure: [] };
    const { result } = await this.#requests.write({ type: 'txn', txn }, { ...this.#attempts.request, fence });
    if (result.type !== 'txn') throw unexpected(result.type);
    return result.succeeded;
  }

  /** A function that goes on after its run has ended would change nothing. */
  check(): void {
    if (!this.#over) return;
    throw new ServiceError('INVALID_ARGUMENT', 'stm: this run has ended; await everything that the function begins');
  }

  /** ST1. One after the other: the first one determines the revision of the others. */
  #load(span: KeyRange): Promise<readonly KvPair[]> {
    const loaded = this.#reading.then(() => this.#query(span));
    this.#reading = loaded.catch(() => {});
    return loaded;
  }

  async #query(span: KeyRange): Promise<readonly KvPair[]> {
    const op = rangeOp(span, { revision: this.#revision ?? 0 });
    try {
      const query = { type: 'range', op, serializable: false } as const;
      const { result, revision } = await this.#requests.query(query, this.#attempts.request);
      if (result.type !== 'range') throw unexpected(result.type);
      this.#revision ??= revision;
      return result.kvs.map(toPair);
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'COMPACTED') this.#outdated = error;
      throw error;
    }
  }
}

/** The keys as one run sees them, its own writes included. */
export class Stm {
  readonly #run: StmRun;

  constructor(run: StmRun) {
    this.#run = run;
  }

  /**
   * Reads a key. Returns undefined when it does not exist. A key that this run has written has its new value; its
   * revisions are those before the commit.
   */
  async get(key: BytesLike): Promise<KvPair | undefined> {
    requireBytes(key, 'the key to get');
    return this.#run.get(toBytes(key));
  }

  /** Reads the selected keys, in their order, in one answer. */
  async range(selector: KeySelector): Promise<readonly KvPair[]> {
    return this.#run.range(keyRange(selector));
  }

  /** Puts a key when the run is committed. */
  put(key: BytesLike, value: BytesLike, options: StmPutOptions = {}): void {
    checkOptions(STM_PUT_OPTIONS, options);
    const { lease = 0n } = options;
    leaseOrNone(lease, 'lease');
    this.#run.write(putOp({ put: key, value, lease }));
  }

  /** Deletes a key when the run is committed. */
  delete(key: BytesLike): void {
    requireBytes(key, 'the key to delete');
    this.#run.write({ type: 'delete', key: toBytes(key), prevKv: false });
  }
}

function asPair({ key, value, lease }: Extract<KvOp, { type: 'put' }>, before: KvPair | undefined): KvPair {
  const { createRevision = 0, modRevision = 0, version = 0 } = before ?? {};
  return new KvPair({ key, value, lease, createRevision, modRevision, version });
}

function isIn({ key, end }: KeyRange, candidate: Uint8Array): boolean {
  if (end === undefined) return compareBytes(candidate, key) === 0;
  return compareBytes(candidate, key) >= 0 && (end.length === 0 || compareBytes(candidate, end) < 0);
}
