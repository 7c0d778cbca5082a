import { createHash } from 'node:crypto';
import { asBuffer, type Bytes, ServiceError } from '@remora/base';
import {
  type DeleteOp,
  type KeyCompare,
  type KeyValue,
  type KvOp,
  type KvResult,
  type LockCompare,
  type PutOp,
  rangeOp,
  type Txn,
} from '@remora/protocol';
import type { RequestTerms } from '../../backend.ts';
import { REQUEST_ID_MAX } from '../../lock/lock-requests.ts';
import { checkSize, opBytes, type RequestLimits } from '../../request-limits.ts';
import { type Fields, invalid } from '../fields.ts';
import type { KeyChangedDetails, KvDeleteAnswer, KvPutAnswer } from '../json/kv.ts';
import type { RangeCalls, Revised } from '../range-calls.ts';
import { onlyThese, type Target, text, wholeNumber } from '../targets.ts';
import { FENCE_PARAMETERS, fenceAt, fenceIn } from './kv-fence.ts';
import { keyJson, keysOf, keyValueJson, parseLease } from './kv-json.ts';
import { requireKey } from './kv-reads.ts';

/** A larger value is left out of the refusal of a change. */
const SHOWN_VALUE_BYTES_MAX = 64 * 1024;
const ANY_REVISION = { min: 0, max: Number.MAX_SAFE_INTEGER };

/** What must hold for a change of one key. */
interface Condition {
  /** 0: the key is absent. */
  readonly modRevision: number | undefined;
  readonly version: number | undefined;
  /** The grant that has to hold its lock. */
  readonly fence: LockCompare | undefined;
}

/**
 * Changes of plain keys.
 *
 * KW1. A change with a `requestId` is carried out once, however often the same call is sent within half a minute, and
 *      each call gets the outcome. The id that ranges remember covers the whole request: another request with the same
 *      `requestId` is another change.
 * KW2. A change without a condition on the key needs no permission to read it: it is a put or a delete, and not a
 *      transaction that may read.
 * KW3. A change with a fence is made only while that grant holds its lock: lock and key are looked at in one step.
 *      Otherwise the answer is FENCED, whatever the other conditions are.
 */
export class KvWrites {
  readonly #calls: RangeCalls;
  readonly #limits: RequestLimits;

  constructor(calls: RangeCalls, limits: RequestLimits) {
    this.#calls = calls;
    this.#limits = limits;
  }

  /** @throws ServiceError KEY_CHANGED, with the key as it is; FENCED; LEASE_NOT_FOUND */
  async put(key: Bytes, fields: Fields): Promise<KvPutAnswer> {
    const value = fields.required('value', fields.bytes('value'));
    const condition = {
      modRevision: fields.integer('ifModRevision', ANY_REVISION),
      version: fields.integer('ifVersion', ANY_REVISION),
    };
    const lease = parseLease(fields.text('lease'));
    const fence = fenceIn(fields.object('fence'));
    const chosen = fields.shortText('requestId', REQUEST_ID_MAX);
    fields.end();
    const { revision } = await this.#change(putOp(requireKey(key), value, lease), { ...condition, fence }, chosen);
    return { modRevision: revision };
  }

  /** Deleting an absent key is no error. @throws ServiceError KEY_CHANGED, with the key as it is; FENCED */
  async delete(key: Bytes, { query }: Target): Promise<KvDeleteAnswer> {
    onlyThese(query, ['ifModRevision', 'ifVersion', ...FENCE_PARAMETERS, 'requestId']);
    const condition = {
      modRevision: optionalNumber(query, 'ifModRevision'),
      version: optionalNumber(query, 'ifVersion'),
      fence: fenceAt(query),
    };
    const op: DeleteOp = { type: 'delete', key: requireKey(key), prevKv: false };
    const { result, revision } = await this.#change(op, condition, requestIdOf(query));
    return { deleted: deletedOf(result), revision };
  }

