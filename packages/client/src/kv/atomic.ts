/**
 * Changes of one key that depend on its value: a transaction that compares first.
 *
 * AC1. A change is applied at most once. It is a transaction that compares the revision of the key as it was read, and
 *      every put changes that revision.
 * AC2. An unknown outcome is reported as such (UNKNOWN_OUTCOME), and never followed by another attempt (AT1).
 * AC3. With `once`, the same transaction creates that key, and compares that it did not exist. So all calls with the
 *      same `once`, of any process and at any time while that key exists, change the counter once altogether, and each
 *      of them that is answered returns the value after that change.
 */
import { equalBytes, ServiceError, utf8, utf8Text } from '@remora/base';
import { type Compare, type KvOp, type KvResult, rangeOp, type Txn } from '@remora/protocol';
import { shown } from '../options/options.ts';
import { Attempts } from './attempts.ts';
import { type BytesLike, KvPair, toBytes, toPair } from './keys.ts';
import type { CompareAndSetOptions, IncrementOptions, PutIfAbsentOptions } from './kv-options.ts';
import { type KvRequests, unexpected } from './kv-requests.ts';
import { putOp } from './txn.ts';

/** A counter after an increment. */
export interface Increment {
  readonly value: number;
  /** The revision of the increment. */
  readonly revision: number;
  /** With `once`: an earlier call has made this increment, and this one has changed nothing. */
  readonly repeated: boolean;
}

/** AC1 to AC3. */
export async function increment(requests: KvRequests, key: BytesLike, options: IncrementOptions): Promise<Increment> {
  const { fence, signal } = options;
  const counter = new Counter(toBytes(key), options);
  const { clock, random } = requests.requester.ports;
  const attempts = new Attempts(
    { clock, random },
    { timeoutMs: requests.timeoutMs(options), signal, what: 'increment' },
  );
  const read = { type: 'readTxn', txn: counter.reading(), serializable: false } as const;
  const found = await requests.query(read, attempts.request);
  for (let state = counter.stateOf(found.result); ; ) {
    if (state.done !== undefined) return state.done;
    const { txn, value } = counter.change(state.pair);
    const { result, revision } = await requests.write({ type: 'txn', txn }, { ...attempts.request, fence });
    if (result.type === 'txn' && result.succeeded) return { value, revision, repeated: false };
    await attempts.again();
    state = counter.stateOf(result);
  }
}

/** What was read of a counter. */
interface CounterState {
  readonly pair: KvPair | undefined;
  /** AC3. */
  readonly done: Increment | undefined;
}

class Counter {
  readonly #key: Uint8Array;
  readonly #once: Uint8Array | undefined;
  readonly #by: number;
  readonly #onceLease: bigint;
  readonly #lease: bigint;

  constructor(key: Uint8Array, { by = 1, once, onceLease = 0n, lease = 0n }: IncrementOptions) {
    this.#key = key;
    this.#by = by;
    this.#once = once === undefined ? undefined : toBytes(once);
    this.#onceLease = onceLease;
    this.#lease = lease;
    if (this.#once !== undefined && equalBytes(this.#once, key)) {
      throw new ServiceError('INVALID_ARGUMENT', 'once: expected a key of its own, got the key of the counter');
    }
    if (this.#once === undefined && onceLease !== 0n) {
      throw new ServiceError('INVALID_ARGUMENT', 'onceLease: expected together with `once`, whose key it is for');
    }
  }

  reading(): Txn {
    return { compare: [], success: this.#reads(), failure: [] };
  }

  #reads(): KvOp[] {
    const keys = this.#once === undefined ? [this.#key] : [this.#key, this.#once];
    return keys.map((key) => rangeOp({ key }, {}));
  }

  stateOf(result: { readonly type: string }): CounterState {
    const [pair, record] = pairsIn(result);
    if (record === undefined) return { pair, done: undefined };
    return { pair, done: { value: numberIn(record), revision: record.modRevision, repeated: true } };
  }

