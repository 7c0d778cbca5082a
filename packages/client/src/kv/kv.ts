import { keyAfter, ServiceError } from '@remora/base';
import {
  type Command,
  type CommandResult,
  type Compare,
  isLockCompare,
  type KvOp,
  type KvResult,
  type RangeOp,
  rangeOp,
} from '@remora/protocol';
import { lockCompare, notHeld } from '../lock/lock-version.ts';
import { requestMsOf } from '../options/duration.ts';
import { leaseOrNone, object, requireRevision, sortOrder, sortTarget } from '../options/option-kinds.ts';
import { checkOptions, shown } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { type BytesLike, type KeySelector, type KvPair, keyRange, requireBytes, toBytes, toPair } from './keys.ts';
import {
  COMPACT_OPTIONS,
  DELETE_OPTIONS,
  type DeleteOptions,
  GET_OPTIONS,
  GRANT_COMPARISON,
  KEY_COMPARISON,
  type KeyTxnCompare,
  type OperationOptions,
  PAGES_OPTIONS,
  type PagesOptions,
  PUT_OPTIONS,
  type PutOptions,
  RANGE_OPTIONS,
  type RangeOptions,
  type ReadOptions,
  SORT,
  TRANSACTION,
  TXN_DELETE,
  TXN_OPTIONS,
  TXN_PUT,
  TXN_READ,
  type TxnCompare,
  type TxnOperation,
  type TxnRequest,
  type WriteOptions,
} from './kv-options.ts';
import { KvWatch, WATCH_OPTIONS, type WatchOptions } from './watch.ts';

export interface RangeAnswer {
  readonly kvs: readonly KvPair[];
  /** More keys are selected than `limit` allowed. */
  readonly more: boolean;
  /** How many keys are selected, whatever `limit` says. */
  readonly count: number;
  /** The newest revision at the time of the read. */
  readonly revision: number;
}

export interface ScanPage {
  readonly kvs: readonly KvPair[];
  /** The revision that all pages show. */
  readonly revision: number;
}

/** The result of one operation of a transaction. */
export type TxnAnswer =
  | ({ readonly type: 'get' } & Omit<RangeAnswer, 'revision'>)
  | { readonly type: 'put'; readonly prev: KvPair | undefined }
  | { readonly type: 'delete'; readonly deleted: number; readonly prev: readonly KvPair[] };

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
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
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
   * Reads the selected keys in one answer; see `pages` for more than fits.
   *
   * @throws ServiceError COMPACTED; see `Kv`.
   */
  async range(selector: KeySelector, options: RangeOptions = {}): Promise<RangeAnswer> {
    checkOptions(RANGE_OPTIONS, options);
    const op = readOf(selector, options);
    const query = { type: 'range', op, serializable: options.serializable ?? false } as const;
    const { result, revision } = await this.#requester.query(query, this.#options(options));
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
    const { result, revision } = await this.#write({ type: 'kv', op }, options);
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
    const { result, revision } = await this.#write({ type: 'kv', op }, options);
    if (result.type !== 'delete') throw unexpected(result.type);
    return { revision, deleted: result.deleted, prev: result.prev.map(toPair) };
  }

  /**
   * Applies all of `success` if every comparison holds, otherwise all of `failure`: atomically, under one revision.
   *
   * The comparison `{ held: lock }` holds while that grant has its lock. With the option `fence` instead, the whole
   * transaction is refused (FENCED) when the grant has lost it.
   */
  async txn(
    request: TxnRequest,
    options: WriteOptions = {},
  ): Promise<{ readonly succeeded: boolean; readonly results: readonly TxnAnswer[]; readonly revision: number }> {
    checkOptions(TRANSACTION, request);
    checkOptions(TXN_OPTIONS, options);
    const txn = {
      compare: (request.compare ?? []).map(compareOf),
      success: (request.success ?? []).map(opOf),
      failure: (request.failure ?? []).map(opOf),
    };
    const onlyReads = [...txn.success, ...txn.failure].every((op) => op.type === 'range');
    // Locks keep no history that a read could use, so a comparison of a lock goes through the log.
    const isCommand = !onlyReads || options.fence !== undefined || txn.compare.some(isLockCompare);
    const { result, revision } = isCommand
      ? await this.#write({ type: 'txn', txn }, options)
      : await this.#requester.query({ type: 'readTxn', txn, serializable: false }, this.#options(options));
    if (result.type !== 'txn') throw unexpected(result.type);
    return { succeeded: result.succeeded, results: result.results.map(txnAnswer), revision };
  }

  /**
   * Reads all selected pairs in the order of their keys, page by page, as of one revision. Use it for more pairs than
   * one answer should carry. There is at least one page, which may be empty.
   *
   * @throws ServiceError COMPACTED when that revision is compacted while the pages are read; see `Kv` for the others.
   */
  async *pages(selector: KeySelector, options: PagesOptions = {}): AsyncGenerator<ScanPage> {
    checkOptions(PAGES_OPTIONS, options);
    const { key, end = keyAfter(key) } = keyRange(selector);
    const bytes = options.pageBytes ?? SCAN_PAGE_BYTES;
    let revision = options.revision ?? 0;
    for (let from: Uint8Array | undefined = key, first = true; from !== undefined; first = false) {
      const query = { type: 'scan', key: from, end, revision, bytes } as const;
      const answer = await this.#requester.query(query, this.#options(options));
      if (answer.result.type !== 'scan') throw unexpected(answer.result.type);
      if (revision === 0) revision = answer.revision;
      from = answer.result.next;
      if (first || answer.result.kvs.length > 0) yield { kvs: answer.result.kvs.map(toPair), revision };
    }
  }

  /**
   * Watches the selected keys: returns their changes one by one, in order and without gaps, also across reconnects. End
   * it by leaving the loop, by `close`, or by its `signal`.
   */
  watch(selector: KeySelector, options: WatchOptions = {}): KvWatch {
    checkOptions(WATCH_OPTIONS, options);
    return new KvWatch(this.#requester, keyRange(selector), options);
  }

  /** Discards the history before `revision`: reads and watches of earlier revisions then end with COMPACTED. */
  async compact(revision: number, options: OperationOptions = {}): Promise<void> {
    checkOptions(COMPACT_OPTIONS, options);
    requireRevision(revision, 'revision', 1);
    await this.#requester.command({ type: 'compact', revision }, this.#options(options));
  }

  async #write(
    command: Extract<Command, { type: 'kv' | 'txn' }>,
    options: WriteOptions,
  ): Promise<{ readonly result: CommandResult; readonly revision: number }> {
    if (options.fence === undefined) return this.#requester.command(command, this.#options(options));
    const held = lockCompare(options.fence);
    const op: KvOp = command.type === 'kv' ? command.op : command;
    const txn = { compare: [held], success: [op], failure: [] };
    const { result, revision } = await this.#requester.command({ type: 'txn', txn }, this.#options(options));
    if (result.type !== 'txn') throw unexpected(result.type);
    const [written] = result.results;
    if (written === undefined) throw notHeld(held);
    return { result: written, revision };
  }

  #options(options: OperationOptions): { timeoutMs: number; signal: AbortSignal | undefined } {
    const timeoutMs = options.timeout === undefined ? this.#timeoutMs : requestMsOf(options.timeout, 'timeout');
    return { timeoutMs, signal: options.signal };
  }
}

