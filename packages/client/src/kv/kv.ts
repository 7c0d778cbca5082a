import { compareBytes, keyAfter } from '@remora/base';
import { requireFunction, requireRevision } from '../options/option-kinds.ts';
import { checkOptions } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { bytesOfCursor, cursorOf, Listing, wrongCursor } from '../values/listing.ts';
import {
  type CompareAndSet,
  compareAndSet,
  type Increment,
  increment,
  type PutIfAbsent,
  putIfAbsent,
} from './atomic.ts';
import { type BytesLike, type KeySelector, type KvPair, keyRange, requireBytes, toPair } from './keys.ts';
import {
  COMPACT_OPTIONS,
  COMPARE_AND_SET_OPTIONS,
  type CompareAndSetOptions,
  DELETE_OPTIONS,
  type DeleteOptions,
  GET_OPTIONS,
  INCREMENT_OPTIONS,
  type IncrementOptions,
  KV_LIST_OPTIONS,
  type KvListOptions,
  type KvPage,
  type OperationOptions,
  PUT_IF_ABSENT_OPTIONS,
  PUT_OPTIONS,
  type PutIfAbsentOptions,
  type PutOptions,
  RANGE_OPTIONS,
  type RangeOptions,
  type ReadOptions,
  STM_OPTIONS,
  type StmOptions,
  type TxnRequest,
  type WriteOptions,
} from './kv-options.ts';
import { KvRequests, unexpected } from './kv-requests.ts';
import { KvMirror, MIRROR_OPTIONS, type MirrorOptions } from './mirror.ts';
import { runStm, type StmWork } from './stm.ts';
import { putOp, type RangeAnswer, rangeAnswer, readOf, runTxn, type TxnResult } from './txn.ts';
import { Txn } from './txn-builder.ts';
import { KvWatch, WATCH_OPTIONS, type WatchOptions } from './watch.ts';

const SCAN_PAGE_BYTES = 512 * 1024;

/**
 * Keys and values, with the semantics of etcd.
 *
 * Every method throws `ServiceError`: INVALID_ARGUMENT or EMPTY_KEY for wrong arguments; REQUEST_TOO_LARGE; CANCELED
 * when its `signal` aborts or the client is closed; UNAVAILABLE, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED when the
 * cluster did not answer or is over a limit. A write may also end as UNKNOWN_OUTCOME: its answer was lost, and it may
 * have been applied.
 */
