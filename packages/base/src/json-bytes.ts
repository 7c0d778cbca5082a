import { type Bytes, utf8 } from './bytes.ts';

/** Bytes in JSON: as text if they are UTF-8, otherwise as marked base64. */
export type JsonBytes = string | { readonly base64: string };

/** Half of a surrogate pair, which has no UTF-8 form. */
const LONE_SURROGATE = /\p{Surrogate}/u;

export function jsonBytes(bytes: Bytes): JsonBytes {
  return utf8Text(bytes) ?? { base64: Buffer.from(bytes).toString('base64') };
}

/** The inverse of `jsonBytes`; undefined for anything else. */
export function fromJsonBytes(value: unknown): Bytes | undefined {
  if (typeof value === 'string') return LONE_SURROGATE.test(value) ? undefined : utf8(value);
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return undefined;
  const { base64 } = value as { readonly base64?: unknown };
  if (typeof base64 !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return undefined;
  return Buffer.from(base64, 'base64');
}

/** The text whose UTF-8 form the bytes are; undefined if they are not UTF-8. */
export function utf8Text(bytes: Bytes): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
