/**
 * A bit that flipped on a disk, in a row of a node's engine as it is stored.
 *
 * The medium stays as it was, for those who check it: only who reads the row through the store gets the flipped one. It
 * stands until the row is written again or deleted; who still holds an older picture of the store reads it there.
 */
import type { Bytes } from '@remora/base';
import type { MemoryMedium } from '../../../../packages/dataserver/src/testing/memory-store.ts';

export class StoreDamage {
  /** Whether the life that runs has read the flipped row: it must not go on. */
  seen = false;
  readonly #medium: MemoryMedium;
  readonly #name: string;
  readonly #intact: Bytes;
  readonly #flipped: Buffer;

  /** Flips one bit, by what was drawn; undefined when there is no row yet. */
  static inflict(medium: MemoryMedium, drawn: { readonly place: number; readonly bit: number }) {
    const names = [...medium.rows.keys()];
    const name = names[drawn.place % Math.max(1, names.length)];
    const row = name === undefined ? undefined : medium.rows.get(name);
    return name === undefined || row === undefined ? undefined : new StoreDamage(medium, { name, row }, drawn.bit);
  }

  private constructor(
    medium: MemoryMedium,
    { name, row }: { readonly name: string; readonly row: Bytes },
    bit: number,
  ) {
    this.#medium = medium;
    this.#name = name;
    this.#intact = row;
    this.#flipped = Buffer.from(row);
    const at = (bit >> 3) % row.length;
    this.#flipped[at] = (row[at] ?? 0) ^ (1 << (bit & 7));
  }

  /** Whether the row is stored as it was. */
  get stands(): boolean {
    return this.#medium.rows.get(this.#name) === this.#intact;
  }

  /** What reading gives where `row` is stored. */
  read(row: Bytes): Bytes {
    if (row !== this.#intact) return row;
    this.seen = true;
    return this.#flipped;
  }

  get where(): string {
    return `row ${Buffer.from(this.#name, 'latin1').toString('hex')}`;
  }
}