export class Kv {
  readonly #requests: KvRequests;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requests = new KvRequests(requester, timeoutMs);
  }

  /**
   * Reads one key. Returns undefined when it does not exist.
   *
   * @throws ServiceError COMPACTED; see `Kv` for the others.
   */
  async get(key: BytesLike, options: ReadOptions = {}): Promise<KvPair | undefined> {
    checkOptions(GET_OPTIONS, options);
    if (typeof key === 'object') requireBytes(key, 'the key to get'); // A selector may stand for several keys.
    const { kvs } = await this.range(key, options);
    return kvs[0];
  }

  /**
   * Reads the selected keys in one answer; see `list` for more than fits.
   *
   * @throws ServiceError COMPACTED; see `Kv`.
   */
  async range(selector: KeySelector, options: RangeOptions = {}): Promise<RangeAnswer> {
    checkOptions(RANGE_OPTIONS, options);
    const op = readOf(selector, options);
    const query = { type: 'range', op, serializable: options.serializable ?? false } as const;
    const { result, revision } = await this.#requests.query(query, options);
    if (result.type !== 'range') throw unexpected(result.type);
    return { ...rangeAnswer(result), revision };
  }

  /**
   * Writes one key.
   *
   * @throws ServiceError FENCED when the grant of `fence` no longer holds its lock; LEASE_NOT_FOUND when `lease` does
   *   not exist; see `Kv` for the others.
   */
  async put(
    key: BytesLike,
    value: BytesLike,
    options: PutOptions = {},
  ): Promise<{ readonly revision: number; readonly prev: KvPair | undefined }> {
    checkOptions(PUT_OPTIONS, options);
    const op = putOp({ put: key, value, ...options });
    const { result, revision } = await this.#requests.write({ type: 'kv', op }, options);
    if (result.type !== 'put') throw unexpected(result.type);
    return { revision, prev: result.prev === undefined ? undefined : toPair(result.prev) };
  }

  /**
   * Deletes the selected keys.
   *
   * @throws ServiceError FENCED when the grant of `fence` no longer holds its lock; see `Kv`.
   */
  async delete(
    selector: KeySelector,
    options: DeleteOptions = {},
  ): Promise<{ readonly revision: number; readonly deleted: number; readonly prev: readonly KvPair[] }> {
    checkOptions(DELETE_OPTIONS, options);
    const op = { type: 'delete', ...keyRange(selector), prevKv: options.prevKv ?? false } as const;
    const { result, revision } = await this.#requests.write({ type: 'kv', op }, options);
    if (result.type !== 'delete') throw unexpected(result.type);
    return { revision, deleted: result.deleted, prev: result.prev.map(toPair) };
  }

  /**
   * Applies all of `success` if every comparison holds, otherwise all of `failure`: atomically, under one revision.
   *
   * The comparison `{ held: lock }` holds while that grant has its lock. With the option `fence` instead, the whole
   * transaction is refused (FENCED) when the grant has lost it.
   */
  async txn(request: TxnRequest, options: WriteOptions = {}): Promise<TxnResult> {
    return runTxn(this.#requests, request, options);
  }

  /**
   * Begins a transaction that is written step by step, with typed results.
   *
   * ```ts
   * const sold = await remora.kv
   *   .transaction()
   *   .if('stock/7', 'value', '=', 'free')
   *   .put('stock/7', 'sold')
   *   .else()
   *   .get('stock/7')
   *   .commit();
   * if (!sold.succeeded) console.log(sold.results[0].kvs);
   * ```
   */
  transaction(): Txn {
    return new Txn({ compare: [], success: [], failure: [] }, (request, options) => this.txn(request, options));
  }

  /**
   * Adds to a counter: a key whose value is a whole number in decimal. A key that does not exist counts as 0. The
   * increment is applied at most once, and linearizable.
   *
   * UNKNOWN_OUTCOME means that it may have been applied. Repeat it then only with a `once`: see `IncrementOptions`.
   *
   * @throws ServiceError INVALID_ARGUMENT when the value is no whole number, or the sum is not a safe integer;
   *   DEADLINE_EXCEEDED also when other clients changed the key too often; FENCED; LEASE_NOT_FOUND; see `Kv`.
   */
  async increment(key: BytesLike, options: IncrementOptions = {}): Promise<Increment> {
    checkOptions(INCREMENT_OPTIONS, options);
    requireBytes(key, 'the key to increment');
    return increment(this.#requests, key, options);
  }

  /**
   * Creates a key. If the key exists, changes nothing and returns the present pair.
   *
   * @throws ServiceError FENCED; LEASE_NOT_FOUND; see `Kv`.
   */
  async putIfAbsent(key: BytesLike, value: BytesLike, options: PutIfAbsentOptions = {}): Promise<PutIfAbsent> {
    checkOptions(PUT_IF_ABSENT_OPTIONS, options);
    return putIfAbsent(this.#requests, { key, value }, options);
  }

  /**
   * Puts a key if it is as expected: a value; a pair as it was read, which means unchanged since then, by its
   * `modRevision`; or undefined for a key that does not exist. Otherwise changes nothing and returns the present pair.
   *
   * @throws ServiceError FENCED; LEASE_NOT_FOUND; see `Kv`.
   */
  async compareAndSet(
    key: BytesLike,
    expected: BytesLike | KvPair | undefined,
    value: BytesLike,
    options: CompareAndSetOptions = {},
  ): Promise<CompareAndSet> {
    checkOptions(COMPARE_AND_SET_OPTIONS, options);
    return compareAndSet(this.#requests, { key, value, expected }, options);
  }

  /**
   * Runs a function that reads and writes keys, and applies its writes if nothing that it read has changed meanwhile.
   * Otherwise runs it again. Returns what the committed run returned.
   *
   * ```ts
   * await remora.kv.stm(async (t) => {
   *   const from = Number((await t.get('accounts/a'))?.text());
   *   const to = Number((await t.get('accounts/b'))?.text());
   *   t.put('accounts/a', String(from - 10));
   *   t.put('accounts/b', String(to + 10));
   * });
   * ```
   *
   * The function may run several times, so it has no effects but its writes. All reads of a run show one moment.
   * UNKNOWN_OUTCOME means that the last run may have been committed: it is not repeated.
   *
   * @throws ServiceError DEADLINE_EXCEEDED also when other clients changed the keys too often; FENCED; LEASE_NOT_FOUND;
   *   TOO_MANY_OPERATIONS; see `Kv`. The error of the function, if it throws; nothing is written then.
   */
  async stm<Result>(work: StmWork<Result>, options: StmOptions = {}): Promise<Result> {
    checkOptions(STM_OPTIONS, options);
    requireFunction(work, 'stm');
    return runStm(this.#requests, work, options);
  }

  /**
   * All selected pairs in the order of their keys, as of one revision, read page by page. Use it for more pairs than
   * one answer should carry.
   *
   * ```ts
   * for await (const pair of remora.kv.list({ prefix: 'orders/' })) console.log(pair);
   * ```
   *
   * Reading throws ServiceError COMPACTED when that revision is compacted meanwhile; see `Kv` for the others.
   */
  list(selector: KeySelector, options: KvListOptions = {}): Listing<KvPair, KvPage> {
    checkOptions(KV_LIST_OPTIONS, options);
    const { key, end = keyAfter(key) } = keyRange(selector);
    return new Listing((cursor) => this.#page({ key, end }, options, cursor));
  }

  async #page(span: Span, options: KvListOptions, cursor: string | undefined): Promise<KvPage> {
    const place = cursor === undefined ? undefined : placeOf(cursor, span);
    const { pageBytes: bytes = SCAN_PAGE_BYTES, pageSize, keysOnly } = options;
    const { from, revision } = place ?? { from: span.key, revision: options.revision ?? 0 };
    const limits = { bytes, ...(pageSize !== undefined && { limit: pageSize }), ...(keysOnly && { keysOnly }) };
    const query = { type: 'scan', key: from, end: span.end, revision, ...limits } as const;
    const { result, revision: newest } = await this.#requests.query(query, options);
    if (result.type !== 'scan') throw unexpected(result.type);
    const shown = revision === 0 ? newest : revision;
    const next = result.next === undefined ? undefined : `${shown}.${cursorOf(result.next)}`;
    return { items: result.kvs.map(toPair), cursor: next, revision: shown };
  }

  /**
   * Watches the selected keys: returns their changes one by one, in order and without gaps, also across reconnects. End
   * it by leaving the loop, by `close`, or by its `signal`.
   */
  watch(selector: KeySelector, options: WatchOptions = {}): KvWatch {
    checkOptions(WATCH_OPTIONS, options);
    return new KvWatch(this.#requests.requester, keyRange(selector), options);
  }

  /**
   * A local copy of the selected keys, kept up to date by a watch: reading it sends nothing. It is as of its
   * `revision`, which may be behind the cluster's.
   *
   * ```ts
   * const config = remora.kv.mirror({ prefix: 'config/' });
   * await config.ready();
   * console.log(config.get('config/limit')?.text(), config.revision);
   * ```
   */
  mirror(selector: KeySelector, options: MirrorOptions = {}): KvMirror {
    checkOptions(MIRROR_OPTIONS, options);
    const span = keyRange(selector);
    const { requester } = this.#requests;
    return new KvMirror({ requester, span, list: () => this.list(selector) }, options);
  }

  /** Discards the history before `revision`: reads and watches of earlier revisions then end with COMPACTED. */
  async compact(revision: number, options: OperationOptions = {}): Promise<void> {
    checkOptions(COMPACT_OPTIONS, options);
    requireRevision(revision, 'revision', 1);
    await this.#requests.compact(revision, options);
  }
}

interface Span {
  readonly key: Uint8Array;
  readonly end: Uint8Array;
}

const CURSOR = /^(\d{1,16})\.([\w-]+)$/;

/** Where a list of pairs goes on. @throws ServiceError INVALID_ARGUMENT for a cursor of another list. */
function placeOf(cursor: string, { key, end }: Span): { readonly from: Uint8Array; readonly revision: number } {
  const [, digits = '', text = ''] = CURSOR.exec(cursor) ?? [];
  if (text === '') throw wrongCursor(cursor);
  const [from, revision] = [bytesOfCursor(text), Number(digits)];
  const isInside = compareBytes(from, key) >= 0 && (end.length === 0 || compareBytes(from, end) < 0);
  if (!isInside || revision === 0 || !Number.isSafeInteger(revision)) throw wrongCursor(cursor);
  return { from, revision };
}
