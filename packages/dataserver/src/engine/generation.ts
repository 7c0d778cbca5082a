import type { Bytes } from '@remora/base';
import { type Name, type NameRange, rangeHolds } from './latin1.ts';
import { OrderedTable } from './ordered-table.ts';

interface ResidentChange {
  value: Bytes | undefined;
  /** Whether the layers below this generation hold the key (O3). */
  readonly existsBelow: boolean;
}

/** The changes made between two checkpoints (O1). Frozen by not being changed any more. */
export class Generation {
  /** Keys outside the resident spaces, ordered, tombstones included. */
  readonly changes = new OrderedTable();
  readonly #resident = new Map<Name, ResidentChange>();
  #residentBytes = 0;

  get keys(): number {
    return this.changes.keys + this.#resident.size;
  }

  get bytes(): number {
    return this.changes.bytes + this.#residentBytes;
  }

  get empty(): boolean {
    return this.keys === 0;
  }

  /** Puts into `rows`, the resident table, and notes the change. */
  putResident(name: Name, value: Bytes, rows: OrderedTable): void {
    const existed = rows.set(name, value);
    const change = this.#resident.get(name);
    if (change === undefined) {
      this.#resident.set(name, { value, existsBelow: existed });
      this.#residentBytes += name.length + value.length;
    } else {
      this.#residentBytes += value.length - (change.value?.length ?? 0);
      change.value = value;
    }
  }

  /** Deletes from `rows`, the resident table, and notes the change unless the store never needs to know (O3). */
  deleteResident(name: Name, rows: OrderedTable): void {
    const existed = rows.remove(name);
    const change = this.#resident.get(name);
    if (change === undefined) {
      if (!existed) return;
      this.#resident.set(name, { value: undefined, existsBelow: true });
      this.#residentBytes += name.length;
    } else if (change.existsBelow) {
      this.#residentBytes -= change.value?.length ?? 0;
      change.value = undefined;
    } else {
      this.#forget(name, change);
    }
  }

  /** Forgets every change within a range. */
  removeRange(range: NameRange): void {
    this.changes.removeRange(range);
    for (const [name, change] of this.#resident) if (rangeHolds(range, name)) this.#forget(name, change);
  }

  *allChanges(): Generator<readonly [Name, Bytes | undefined]> {
    for (const [name, cell] of this.changes.entries()) yield [name, cell.value];
    for (const [name, change] of this.#resident) yield [name, change.value];
  }

  #forget(name: Name, change: ResidentChange): void {
    this.#resident.delete(name);
    this.#residentBytes -= name.length + (change.value?.length ?? 0);
  }
}
