import { type Bytes, LazyMap, LazySet } from '@remora/base';

export interface RowWrites {
  put(name: string, bytes: Uint8Array): void;
  delete(name: string): void;
}

/**
 * Replicated state that is kept in memory by name, and written to the engine when a checkpoint begins: a row that came
 * and went since the last checkpoint is never written. The order of iteration depends on restarts and snapshots, so
 * apply must not depend on it.
 */
export class StagedRows<T> {
  readonly #encode: (value: T) => Uint8Array;
  readonly #byName = new LazyMap<string, T>();
  /** Names whose rows in the engine differ from the rows in memory. */
  readonly #changed = new LazySet<string>();
  /** Names that have rows in the engine. */
  readonly #stored = new LazySet<string>();

  constructor(encode: (value: T) => Uint8Array) {
    this.#encode = encode;
  }

  get size(): number {
    return this.#byName.size;
  }

  get(name: string): T | undefined {
    return this.#byName.get(name);
  }

  values(): IterableIterator<T> {
    return this.#byName.values();
  }

  set(name: string, value: T): void {
    this.#byName.set(name, value);
    this.#changed.add(name);
  }

  delete(name: string): void {
    if (!this.#byName.delete(name)) return;
    if (this.#stored.has(name)) this.#changed.add(name);
    else this.#changed.delete(name);
  }

  flush(writes: RowWrites): void {
    for (const name of this.#changed) {
      const value = this.#byName.get(name);
      if (value === undefined) {
        writes.delete(name);
        this.#stored.delete(name);
      } else {
        writes.put(name, this.#encode(value));
        this.#stored.add(name);
      }
    }
    this.#changed.clear();
  }

  /** Loads rows that `flush` wrote. */
  load(rows: readonly { readonly name: string; readonly bytes: Bytes }[], decode: (bytes: Bytes) => T): void {
    for (const { name, bytes } of rows) {
      this.#byName.set(name, decode(bytes));
      this.#stored.add(name);
    }
  }
}
