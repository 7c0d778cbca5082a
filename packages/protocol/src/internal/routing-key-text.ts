/**
 * Routing keys as operators read and type them, such as the bounds of ranges.
 *
 *   key:orders/42         a plain key
 *   lock:orders/42        where the lock of that name lies, in the default namespace
 *   lock@jobs:orders/42   the same in the namespace "jobs"
 *   lock@jobs:            before all locks of that namespace
 *   lock:                 before all locks
 *   lease:5f3a            the first bytes of a lease's id, in hex
 *   raw:0901              the bytes themselves: what none of the forms above can say
 *   -                     no bound (the empty routing key)
 *
 * RT1. Every routing key has one text, and parsing that text returns the same bytes: what is printed can be pasted.
 * RT2. The text is one line that a terminal shows as it is: a byte of a control character, of an invisible one, of a
 *      backslash or of invalid UTF-8 is written `\xNN`. In a namespace a colon is escaped as well.
 */
import { type Bytes, equalBytes, prefixEnd, type Span, utf8Text } from '@remora/base';
import {
  DEFAULT_NAMESPACE,
  LOCK_SPACE,
  type LockId,
  lockOfKey,
  lockPrefix,
  lockStart,
  NAME_BYTES_MAX,
  NAMESPACE_BYTES_MAX,
  namespaceSpan,
} from '@remora/lock';
import { KV_SPACE, LEASE_SPACE } from './descriptor.ts';

const NO_BOUND = '-';
const LEASE_ID_BYTES = 8;
const FORM = /^(key|lock|lease|raw)(@[^:]*)?:(.*)$/su;

export function routingKeyText(key: Bytes): string {
  const [space] = key;
  const rest = key.subarray(1);
  if (space === undefined) return NO_BOUND;
  if (space === KV_SPACE) return `key:${escaped(rest)}`;
  if (space === LEASE_SPACE && rest.length <= LEASE_ID_BYTES) return `lease:${hex(rest)}`;
  if (space === LOCK_SPACE) return lockText(key) ?? `raw:${hex(key)}`;
  return `raw:${hex(key)}`;
}

export type ReadRoutingKey =
  | { readonly ok: true; readonly key: Buffer; readonly prefix: Span }
  /** `expected` completes "expected …". */
  | { readonly ok: false; readonly expected: string };

/**
 * Reads what `routingKeyText` returns; `prefix` is the span of all keys that begin with it. Undefined for text that is
 * in none of the forms: such text is a plain key where those may be typed without `key:`.
 */
export function readRoutingKey(text: string): ReadRoutingKey | undefined {
  if (text === NO_BOUND) return { ok: true, key: Buffer.of(), prefix: { start: Buffer.of(), end: Buffer.of() } };
  const [, form, namespace, rest = ''] = FORM.exec(text) ?? [];
  if (form === 'lock') return readLock(namespace?.slice(1), rest);
  if (form === undefined || namespace !== undefined) return undefined;
  if (form === 'key') return readPlain(rest);
  const bytes = /^([0-9a-fA-F]{2})*$/.test(rest) ? Buffer.from(rest, 'hex') : undefined;
  if (form === 'lease') {
    const fits = bytes !== undefined && bytes.length <= LEASE_ID_BYTES;
    return fits ? keyOf(Buffer.of(LEASE_SPACE, ...bytes)) : expected('up to 8 pairs of hex digits, as in lease:5f3a');
  }
  return bytes === undefined || bytes.length === 0 ? expected('pairs of hex digits, as in raw:0901') : keyOf(bytes);
}

function lockText(key: Bytes): string | undefined {
  if (key.length === 1) return 'lock:';
  const nameStart = 2 + (key[1] ?? 0);
  if (key.length === nameStart) {
    const namespace = utf8Text(key.subarray(2, nameStart));
    return namespace === undefined ? undefined : `lock@${escapedNamespace(namespace)}:`;
  }
  // Only the start of a lock, in the form of this layer: another key that parses to the same lock is another bound.
  const start = key.length > nameStart ? lockStart(key) : undefined;
  if (start === undefined || start.length !== key.length) return undefined;
  const lock = lockOfKey(key);
  if (lock.name.length === 0 || lock.name.length > NAME_BYTES_MAX || !equalBytes(lockPrefix(lock), key))
    return undefined;
  const namespace = lock.namespace === DEFAULT_NAMESPACE ? '' : `@${escapedNamespace(lock.namespace)}`;
  return `lock${namespace}:${escaped(lock.name)}`;
}

function readLock(namespaceText: string | undefined, nameText: string): ReadRoutingKey {
  const namespaceBytes = namespaceText === undefined ? Buffer.from(DEFAULT_NAMESPACE) : unescaped(namespaceText);
  const name = unescaped(nameText);
  if (namespaceBytes === undefined || name === undefined) return expected(ESCAPES);
  const namespace = utf8Text(namespaceBytes);
  if (namespace === undefined || namespaceBytes.length > NAMESPACE_BYTES_MAX) {
    return expected(`a namespace of text, at most ${NAMESPACE_BYTES_MAX} bytes long`);
  }
  if (name.length > NAME_BYTES_MAX) return expected(`a lock's name of at most ${NAME_BYTES_MAX} bytes`);
  if (name.length > 0) return lockKey({ namespace, name });
  return keyOf(namespaceText === undefined ? Buffer.of(LOCK_SPACE) : Buffer.from(namespaceSpan(namespace, name).start));
}

function lockKey(lock: LockId): ReadRoutingKey {
  return { ok: true, key: lockPrefix(lock), prefix: namespaceSpan(lock.namespace, lock.name) };
}

function readPlain(text: string): ReadRoutingKey {
  const bytes = unescaped(text);
  return bytes === undefined ? expected(ESCAPES) : keyOf(Buffer.concat([Buffer.of(KV_SPACE), bytes]));
}

function keyOf(key: Buffer): ReadRoutingKey {
  return { ok: true, key, prefix: { start: key, end: prefixEnd(key) } };
}

function expected(what: string): ReadRoutingKey {
  return { ok: false, expected: what };
}

const ESCAPES = 'bytes in the form \\xNN behind each backslash, as in key:a\\x00b; a backslash itself is \\x5c';

/**
 * RT2. Other and separator characters of Unicode (controls, formats, unassigned ones, line ends), and the backslash.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\\]/gu;

function escaped(bytes: Bytes): string {
  const text = utf8Text(bytes);
  if (text !== undefined) return text.replace(HIDDEN, escapedText);
  return Array.from(bytes, (byte) => {
    const char = String.fromCharCode(byte);
    return byte < 0x80 ? char.replace(HIDDEN, escapedText) : escapedText(undefined, byte);
  }).join('');
}

function escapedNamespace(namespace: string): string {
  return escaped(Buffer.from(namespace)).replaceAll(':', '\\x3a');
}

function escapedText(text: string | undefined, byte?: unknown): string {
  const bytes = text === undefined ? [Number(byte)] : Buffer.from(text);
  return Array.from(bytes, (each) => `\\x${each.toString(16).padStart(2, '0')}`).join('');
}

/** Undefined for a backslash that is not followed by `xNN`. */
function unescaped(text: string): Buffer | undefined {
  const [first = '', ...others] = text.split('\\');
  const parts = [Buffer.from(first)];
  for (const other of others) {
    if (!/^x[0-9a-fA-F]{2}/.test(other)) return undefined;
    parts.push(Buffer.from(other.slice(1, 3), 'hex'), Buffer.from(other.slice(3)));
  }
  return Buffer.concat(parts);
}

function hex(bytes: Bytes): string {
  return Buffer.from(bytes).toString('hex');
}
