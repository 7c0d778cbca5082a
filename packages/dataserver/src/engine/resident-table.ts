/**
 * The rows of the resident key spaces: all of them in memory, ordered, with the changes that must still be written.
 *
 * RT1. A hash map answers point reads and finds the cell to change; a B+ tree of the same cells keeps the order. A cell
 *      holds everything that is known of its row, so a change looks it up once.
 * RT2. A picture is a lazy clone of the tree: O(1) to take, after which the tree copies a node when it first changes
 *      it.
 * RT3. A cell is changed in place only if it was made after the last picture and in the present generation (`epoch`).
 *      Otherwise a new cell replaces it, so that neither pictures nor the changes that are being written ever change.
 * RT4. A new cell is put into the tree when the order is needed, or when many cells wait: then the ones that wait
 *      longest are, PLACED_AT_ONCE at a time, so that no change holds the loop for all of them. A cell that is emptied
 *      meanwhile stays in the hash map until its room is needed. So a row that comes and goes, such as those of a lock
 *      that is held for a moment, costs only a look-up each time. Cells that wait were made in the present epoch.
 * RT5. Only a cell that waits for the tree may hold a value that is not encoded. So there are few such values at any
 *      time, and readers of the tree find bytes.
 * RT6. A link waits for its name until the order is needed, or has a cell, never both.
 */
import type { Bytes, Link, ResidentValue } from '@remora/base';
import { BTree } from './b-tree.ts';
import { compareNames, type Name, type NameRange } from './latin1.ts';
import type { Picture } from './ordered-table.ts';
import type { ResidentCell } from './resident-cell.ts';
import { encoded, type ResidentChanges } from './resident-changes.ts';
import { nameOfLink } from './waiting-links.ts';

const UNPLACED_MAX = 4_096;
/** About as many as locks whose other rows wait; the first scan of a range of rows places all of them. */
const WAITING_LINKS_MAX = 1_024;
/** The largest number of cells, or of links, that one change puts into the tree; an insertion takes 1 to 3 µs. */
const PLACED_AT_ONCE = 256;
const NO_VALUE = new Uint8Array(0);

export class ResidentTable {
  readonly #cells = new Map<Name, ResidentCell>();
  readonly #tree: BTree<Name, ResidentCell> = new BTree<Name, ResidentCell>(undefined, compareNames);
  /** Cells in the hash map that are not in the tree yet (RT4). */
  #unplaced: ResidentCell[] = [];
  #epoch = 1;
  /** The first epoch of the present generation. */
  #since = 1;
  #changes: ResidentChanges;

  /** `changes` receives what must be written, until the next generation begins. */
  constructor(changes: ResidentChanges) {
    this.#changes = changes;
  }

  get(name: Name): ResidentValue | undefined {
    return this.#cells.get(name)?.value;
  }

  bytes(name: Name): Bytes | undefined {
    const cell = this.#cells.get(name);
    if (cell?.value === undefined) return undefined;
    const bytes = encoded(cell.value);
    if (bytes !== cell.value) this.#changes.set(cell, bytes);
    return bytes;
  }

