/**
 * A flipped bit on a disk, in a stored row of a node's engine.
 *
 * The medium stays unchanged, for the checks: only reads of the row through the store return the flipped one. The
 * damage exists until the row is written again or deleted; a reader with an older picture of the store reads it there.
 */
import type { Bytes } from '@remora/base';
import type { MemoryMedium } from '../../../../packages/dataserver/src/testing/memory-store.ts';

export class StoreDamage {
  /** Whether the present life has read the flipped row: it must stop. */
  seen = false;
  readonly #medium: MemoryMedium;
  readonly #name: string;
  readonly #intact: Bytes;
  readonly #flipped: Buffer;

  /** Flips one bit, as drawn; returns undefined if there is no row yet. */
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

  /** Whether the row is still stored as it was. */
  get stands(): boolean {
    return this.#medium.rows.get(this.#name) === this.#intact;
  }

  /** The result of reading where `row` is stored. */
  read(row: Bytes): Bytes {
    if (row !== this.#intact) return row;
    this.seen = true;
    return this.#flipped;
  }

  get where(): string {
    return `row ${Buffer.from(this.#name, 'latin1').toString('hex')}`;
  }
}
