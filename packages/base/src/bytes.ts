/** Bytes as they are in memory everywhere inside Remora. Keys order by unsigned byte value, shorter first on a tie. */
export type Bytes = Uint8Array;

export const EMPTY_BYTES: Bytes = new Uint8Array(0);

/** Orders two byte strings: negative, zero or positive, as `Array.prototype.sort` wants it. */
export function compareBytes(a: Bytes, b: Bytes): number {
  return Buffer.compare(a, b);
}

export function equalBytes(a: Bytes, b: Bytes): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

export function utf8(text: string): Buffer {
  return Buffer.from(text, 'utf8');
}

export function concatBytes(...parts: readonly Bytes[]): Buffer {
  return Buffer.concat(parts);
}

/** Views `bytes` as a Buffer without copying it. */
export function asBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Copies bytes out of a larger buffer (a network frame, a log block), so that retaining them does not pin it. */
export function copyBytes(bytes: Bytes): Buffer {
  return Buffer.from(bytes);
}

/** The smallest key above every key that begins with `prefix`; empty (unbounded) when there is none. */
export function prefixEnd(prefix: Bytes): Bytes {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const byte = prefix[i] ?? 0;
    if (byte < 0xff) {
      const end = Buffer.from(prefix.subarray(0, i + 1));
      end[i] = byte + 1;
      return end;
    }
  }
  return EMPTY_BYTES;
}

/** The smallest key above `key`. */
export function keyAfter(key: Bytes): Buffer {
  return Buffer.concat([key, Buffer.from([0])]);
}

/** A span of keys `[start, end)`; an empty `end` is unbounded. */
export interface Span {
  readonly start: Bytes;
  readonly end: Bytes;
}

export function spanContains(span: Span, key: Bytes): boolean {
  return compareBytes(span.start, key) <= 0 && (span.end.length === 0 || compareBytes(key, span.end) < 0);
}

/** Whether `outer` holds every key of `inner`. */
export function spanCovers(outer: Span, inner: Span): boolean {
  if (compareBytes(outer.start, inner.start) > 0) return false;
  if (outer.end.length === 0) return true;
  return inner.end.length !== 0 && compareBytes(inner.end, outer.end) <= 0;
}

/**
 * Bytes as a string of the characters 0 to 255, one per byte: hashes fast as a key of a `Map`, and orders as the bytes
 * do. For indexes in memory only, never shown or sent.
 */
export function binaryString(bytes: Bytes): string {
  return asBuffer(bytes).toString('latin1');
}
