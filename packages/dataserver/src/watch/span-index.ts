import { type Bytes, binaryString, compareBytes, LazyMap, prefixEnd } from '@remora/base';

/** An item of the index, found by the keys that it covers: one key, or those from `key` up to `end` (empty: no end). */
export interface Spanned {
  readonly key: Bytes;
  /** Undefined: covers `key` alone. */
  readonly end: Bytes | undefined;
}

/**
 * Finds the items that cover a key among very many items.
 *
 * X1. Every key of a span begins with the span's stem: the key itself, the prefix of a prefix span, otherwise the
 *     common prefix of start and end. So each item that covers a key is found under one of the key's prefixes.
 * X2. Only prefixes as long as some stem are looked up. Spans are nearly always prefixes of a few lengths. Spans
 *     without a common prefix, such as all keys, share the empty stem and are examined one by one.
 */
export class SpanIndex<T extends Spanned> {
  readonly #byStem = new LazyMap<string, Set<T>>();
  /** The number of stems of each length. */
  readonly #lengths = new LazyMap<number, number>();

  add(item: T): void {
    const stem = binaryString(stemOf(item));
    const items = this.#byStem.get(stem);
    if (items !== undefined) {
      items.add(item);
      return;
    }
    this.#byStem.set(stem, new Set([item]));
    this.#lengths.set(stem.length, (this.#lengths.get(stem.length) ?? 0) + 1);
  }

  /** The item must be there. */
  remove(item: T): void {
    const stem = binaryString(stemOf(item));
    const items = this.#byStem.get(stem);
    items?.delete(item);
    if (items?.size !== 0) return;
    this.#byStem.delete(stem);
    const left = (this.#lengths.get(stem.length) ?? 0) - 1;
    if (left > 0) this.#lengths.set(stem.length, left);
    else this.#lengths.delete(stem.length);
  }

  /** Calls `fn` for each item that covers `key`. */
  forEach(key: Bytes, fn: (item: T) => void): void {
    const name = binaryString(key);
    for (const length of this.#lengths.keys()) {
      if (length > name.length) continue;
      const items = this.#byStem.get(length === name.length ? name : name.slice(0, length));
      if (items !== undefined) for (const item of items) if (covers(item, key)) fn(item);
    }
  }
}

export function covers({ key: start, end }: Spanned, key: Bytes): boolean {
  if (end === undefined) return compareBytes(start, key) === 0;
  return compareBytes(start, key) <= 0 && (end.length === 0 || compareBytes(key, end) < 0);
}

/** Returns what `covers` does for one item, made for very many keys: the stem rules out nearly all of them (X1). */
export function spanTest(item: Spanned): (key: Bytes) => boolean {
  const { key: start, end } = item;
  const stem = stemOf(item);
  if (end === undefined) return (key) => key.length === start.length && beginsWith(key, stem);
  if (isPrefix(start, end)) return (key) => beginsWith(key, stem);
  return (key) => beginsWith(key, stem) && covers(item, key);
}

/** Compares from the end of the stem on: keys that differ mostly differ there. */
function beginsWith(key: Bytes, stem: Bytes): boolean {
  let i = stem.length;
  if (key.length < i) return false;
  while (--i >= 0) if (key[i] !== stem[i]) return false;
  return true;
}

/** X1. */
function stemOf({ key, end }: Spanned): Bytes {
  if (end === undefined || isPrefix(key, end)) return key;
  let common = 0;
  while (common < key.length && common < end.length && key[common] === end[common]) common++;
  return key.subarray(0, common);
}

function isPrefix(key: Bytes, end: Bytes): boolean {
  return compareBytes(prefixEnd(key), end) === 0;
}
