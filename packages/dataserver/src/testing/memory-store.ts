import { asBuffer, type Bytes, type Row } from '@remora/base';
import { BTree } from '../engine/b-tree.ts';
import { compareNames, keyOf, type Name, nameOf } from '../engine/latin1.ts';
import type { PersistentStore, StoreBatch, StoreCursor, StoreRange, StoreSnapshot } from '../engine/store.ts';

type Rows = BTree<Name, Bytes>;
/** The empty name is not a row's (P3). */
const FIRST_NAME = '\0';

/** A row's new value, or undefined for a deletion. */
export type RowChange = readonly [Name, Bytes | undefined];

/** The data that survives a crash of a process that uses a `MemoryStore`. */
export class MemoryMedium {
  readonly rows: Rows;

  constructor(rows: Rows = new BTree<Name, Bytes>(undefined, compareNames)) {
    this.rows = rows;
  }

  /** Takes a batch, as a whole. */
  apply(changes: readonly RowChange[]): void {
    for (const [name, value] of changes) {
      if (value === undefined) this.rows.delete(name);
      else this.rows.set(name, value);
    }
  }

  *all(): Generator<Row> {
    for (const [name, value] of this.rows.entries()) yield { key: keyOf(name), value };
  }
}

/**
 * A store over a `MemoryMedium`: one process's handle on it. After `crash()` the handle is dead: no further call
 * reaches the medium, and writes in progress never end, as if the process were gone.
 */
export class MemoryStore implements PersistentStore {
  readonly #medium: MemoryMedium;
  #dead = false;

  constructor(medium: MemoryMedium) {
    this.#medium = medium;
  }

  crash(): void {
    this.#dead = true;
  }

  get(key: Bytes): Bytes | undefined {
    return this.#medium.rows.get(nameOf(key));
  }

  cursor(range: StoreRange): StoreCursor {
    return new MemoryCursor(this.#medium.rows.clone(), range);
  }

  snapshot(): StoreSnapshot {
    const rows = this.#medium.rows.clone();
    return {
      get: (key) => rows.get(nameOf(key)),
      cursor: (range) => new MemoryCursor(rows, range),
      release() {},
    };
  }

  batch(): StoreBatch {
    const changes: RowChange[] = [];
    return {
      put: (key, value) => void changes.push([nameOf(key), value]),
      delete: (key) => void changes.push([nameOf(key), undefined]),
      write: async () => {
        // A write takes at least one turn of the microtask queue, as a disk's would.
        await Promise.resolve();
        if (this.#dead) return new Promise<void>(() => {});
        this.#medium.apply(changes);
      },
    };
  }

  async close(): Promise<void> {}
}

class MemoryCursor implements StoreCursor {
  readonly #pairs: Iterator<[Name, Bytes]>;
  readonly #start: Name;
  readonly #end: Name;
  readonly #reverse: boolean;
  #ended = false;

  constructor(rows: Rows, range: StoreRange) {
    this.#start = nameOf(range.start) || FIRST_NAME;
    this.#end = nameOf(range.end);
    this.#reverse = range.reverse;
    this.#pairs = range.reverse
      ? rows.entriesReversed(this.#end === '' ? undefined : this.#end, undefined, true)
      : rows.entries(this.#start);
  }

  async next(rowsMax: number): Promise<readonly Row[]> {
    const out: Row[] = [];
    while (!this.#ended && out.length < rowsMax) {
      const step = this.#pairs.next();
      if (step.done === true || this.#outside(step.value[0])) {
        this.#ended = true;
        break;
      }
      out.push({ key: keyOf(step.value[0]), value: asBuffer(step.value[1]) });
    }
    return out;
  }

  #outside(name: Name): boolean {
    return this.#reverse ? name < this.#start : this.#end !== '' && name >= this.#end;
  }

  async close(): Promise<void> {
    this.#ended = true;
  }
}
