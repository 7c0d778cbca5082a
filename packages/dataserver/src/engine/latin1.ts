/**
 * Keys inside the engine are "binary" (latin1) strings: one character per byte.
 *
 * Their order under `<` is the byte order of the keys they stand for, they hash and compare fast, and a one-byte
 * string is several times smaller than a Buffer. See docs/decisions/0002-latin1-keys-in-memory.md. They never leave
 * this folder: the engine's API speaks bytes.
 */
import { asBuffer, type Bytes, type Span } from '@remora/base';

/** A key as a latin1 string. */
export type Name = string;

/** A span in names: `[start, end)`; an empty `end` is unbounded. */
export interface NameRange {
  readonly start: Name;
  readonly end: Name;
}

export function nameOf(key: Bytes): Name {
  return asBuffer(key).toString('latin1');
}

export function keyOf(name: Name): Buffer {
  return Buffer.from(name, 'latin1');
}

export function rangeOf(span: Span): NameRange {
  return { start: nameOf(span.start), end: nameOf(span.end) };
}

export function compareNames(a: Name, b: Name): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function rangeHolds(range: NameRange, name: Name): boolean {
  return range.start <= name && (range.end === '' || name < range.end);
}

export function anyRangeHolds(ranges: readonly NameRange[], name: Name): boolean {
  for (const range of ranges) if (rangeHolds(range, name)) return true;
  return false;
}

/** Whether `outer` holds every name of `inner`. */
export function rangeCovers(outer: NameRange, inner: NameRange): boolean {
  if (inner.start < outer.start) return false;
  return outer.end === '' || (inner.end !== '' && inner.end <= outer.end);
}

export function rangesOverlap(a: NameRange, b: NameRange): boolean {
  return (a.end === '' || b.start < a.end) && (b.end === '' || a.start < b.end);
}