  /**
   * Deletes all keys that begin with a prefix, in one step, if none was created or changed after `unchangedSince`: the
   * revision at which the caller has looked at them.
   *
   * @throws ServiceError KEY_CHANGED
   */
  async deletePrefix({ query }: Target): Promise<KvDeleteAnswer> {
    onlyThese(query, ['prefix', 'unchangedSince', 'requestId']);
    const prefix = query.get('prefix');
    const since = optionalNumber(query, 'unchangedSince');
    if (prefix === undefined) throw invalid('prefix is missing; an empty one (prefix=) stands for all keys');
    if (since === undefined) {
      throw invalid('unchangedSince is missing: send the `revision` of the list in which you have looked at the keys');
    }
    const span = keysOf(prefix);
    const op: DeleteOp = { type: 'delete', ...span, prevKv: false };
    checkSize(opBytes(op), this.#limits);
    const compare: KeyCompare = { ...span, result: 'less', target: { of: 'mod', value: since + 1 } };
    const txn = { compare: [compare], success: [op], failure: [] };
    const terms = this.#terms(requestIdOf(query), [prefix, `delete ${since}`]);
    const { result, revision } = await this.#calls.write({ type: 'txn', txn }, 'txn', terms);
    if (result.succeeded) return { deleted: deletedOf(result.results[0]), revision };
    throw new ServiceError(
      'KEY_CHANGED',
      `a key with this prefix was created or changed after revision ${since}: look at the keys again`,
    );
  }

  /** The outcome of a change of one key. */
  async #change(
    op: PutOp | DeleteOp,
    condition: Condition,
    chosen: string | undefined,
  ): Promise<Revised<KvResult | undefined>> {
    checkSize(opBytes(op), this.#limits);
    const { modRevision, version, fence } = condition;
    const parts = op.type === 'put' ? [op.key, op.value, `${op.lease}`] : [op.key];
    const fenced = fence === undefined ? [] : [fence.lock.namespace, fence.lock.name, `${fence.version}`];
    const terms = this.#terms(chosen, [...parts, `${op.type} ${modRevision} ${version}`, ...fenced]);
    const compare = [
      ...(modRevision === undefined ? [] : [equal(op.key, 'mod', modRevision)]),
      ...(version === undefined ? [] : [equal(op.key, 'version', version)]),
    ];
    const change: KvOp =
      compare.length === 0
        ? op // KW2
        : { type: 'txn', txn: { compare, success: [op], failure: [rangeOp({ key: op.key })] } };
    const { result, revision } = await this.#write(change, fence, terms);
    if (result.type !== 'txn') return { result, revision };
    const [first] = result.results;
    if (result.succeeded) return { result: first, revision };
    throw changed(first?.type === 'range' ? first.kvs[0] : undefined);
  }

  /** KW3. */
  async #write(op: KvOp, fence: LockCompare | undefined, terms: Partial<RequestTerms>): Promise<Revised<KvResult>> {
    if (fence === undefined) {
      return op.type === 'txn'
        ? this.#calls.write(op, 'txn', terms)
        : this.#calls.write({ type: 'kv', op }, op.type, terms);
    }
    const txn: Txn = { compare: [fence], success: [op], failure: [] };
    const { result, revision } = await this.#calls.write({ type: 'txn', txn }, 'txn', terms);
    const [written] = result.results;
    if (written !== undefined) return { result: written, revision };
    const message = `version ${fence.version} no longer holds the lock; nothing was written`;
    throw new ServiceError('FENCED', message, { details: { version: fence.version } });
  }

  /** KW1. */
  #terms(chosen: string | undefined, request: readonly (Bytes | string)[]): Partial<RequestTerms> {
    if (chosen === undefined) return {};
    return { ...this.#calls.once(requestIdFor(chosen, request)), isChosenId: true };
  }
}

export function putOp(key: Bytes, value: Bytes, lease: bigint): PutOp {
  return { type: 'put', key, value, lease, prevKv: false, ignoreValue: false, ignoreLease: false };
}

export function equal(key: Bytes, of: 'mod' | 'version', value: number): KeyCompare {
  return { key, result: 'equal', target: { of, value } };
}

/** KW1. */
function requestIdFor(chosen: string, request: readonly (Bytes | string)[]): string {
  const hash = createHash('sha256');
  for (const part of ['kv', chosen, ...request]) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : asBuffer(part);
    hash.update(`${bytes.length}.`).update(bytes); // The lengths separate the parts.
  }
  return `http.${hash.digest('base64url')}`;
}

function changed(current: KeyValue | undefined): ServiceError {
  const shown: KeyChangedDetails = { current: current === undefined ? null : shortJson(current) };
  const message =
    current === undefined
      ? 'your change was not made: the key does not exist'
      : `your change was not made: the key is at revision ${current.modRevision} (version ${current.version}) now`;
  return new ServiceError('KEY_CHANGED', message, { details: { shown } });
}

function shortJson(kv: KeyValue) {
  return kv.value.length <= SHOWN_VALUE_BYTES_MAX ? keyValueJson(kv) : { ...keyJson(kv), valueBytes: kv.value.length };
}

function deletedOf(result: KvResult | undefined): number {
  return result?.type === 'delete' ? result.deleted : 0;
}

function optionalNumber(query: Target['query'], name: string): number | undefined {
  return query.has(name) ? wholeNumber(query, name, 0) : undefined;
}

function requestIdOf(query: Target['query']): string | undefined {
  const value = query.get('requestId');
  if (value === undefined) return undefined;
  const chosen = text(value, 'requestId');
  if (chosen.length > 0 && chosen.length <= REQUEST_ID_MAX) return chosen;
  throw invalid(`requestId: expected text of 1 to ${REQUEST_ID_MAX} characters`);
}