  /** AC1, AC3. */
  change(pair: KvPair | undefined): { readonly txn: Txn; readonly value: number } {
    const value = (pair === undefined ? 0 : numberIn(pair)) + this.#by;
    if (!Number.isSafeInteger(value)) {
      const message = `increment: the sum with ${this.#by} is not a safe integer; nothing was written`;
      throw new ServiceError('INVALID_ARGUMENT', message);
    }
    const bytes = utf8(String(value));
    // A counter keeps its lease.
    const ignoreLease = pair !== undefined;
    const put = { ...putOp({ put: this.#key, value: bytes, lease: ignoreLease ? 0n : this.#lease }), ignoreLease };
    const compare: Compare[] = [revisionIs(this.#key, pair?.modRevision ?? 0)];
    if (this.#once === undefined) return { txn: { compare, success: [put], failure: this.#reads() }, value };
    compare.push(revisionIs(this.#once, 0));
    const record = putOp({ put: this.#once, value: bytes, lease: this.#onceLease });
    return { txn: { compare, success: [put, record], failure: this.#reads() }, value };
  }
}

/** How `putIfAbsent` ended. */
export type PutIfAbsent =
  | { readonly created: true; readonly revision: number }
  /** `existing`: the pair that was there. */
  | { readonly created: false; readonly existing: KvPair; readonly revision: number };

/** AC1. */
export async function putIfAbsent(
  requests: KvRequests,
  { key, value }: { readonly key: BytesLike; readonly value: BytesLike },
  options: PutIfAbsentOptions,
): Promise<PutIfAbsent> {
  const set = await compareAndSet(requests, { key, value, expected: undefined }, options);
  if (set.swapped) return { created: true, revision: set.revision };
  if (set.current === undefined) throw unexpected('nothing');
  return { created: false, existing: set.current, revision: set.revision };
}

/** How `compareAndSet` ended. */
export type CompareAndSet =
  | { readonly swapped: true; readonly revision: number }
  /** `current`: the pair that is there; undefined: the key does not exist. */
  | { readonly swapped: false; readonly current: KvPair | undefined; readonly revision: number };

/** AC1. */
export async function compareAndSet(
  requests: KvRequests,
  { key, value, expected }: { key: BytesLike; value: BytesLike; expected: BytesLike | KvPair | undefined },
  options: CompareAndSetOptions,
): Promise<CompareAndSet> {
  const op = putOp({ put: key, value, lease: options.lease });
  const compare = [expectedIs(op.key, expected)];
  const txn = { compare, success: [op], failure: [rangeOp({ key: op.key }, {})] };
  const { result, revision } = await requests.write({ type: 'txn', txn }, options);
  if (result.type !== 'txn') throw unexpected(result.type);
  if (result.succeeded) return { swapped: true, revision };
  return { swapped: false, current: pairsIn(result)[0], revision };
}

function expectedIs(key: Uint8Array, expected: BytesLike | KvPair | undefined): Compare {
  if (expected === undefined) return revisionIs(key, 0);
  if (!(expected instanceof KvPair)) return { key, result: 'equal', target: { of: 'value', value: toBytes(expected) } };
  if (equalBytes(expected.key, key)) return revisionIs(key, expected.modRevision);
  const message = `expected: expected a pair of the key ${shown(String(key))}, got one of ${shown(String(expected.key))}`;
  throw new ServiceError('INVALID_ARGUMENT', message);
}

/** 0: the key does not exist. */
export function revisionIs(key: Uint8Array, modRevision: number): Compare {
  return { key, result: 'equal', target: { of: 'mod', value: modRevision } };
}

/** The pairs that the reads of a transaction found, one for each read. */
function pairsIn(result: { readonly type: string }): readonly (KvPair | undefined)[] {
  if (result.type !== 'txn') throw unexpected(result.type);
  const { results } = result as Extract<KvResult, { readonly type: 'txn' }>;
  return results.map((one) => {
    const [kv] = one.type === 'range' ? one.kvs : [];
    return kv && toPair(kv);
  });
}

const NUMBER = /^-?\d{1,16}$/;

/** @throws ServiceError INVALID_ARGUMENT for a value that is no counter. */
function numberIn({ key, value }: KvPair): number {
  const text = utf8Text(value) ?? '';
  const number = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  const message = `increment: the value of ${shown(String(key))} is not a whole number in decimal; nothing was written`;
  throw new ServiceError('INVALID_ARGUMENT', message);
}