  put(name: Name, value: ResidentValue): void {
    const cell = this.#cells.get(name);
    if (cell === undefined) this.#make(name, value);
    else if (cell.epoch !== this.#epoch) this.#replace(cell, encoded(value));
    else this.#changes.set(cell, cell.placed ? encoded(value) : value); // RT5
  }

  delete(name: Name): void {
    const cell = this.#cells.get(name);
    if (cell?.value === undefined) return;
    if (cell.epoch === this.#epoch) this.#changes.set(cell, undefined);
    else this.#replace(cell, undefined);
    if (cell.placed) this.#remove(name);
  }

  /** `isNew`: there is no such row or waiting link. */
  link(link: Link, isNew: boolean): void {
    const { links } = this.#changes;
    if (!isNew && links.has(link)) return;
    if (!isNew || links.isTaken(link)) return this.put(nameOfLink(link), NO_VALUE);
    if (links.count >= WAITING_LINKS_MAX) this.#placeLinks(PLACED_AT_ONCE);
    links.add(link);
  }

  unlink(link: Link): void {
    if (!this.#changes.links.delete(link)) this.delete(nameOfLink(link));
  }

  isLinked(link: Link): boolean {
    return this.#changes.links.has(link) || this.get(nameOfLink(link)) !== undefined;
  }

  /** Begins another generation, which records its changes in `changes`. */
  begin(changes: ResidentChanges): void {
    this.#place();
    this.#epoch += 1;
    this.#since = this.#epoch;
    this.#changes = changes;
  }

  /** Changes in the range need not be written: another way tells the store what lies there. */
  forgetChanges(range: NameRange): void {
    this.#place();
    this.#changes.removeRange(range);
  }

  // ---------------------------------------------------------------------------------- rows as the store has them

  /** Loads a row that the store holds, or is about to. */
  load(name: Name, value: Bytes): void {
    this.#place();
    const cell: ResidentCell = { name, value, epoch: 0, placed: true, below: 'row' };
    this.#cells.set(name, cell);
    this.#tree.set(name, cell);
  }

  /** Forgets a row that the store no longer holds, or is about to lose. */
  forget(name: Name): void {
    this.#place();
    this.#remove(name);
  }

  /** Forgets up to `max` names of a range; true when there may be more. */
  forgetRange(range: NameRange, max = Number.POSITIVE_INFINITY): boolean {
    const names: Name[] = [];
    for (const name of this.live().keys(range.start)) {
      if (names.length >= max || (range.end !== '' && name >= range.end)) break;
      names.push(name);
    }
    for (const name of names) this.#remove(name);
    return names.length >= max;
  }

  // ---------------------------------------------------------------------------------------------------- order

  /** The table as it is now, unaffected by what changes later. */
  picture(): Picture {
    const picture = this.live().clone();
    this.#epoch += 1;
    return picture;
  }

  /** The live tree, for reads that end before the next change. */
  live(): Picture {
    this.#place();
    return this.#tree as Picture; // RT5
  }

  /**
   * The largest number of cells waits. Cells without a value are dropped; the others go on waiting, unless they are the
   * majority: then the oldest are placed.
   */
  #makeRoom(): void {
    this.#unplaced = this.#unplaced.filter((cell) => {
      if (cell.value === undefined) this.#cells.delete(cell.name);
      return cell.value !== undefined;
    });
    if (this.#unplaced.length > UNPLACED_MAX / 2) {
      for (const cell of this.#unplaced.slice(0, PLACED_AT_ONCE)) this.#placeCell(cell);
      this.#unplaced = this.#unplaced.slice(PLACED_AT_ONCE);
    }
    this.#changes.tidy();
  }

  #place(): void {
    for (const cell of this.#unplaced) this.#placeCell(cell);
    if (this.#unplaced.length > 0) this.#unplaced = [];
    if (this.#changes.links.count > 0) this.#placeLinks();
    // Runs even if no cell waited: with each picture, rows that change again and again leave another cell behind (RT3).
    this.#changes.tidy();
  }

  #placeCell(cell: ResidentCell): void {
    cell.placed = true;
    if (cell.value === undefined) this.#cells.delete(cell.name);
    else {
      this.#changes.set(cell, encoded(cell.value));
      this.#tree.set(cell.name, cell);
    }
  }

  #placeLinks(max = Number.POSITIVE_INFINITY): void {
    for (const name of this.#changes.links.take(max)) {
      const cell: ResidentCell = { name, value: NO_VALUE, epoch: this.#epoch, placed: true, below: 'nothing' };
      this.#cells.set(name, cell);
      this.#tree.set(name, cell);
      this.#changes.add(cell);
    }
  }

  #make(name: Name, value: ResidentValue): void {
    if (this.#unplaced.length >= UNPLACED_MAX) this.#makeRoom();
    const cell: ResidentCell = { name, value, epoch: this.#epoch, placed: false, below: 'nothing' };
    this.#cells.set(name, cell);
    this.#unplaced.push(cell);
    this.#changes.add(cell);
  }

  /** RT3. The old cell is in the tree, because it is older than the last picture or generation (RT4). */
  #replace(old: ResidentCell, value: Bytes | undefined): void {
    const below = old.epoch < this.#since ? 'row' : this.#changes.supersede(old);
    const cell: ResidentCell = { name: old.name, value, epoch: this.#epoch, placed: true, below };
    this.#changes.add(cell);
    if (value === undefined) return;
    this.#cells.set(old.name, cell);
    this.#tree.set(old.name, cell);
  }

  #remove(name: Name): void {
    if (this.#cells.delete(name)) this.#tree.delete(name);
  }
}
