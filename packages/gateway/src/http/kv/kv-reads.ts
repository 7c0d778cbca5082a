import { asBuffer, type Bytes, EMPTY_BYTES, jsonBytes, ServiceError } from '@remora/base';
import { type KeyValue, type KvEvent, rangeOp, SCAN_BYTES_MAX } from '@remora/protocol';
import { invalid } from '../fields.ts';
import type { KeyVersionJson, KvAnswer, KvHistoryAnswer, KvListAnswer } from '../json/kv.ts';
import type { RangeCalls } from '../range-calls.ts';
import { onlyThese, type Target, wholeNumber, wholeNumberIn } from '../targets.ts';
import { KeyScan } from './key-scan.ts';
import { cursorOf, keyJson, keysOf, keyValueJson, type Place, placeOf } from './kv-json.ts';

export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1_000;
const HISTORY_LIMIT_DEFAULT = 20;
/** Bytes of keys and values in one page. */
export const PAGE_BYTES_MAX = SCAN_BYTES_MAX;
/** Keys that a search reads at a time, and how often one request does so. */
const SEARCH_KEYS = 1_000;
const SEARCH_SCANS_MAX = 20;
/** Scans of one page: some return nothing where many keys were deleted. */
const LIST_SCANS_MAX = 20;

/** Reads of plain keys. All are linearizable, or made at the revision that they name. */
export class KvReads {
  readonly #calls: RangeCalls;

  constructor(calls: RangeCalls) {
    this.#calls = calls;
  }

  /** @throws ServiceError KEY_NOT_FOUND; COMPACTED, FUTURE_REVISION */
  async get(key: Bytes, { query }: Target): Promise<KvAnswer> {
    onlyThese(query, ['revision']);
    const at = wholeNumber(query, 'revision', 0);
    const op = rangeOp({ key: requireKey(key) }, { revision: at });
    const { result, revision: newest } = await this.#calls.read({ type: 'range', op, serializable: false }, 'range');
    const revision = at === 0 ? newest : at;
    const [kv] = result.kvs;
    if (kv === undefined) {
      const message = at === 0 ? 'there is no such key' : `there was no such key at revision ${at}`;
      throw new ServiceError('KEY_NOT_FOUND', message, { details: { shown: { revision } } });
    }
    return { ...keyValueJson(kv), revision };
  }

  async list({ query }: Target, signal: AbortSignal): Promise<KvListAnswer> {
    onlyThese(query, ['prefix', 'after', 'limit', 'values', 'contains', 'revision']);
    const contains = query.get('contains');
    const span = keysOf(query.get('prefix') ?? EMPTY_BYTES);
    const place = placeOf(span, { after: query.get('after'), revision: wholeNumber(query, 'revision', 0) });
    const limit = wholeNumberIn(query, 'limit', { otherwise: LIST_LIMIT_DEFAULT, min: 1, max: LIST_LIMIT_MAX });
    const withValues = flagOf(query, 'values', contains === undefined);
    if (withValues && contains !== undefined) throw invalid('values: a search returns keys without their values');
    const scan = new KeyScan(this.#calls, span.end, place, signal);
    const kvs =
      contains === undefined
        ? await this.#page(scan, { limit, withValues })
        : await this.#found(scan, { limit, contains: asBuffer(contains) });
    return { kvs: kvs.map(withValues ? keyValueJson : keyJson), revision: scan.revision, ...nextOf(scan.place) };
  }

  async #page(
    scan: KeyScan,
    { limit, withValues }: { readonly limit: number; readonly withValues: boolean },
  ): Promise<readonly KeyValue[]> {
    const kvs: KeyValue[] = [];
    let bytes = PAGE_BYTES_MAX;
    for (let i = 0; i < LIST_SCANS_MAX && kvs.length < limit && bytes > 0 && !scan.isOver; i++) {
      const page = await scan.read({ limit: limit - kvs.length, bytes, keysOnly: !withValues });
      for (const { key, value } of page) bytes -= key.length + value.length;
      kvs.push(...page);
    }
    return kvs;
  }

  async #found(
    scan: KeyScan,
    { limit, contains }: { readonly limit: number; readonly contains: Buffer },
  ): Promise<readonly KeyValue[]> {
    const kvs: KeyValue[] = [];
    for (let i = 0; i < SEARCH_SCANS_MAX && kvs.length < limit && !scan.isOver; i++) {
      for (const kv of await scan.read({ limit: SEARCH_KEYS, bytes: PAGE_BYTES_MAX, keysOnly: true })) {
        if (!asBuffer(kv.key).includes(contains)) continue;
        if (kvs.length === limit) {
          scan.goTo(kv.key);
          break;
        }
        kvs.push(kv);
      }
    }
    return kvs;
  }

  /** The newest version first. */
  async history(key: Bytes, { query }: Target): Promise<KvHistoryAnswer> {
    onlyThese(query, ['after', 'limit']);
    const before = wholeNumber(query, 'after', 0);
    const limit = wholeNumberIn(query, 'limit', { otherwise: HISTORY_LIMIT_DEFAULT, min: 1, max: LIST_LIMIT_MAX });
    const { result, revision } = await this.#calls.read(
      { type: 'history', key: requireKey(key), before, limit, bytes: PAGE_BYTES_MAX },
      'history',
      { current: true },
    );
    const { versions, more, compactRevision } = result;
    const last = versions.at(-1)?.kv.modRevision;
    const next = more && last !== undefined ? { next: String(last) } : {};
    return { versions: versions.map(versionJson), revision, compactRevision, ...next };
  }
}

function versionJson({ type, kv }: KvEvent): KeyVersionJson {
  if (type === 'put') return { type, ...keyValueJson(kv) };
  return { type, key: jsonBytes(kv.key), modRevision: kv.modRevision };
}

export function requireKey(key: Bytes): Bytes {
  if (key.length > 0) return key;
  throw new ServiceError('EMPTY_KEY', 'the path has no key: /v1/kv/{key}, percent-encoded');
}

export function nextOf(place: Place | undefined): { readonly next?: string } {
  return place === undefined ? {} : { next: cursorOf(place) };
}

/** `true` or `false` in a query. */
export function flagOf(query: Target['query'], name: string, otherwise: boolean): boolean {
  const value = query.get(name);
  if (value === undefined) return otherwise;
  const text = asBuffer(value).toString();
  if (text === 'true' || text === 'false') return text === 'true';
  throw invalid(`${name} must be true or false`);
}