function readOf(selector: KeySelector, options: RangeOptions): RangeOp {
  if (options.sort !== undefined) checkSort(options.sort);
  // Field by field: combining objects costs a tenth of a read here.
  return rangeOp(keyRange(selector), {
    limit: options.limit ?? 0,
    revision: options.revision ?? 0,
    sortOrder: options.sort?.order ?? 'none',
    sortTarget: options.sort?.by ?? 'key',
    keysOnly: options.keysOnly ?? false,
    countOnly: options.countOnly ?? false,
  });
}

/** Both decide which pairs a limit leaves out, so neither has a default. */
function checkSort(sort: NonNullable<RangeOptions['sort']>): void {
  checkOptions(SORT, sort);
  sortTarget(sort.by, 'sort.by');
  sortOrder(sort.order, 'sort.order');
}

function putOp(put: Extract<TxnOperation, { put: unknown }>): Extract<KvOp, { type: 'put' }> {
  return {
    type: 'put',
    key: toBytes(put.put),
    value: toBytes(put.value),
    lease: put.lease ?? 0n,
    prevKv: put.prevKv ?? false,
    ignoreValue: false,
    ignoreLease: false,
  };
}

function opOf(operation: TxnOperation): KvOp {
  object(operation, 'an operation of a transaction');
  if ('put' in operation) {
    checkOptions(TXN_PUT, operation);
    return putOp(operation);
  }
  if ('delete' in operation) {
    checkOptions(TXN_DELETE, operation);
    return { type: 'delete', ...keyRange(operation.delete), prevKv: operation.prevKv ?? false };
  }
  checkOptions(TXN_READ, operation);
  return readOf(operation.get, operation);
}

const RESULTS = { '=': 'equal', '>': 'greater', '<': 'less', '!=': 'notEqual' } as const;

function compareOf(compare: TxnCompare): Compare {
  object(compare, 'a comparison of a transaction');
  if ('held' in compare) {
    checkOptions(GRANT_COMPARISON, compare);
    return lockCompare(compare.held);
  }
  checkOptions(KEY_COMPARISON, compare);
  const base = { ...keyRange(compare.key), result: resultOf(compare.is) };
  const { target, than } = compare;
  if (target === 'value' && (typeof than === 'string' || than instanceof Uint8Array)) {
    return { ...base, target: { of: target, value: toBytes(than) } };
  }
  // 0: for keys without a lease.
  if (target === 'lease' && typeof than === 'bigint') {
    leaseOrNone(than, 'a lease to compare with');
    return { ...base, target: { of: target, value: than } };
  }
  if ((target === 'version' || target === 'create' || target === 'mod') && typeof than === 'number') {
    return { ...base, target: { of: target, value: requireRevision(than, `a ${target} to compare with`) } };
  }
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `a comparison: ${shown(target)} cannot be compared with a value of type ${typeof than}`,
  );
}

function resultOf(is: KeyTxnCompare['is']): (typeof RESULTS)[keyof typeof RESULTS] {
  if (typeof is === 'string' && Object.hasOwn(RESULTS, is)) return RESULTS[is];
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `is: expected one of ${Object.keys(RESULTS).join(', ')}, got ${shown(is)}`,
  );
}

function rangeAnswer(result: Extract<KvResult, { type: 'range' }>): Omit<RangeAnswer, 'revision'> {
  return { kvs: result.kvs.map(toPair), more: result.more, count: result.count };
}

function txnAnswer(result: KvResult): TxnAnswer {
  switch (result.type) {
    case 'range':
      return { type: 'get', ...rangeAnswer(result) };
    case 'put':
      return { type: 'put', prev: result.prev === undefined ? undefined : toPair(result.prev) };
    case 'delete':
      return { type: 'delete', deleted: result.deleted, prev: result.prev.map(toPair) };
    case 'txn':
      throw unexpected(result.type);
  }
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a request was answered by a result of another kind: ${type}`);
}
