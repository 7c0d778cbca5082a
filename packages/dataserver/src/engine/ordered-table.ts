/**
 * An ordered table in memory, from names to values or tombstones.
 *
 * T1. A hash map answers point reads and finds the cell to overwrite; a B+ tree of the same cells keeps the order.
 * T2. A picture is a lazy clone of the tree: O(1) to take, after which the tree copies a node when it first changes it.
 * T3. A cell is overwritten in place only when it was made after the last picture (`epoch`); otherwise a fresh cell
 *     takes its place, so that pictures never change.
 * T4. A new name is put into the tree when the order is needed, or when many names wait: then the ones that wait
 *     longest are, PLACED_AT_ONCE at a time, so that no change holds the loop for all of them. So a row that is set and
 *     soon removed costs no more than in a hash map. Names that wait were set after the last picture.
 */
import type { Bytes } from '@remora/base';
import { BTree } from './b-tree.ts';
import { compareNames, type Name, type NameRange } from './latin1.ts';

export interface Cell {
  /** Absent: the key is deleted. */
  value: Bytes | undefined;
  /** How many pictures had been taken when the cell was made (T3). */
  readonly epoch: number;
}

const UNPLACED_MAX = 4_096;
/** The largest number of names that one change puts into the tree; an insertion takes 1 to 3 µs. */
const PLACED_AT_ONCE = 256;

/** What a picture contains for a key. */
export type PicturedCell = Pick<Readonly<Cell>, 'value'>;

/** A table as it was at one moment; read only. */
export type Picture = BTree<Name, PicturedCell>;

export class OrderedTable {
  readonly #cells = new Map<Name, Cell>();
  readonly #tree: BTree<Name, Cell> = new BTree<Name, Cell>(undefined, compareNames);
  /** Cells in the hash map that are not in the tree yet (T4). */
  readonly #unplaced = new Map<Name, Cell>();
  #epoch = 0;
  #bytes = 0;

  get keys(): number {
    return this.#cells.size;
  }

  /** Bytes of keys and values. */
  get bytes(): number {
    return this.#bytes;
  }

  get(name: Name): Cell | undefined {
    return this.#cells.get(name);
  }

  /** Sets a value or, with `undefined`, a tombstone; returns false if the name is new. */
  set(name: Name, value: Bytes | undefined): boolean {
    const old = this.#cells.get(name);
    this.#bytes += value === undefined ? 0 : value.length;
    if (old === undefined) {
      this.#bytes += name.length;
      const cell: Cell = { value, epoch: this.#epoch };
      this.#cells.set(name, cell);
      this.#unplaced.set(name, cell);
      if (this.#unplaced.size >= UNPLACED_MAX) this.#placeOldest();
      return false;
    }
    this.#bytes -= old.value === undefined ? 0 : old.value.length;
    if (old.epoch === this.#epoch) old.value = value;
    else {
      const cell: Cell = { value, epoch: this.#epoch };
      this.#cells.set(name, cell);
      this.#tree.set(name, cell); // T4: the name is in the tree, because it is older than the last picture.
    }
    return true;
  }

  /** Forgets a name altogether. */
  remove(name: Name): boolean {
    const old = this.#cells.get(name);
    if (old === undefined) return false;
    this.#bytes -= name.length + (old.value === undefined ? 0 : old.value.length);
    this.#cells.delete(name);
    if (!this.#unplaced.delete(name)) this.#tree.delete(name);
    return true;
  }

  /** Forgets every name of a range. */
  removeRange(range: NameRange): void {
    const names: Name[] = [];
    for (const name of this.live().keys(range.start)) {
      if (range.end !== '' && name >= range.end) break;
      names.push(name);
    }
    for (const name of names) this.remove(name);
  }

  entries(): IterableIterator<[Name, Cell]> {
    return this.#cells.entries();
  }

  /** The table as it is now, unaffected by what changes later. */
  picture(): Picture {
    this.#epoch++;
    return this.live().clone();
  }

  /** The live tree, for reads that end before the next change. */
  live(): Picture {
    this.#place();
    return this.#tree;
  }

  #placeOldest(): void {
    let left = PLACED_AT_ONCE;
    for (const [name, cell] of this.#unplaced) {
      if (left-- === 0) return;
      this.#unplaced.delete(name);
      this.#tree.set(name, cell);
    }
  }

  #place(): void {
    for (const [name, cell] of this.#unplaced) this.#tree.set(name, cell);
    this.#unplaced.clear();
  }
}
