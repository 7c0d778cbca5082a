import { type Bytes, copyBytes, EMPTY_BYTES, prefixEnd, ServiceError, utf8 } from '@remora/base';
import type { KeyValue } from '@remora/protocol';
import { checkOptions, optionSet } from '../options/options.ts';

/** Text stands for its UTF-8. */
export type BytesLike = string | Uint8Array;

/** One key, all keys that begin with a prefix, or the keys from `start` up to but without `end` (absent: the last). */
export type KeySelector =
  | BytesLike
  | { readonly prefix: BytesLike }
  | { readonly start: BytesLike; readonly end?: BytesLike };

/** A pair as the SDK hands it out: its bytes are the caller's own. */
export interface KvPair {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
  /** 1 for a key just created; grows with each put. */
  readonly version: number;
  /** 0n: none. */
  readonly lease: bigint;
}

/**
 * Copied, as the bytes are the caller's, who may use their place for something else at once: a request is encoded when its
 * frame leaves, once more for each repetition, and a lock is given back by its name long after.
 *
 * @throws ServiceError INVALID_ARGUMENT for anything else, which would be found out only when its frame is encoded, together
 *   with the requests of others.
 */
export function toBytes(text: BytesLike): Bytes {
  if (typeof text === 'string') return utf8(wellFormed(text, 'names, keys and values'));
  if (text instanceof Uint8Array) return copyBytes(text);
  throw new ServiceError('INVALID_ARGUMENT', `names, keys and values: expected text or bytes, got ${typeof text}`);
}

/** @throws ServiceError INVALID_ARGUMENT for what is neither text nor bytes. */
export function requireBytes(given: BytesLike, what: string): void {
  if (typeof given === 'string') wellFormed(given, what);
  else if (!(given instanceof Uint8Array)) {
    throw new ServiceError('INVALID_ARGUMENT', `${what}: expected text or bytes, got ${typeof given}`);
  }
}

/** The same of what is text only, such as a namespace. @throws ServiceError INVALID_ARGUMENT for anything else. */
export function requireText(text: string, what: string): string {
  if (typeof text === 'string') return wellFormed(text, what);
  throw new ServiceError('INVALID_ARGUMENT', `${what}: expected text, got ${typeof text}`);
}

/** Half of a surrogate pair has no UTF-8: two such names would become one. */
function wellFormed(text: string, what: string): string {
  if (text.isWellFormed()) return text;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `${what}: expected well-formed text, got text with half of a surrogate pair`,
  );
}

const checked = (): void => {};
export const PREFIX_SELECTOR = optionSet<{ prefix: BytesLike }>('keys with a prefix', { prefix: checked });
/** With a misspelt `end` the range would go on to the last key. */
export const RANGE_SELECTOR = optionSet<{ start: BytesLike; end: BytesLike }>('a range of keys', {
  ...{ start: checked, end: checked },
});

/** etcd names the first key of all `\0`, as an empty key is not allowed. */
const FIRST_KEY = Buffer.from([0]);

/**
 * An `end` that is there and empty is refused: more likely it was computed wrongly than meant for the last key, and what is
 * deleted by it is gone.
 *
 * @throws ServiceError INVALID_ARGUMENT for it.
 */
export function keyRange(selector: KeySelector): { readonly key: Bytes; readonly end?: Bytes } {
  if (typeof selector !== 'object' || selector === null || selector instanceof Uint8Array) {
    return { key: toBytes(selector) };
  }
  if ('prefix' in selector) {
    checkOptions(PREFIX_SELECTOR, selector);
    const prefix = toBytes(selector.prefix);
    if (prefix.length === 0) return { key: FIRST_KEY, end: EMPTY_BYTES };
    return { key: prefix, end: prefixEnd(prefix) };
  }
  checkOptions(RANGE_SELECTOR, selector);
  const start = toBytes(selector.start);
  const key = start.length === 0 ? FIRST_KEY : start;
  if (selector.end === undefined) return { key, end: EMPTY_BYTES };
  const end = toBytes(selector.end);
  if (end.length > 0) return { key, end };
  throw new ServiceError('INVALID_ARGUMENT', 'the end of a range is empty; omit `end` for all keys from `start` on');
}

/** Copied, as what a frame's slices are part of may be large. */
export function toPair(kv: KeyValue): KvPair {
  return { ...kv, key: copyBytes(kv.key), value: copyBytes(kv.value) };
}
