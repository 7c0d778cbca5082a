/**
 * The changes to resident rows that one generation has to write: its cells in the order of their making, and the
 * waiting links, which get cells before the generation is written.
 *
 * RC1. A cell with a value records that the row has it. A cell without one records that the row is deleted, if the row
 *      lay below the generation (`below` is `row`), and otherwise nothing. A cell that another one of the same
 *      generation replaced (`replaced`) records nothing; the other cell knows what lay below.
 * RC2. Of two cells with one name the later one counts: a row that was deleted and came back has one for each.
 */
import type { Bytes, ResidentValue } from '@remora/base';
import { type Name, type NameRange, rangeHolds } from './latin1.ts';
import type { ResidentCell } from './resident-cell.ts';
import { WaitingLinks } from './waiting-links.ts';

/** The size that is assumed for a value that is not encoded. */
const UNENCODED_BYTES = 128;
/** Cells that record nothing are dropped when there are this many and they are the majority. */
const SILENT_MAX = 2_048;

export class ResidentChanges {
  readonly links = new WaitingLinks();
  #cells: ResidentCell[] = [];
  #keys = 0;
  #bytes = 0;

  /** The number of cells that record something, and of links. */
  get keys(): number {
    return this.#keys + this.links.count;
  }

  get bytes(): number {
    return this.#bytes + this.links.bytes;
  }

  /** The number of all cells, including those that record nothing and were not dropped yet. */
  get remembered(): number {
    return this.#cells.length;
  }

  add(cell: ResidentCell): void {
    this.#cells.push(cell);
    this.#count(cell, 1);
  }

  /** Changes a cell that was added. */
  set(cell: ResidentCell, value: ResidentValue | undefined): void {
    this.#count(cell, -1);
    cell.value = value;
    this.#count(cell, 1);
  }

  /** Another cell replaces an added one; returns what lies below it. */
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

  /** Drops cells that record nothing. No cell that is empty now may get a value again. */
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
