/**
 * Collections that take no memory before their first entry. A node has thousands of ranges, each range has dozens of
 * collections, and most of them stay empty: an empty `Map` takes some 180 bytes, an empty `Set` 150.
 *
 * LC1. They behave like `Map` and `Set`, except that an iterator from before the first entry stays empty.
 */
const NO_MAP = new Map<never, never>();
const NO_SET = new Set<never>();

export class LazyMap<K, V> implements ReadonlyMap<K, V> {
  #map: Map<K, V> | undefined;

  get size(): number {
    return this.#map === undefined ? 0 : this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map?.get(key);
  }

  has(key: K): boolean {
    return this.#map?.has(key) === true;
  }

  set(key: K, value: V): this {
    this.#map ??= new Map();
    this.#map.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    return this.#map?.delete(key) === true;
  }

  clear(): void {
    this.#map?.clear();
  }

  keys(): MapIterator<K> {
    return (this.#map ?? NO_MAP).keys();
  }

  values(): MapIterator<V> {
    return (this.#map ?? NO_MAP).values();
  }

  entries(): MapIterator<[K, V]> {
    return (this.#map ?? NO_MAP).entries();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  forEach(fn: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) fn(value, key, this);
  }
}

export class LazySet<T> {
  #set: Set<T> | undefined;

  get size(): number {
    return this.#set === undefined ? 0 : this.#set.size;
  }

  has(value: T): boolean {
    return this.#set?.has(value) === true;
  }

  add(value: T): this {
    this.#set ??= new Set();
    this.#set.add(value);
    return this;
  }

  delete(value: T): boolean {
    return this.#set?.delete(value) === true;
  }

  clear(): void {
    this.#set?.clear();
  }

  values(): SetIterator<T> {
    return (this.#set ?? NO_SET).values();
  }

  [Symbol.iterator](): SetIterator<T> {
    return this.values();
  }
}
