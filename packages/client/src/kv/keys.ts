import { type Bytes, copyBytes, EMPTY_BYTES, jsonBytes, prefixEnd, ServiceError, utf8 } from '@remora/base';
import type { KeyValue } from '@remora/protocol';
import { checkOptions, optionSet } from '../options/options.ts';
import { json, text } from '../values/codecs.ts';
import { idText, Printable } from '../values/printable.ts';

/** Bytes, or text, which stands for its UTF-8. */
export type BytesLike = string | Uint8Array;

/**
 * One key; all keys that begin with `prefix`; or the keys from `start` up to, but without, `end`. An empty prefix
 * selects all keys, an absent `end` all keys from `start` on.
 */
export type KeySelector =
  | BytesLike
  | { readonly prefix: BytesLike }
  | { readonly start: BytesLike; readonly end?: BytesLike };

/** The data of a `KvPair`. */
export type KvFields = Pick<KeyValue, 'key' | 'value' | 'createRevision' | 'modRevision' | 'version' | 'lease'>;

/**
 * A key with its value. The caller owns its bytes. It prints as text: `console.log(pair)`, `JSON.stringify(pair)`.
 */
export class KvPair extends Printable implements KvFields {
  readonly key: Buffer;
  readonly value: Buffer;
  /** The revision at which the key was created. */
  readonly createRevision: number;
  /** The revision of the last put. */
  readonly modRevision: number;
  /** 1 for a key that was just created; each put adds 1. */
  readonly version: number;
  /** The lease with which the key ends; 0n: none. */
  readonly lease: bigint;

  constructor({ key, value, createRevision, modRevision, version, lease }: KvFields) {
    super();
    // Copied: the bytes are slices of a frame, which may be large.
    this.key = copyBytes(key);
    this.value = copyBytes(value);
    this.createRevision = createRevision;
    this.modRevision = modRevision;
    this.version = version;
    this.lease = lease;
  }

  /** The value as text. @throws ServiceError INVALID_ARGUMENT when it is not UTF-8. */
  text(): string {
    return text.decode(this.value);
  }

  /** The value, read as JSON. @throws ServiceError INVALID_ARGUMENT when it is not JSON. */
  json<T = unknown>(): T {
    return json.decode<T>(this.value);
  }

  /** Keys and values as text if they are UTF-8, otherwise as `{ base64 }`; the lease in hexadecimal. */
  toJSON(): object {
    const { key, value, createRevision, modRevision, version, lease } = this;
    const kv = { key: jsonBytes(key), value: jsonBytes(value), createRevision, modRevision, version };
    return lease === 0n ? kv : { ...kv, lease: idText(lease) };
  }
}

/**
 * Copies the bytes: the caller may overwrite them at once, while a request is encoded when its frame leaves, again for
 * each retry, and a lock is released by its name much later.
 *
 * @throws ServiceError INVALID_ARGUMENT for anything else. Otherwise the fault would appear only when the frame is
 *   encoded, and would hit the other requests in it.
 */
export function toBytes(text: BytesLike): Bytes {
  if (typeof text === 'string') return utf8(wellFormed(text, 'names, keys and values'));
  if (text instanceof Uint8Array) return copyBytes(text);
  throw notBytes(text, 'names, keys and values');
}

/** @throws ServiceError INVALID_ARGUMENT for what is neither text nor bytes. */
export function requireBytes(given: BytesLike, what: string): void {
  if (typeof given === 'string') wellFormed(given, what);
  else if (!(given instanceof Uint8Array)) {
    throw notBytes(given, what);
  }
}

function notBytes(given: unknown, what: string): ServiceError {
  const hint = given === undefined ? '' : '; other values as JSON: json.encode(value)';
  return new ServiceError('INVALID_ARGUMENT', `${what}: expected text or bytes, got ${typeof given}${hint}`);
}

/** For text that may not be bytes, such as a namespace. @throws ServiceError INVALID_ARGUMENT for anything else. */
export function requireText(text: string, what: string): string {
  if (typeof text === 'string') return wellFormed(text, what);
  throw new ServiceError('INVALID_ARGUMENT', `${what}: expected text, got ${typeof text}`);
}

/** Half of a surrogate pair has no UTF-8 form: two such names would become the same one. */
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

/** An empty key is not allowed, so `\0` is the first key, as in etcd. */
const FIRST_KEY = Buffer.from([0]);

/**
 * The keys that a selector stands for. An empty key or `end` is refused: it is more likely a mistake than meant for all
 * keys, and a delete by it cannot be undone.
 *
 * @throws ServiceError EMPTY_KEY, INVALID_ARGUMENT for these.
 */
export function keyRange(selector: KeySelector): { readonly key: Bytes; readonly end?: Bytes } {
  if (typeof selector !== 'object' || selector === null || selector instanceof Uint8Array) {
    const key = toBytes(selector);
    if (key.length > 0) return { key };
    throw new ServiceError('EMPTY_KEY', "a key is missing; { prefix: '' } selects all keys");
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

export function toPair(kv: KeyValue): KvPair {
  return new KvPair(kv);
}
