/** Keys, names and values: text where they are UTF-8, otherwise base64 (`JsonBytes` of the HTTP API). */
import type { KeyJson } from '@remora/gateway/http/json/kv';

export type JsonBytes = KeyJson['key'];

const UNRESERVED = /[A-Za-z0-9_~-]/;
const encoder = new TextEncoder();

export function toBytes(value: JsonBytes): Uint8Array {
  if (typeof value === 'string') return encoder.encode(value);
  return Uint8Array.from(atob(value.base64), (char) => char.charCodeAt(0));
}

/** Returns text if the bytes are UTF-8, otherwise base64. */
export function fromBytes(bytes: Uint8Array): JsonBytes {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')) };
  }
}

export function byteLength(value: JsonBytes): number {
  return typeof value === 'string' ? utf8Length(value) : toBytes(value).length;
}

/** Distinguishes values as keys of a Map, also text from base64 with the same letters. */
export function identityOf(value: JsonBytes): string {
  return typeof value === 'string' ? `t${value}` : `b${value.base64}`;
}

export function isEmpty(value: JsonBytes): boolean {
  return typeof value === 'string' ? value === '' : value.base64 === '';
}

/**
 * Percent-encodes every byte but letters, digits, `_`, `~` and `-`, for a segment of a path or a value of a query. A
 * dot is encoded, too, which browsers decode again where a segment is `.` or `..`: see `isPathSafe`.
 */
export function percentEncoded(value: JsonBytes): string {
  return Array.from(toBytes(value), (byte) => {
    const char = String.fromCharCode(byte);
    return UNRESERVED.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

/** Returns undefined if a percent sign is not followed by two hexadecimal digits. */
export function percentDecoded(text: string): JsonBytes | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  const bytes: number[] = [];
  for (const [part] of text.matchAll(/%..|[^%]+/gs)) {
    if (part.startsWith('%')) bytes.push(Number.parseInt(part.slice(1), 16));
    else bytes.push(...encoder.encode(part));
  }
  return fromBytes(Uint8Array.from(bytes));
}

/** Browsers remove the segments `.` and `..` from paths, in every encoding, so these names have no path. */
export function isPathSafe(value: JsonBytes): boolean {
  return value !== '.' && value !== '..' && !isEmpty(value);
}

/** Compares as the cluster orders keys: byte by byte. */
export function compareBytes(a: JsonBytes, b: JsonBytes): number {
  const [left, right] = [toBytes(a), toBytes(b)];
  const common = Math.min(left.length, right.length);
  for (let at = 0; at < common; at++) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function utf8Length(text: string): number {
  let length = 0;
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    length += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4;
  }
  return length;
}
