/**
 * What one generation has to write of resident rows: the cells that it made, in the order in which they were, and the
 * links that wait, which have cells before it is written.
 *
 * RC1. A cell with a value says that the row has it. Without one it says that the row is deleted, if it lay below the
 *      generation (`below` is `row`), and nothing if it did not. One in whose place came another of the same generation
 *      says nothing (`replaced`); the other knows what lay below.
 * RC2. Of two cells of one name the later one counts: a row that was deleted and came again has one for each.
 */
import type { Bytes, ResidentValue } from '@remora/base';
import { type Name, type NameRange, rangeHolds } from './latin1.ts';
import type { ResidentCell } from './resident-cell.ts';
import { WaitingLinks } from './waiting-links.ts';

/** What a value that is not encoded counts for. */
const UNENCODED_BYTES = 128;
/** Cells that say nothing are dropped when there are so many, and they are the most. */
const SILENT_MAX = 2_048;

export class ResidentChanges {
  readonly links = new WaitingLinks();
  #cells: ResidentCell[] = [];
  #keys = 0;
  #bytes = 0;

  /** Those cells that say something, and the links. */
  get keys(): number {
    return this.#keys + this.links.count;
  }

  get bytes(): number {
    return this.#bytes + this.links.bytes;
  }

  /** All cells, also those that say nothing and were not dropped yet. */
  get remembered(): number {
    return this.#cells.length;
  }

  add(cell: ResidentCell): void {
    this.#cells.push(cell);
    this.#count(cell, 1);
  }

  /** Changes one that was added. */
  set(cell: ResidentCell, value: ResidentValue | undefined): void {
    this.#count(cell, -1);
    cell.value = value;
    this.#count(cell, 1);
  }

  /** Another cell takes the place of one that was added; gives what lies below it. */
  supersede(cell: ResidentCell): ResidentCell['below'] {
    const { below } = cell;
    this.#count(cell, -1);
    cell.below = 'replaced';
    return below;
  }

  /** Forgets every change within a range. */
  removeRange(range: NameRange): void {
    this.#cells = this.#cells.filter((cell) => {
      const inside = rangeHolds(range, cell.name);
      if (inside) this.#count(cell, -1);
      return !inside;
    });
  }

  /** Lets go of cells that say nothing. None of those that are empty now may get a value again. */
  tidy(): void {
    const silent = this.#cells.length - this.#keys;
    if (silent > SILENT_MAX && silent > this.#keys) this.#cells = this.#cells.filter(says);
  }

  *all(): Generator<readonly [Name, Bytes | undefined]> {
    for (const cell of this.#cells) {
      if (says(cell)) yield [cell.name, cell.value === undefined ? undefined : encoded(cell.value)];
    }
  }

  #count(cell: ResidentCell, times: 1 | -1): void {
    if (!says(cell)) return;
    this.#keys += times;
    this.#bytes += times * (cell.name.length + sizeOf(cell.value));
  }
}

export function encoded(value: ResidentValue): Bytes {
  return value instanceof Uint8Array ? value : value.encode();
}

/** RC1. */
function says({ value, below }: ResidentCell): boolean {
  return below === 'row' || (below === 'nothing' && value !== undefined);
}

function sizeOf(value: ResidentValue | undefined): number {
  if (value === undefined) return 0;
  return value instanceof Uint8Array ? value.length : UNENCODED_BYTES;
}
