/**
 * The dynamic table of RFC 7541 §2.3.2 and §4, as a ring: entries are added at one end and evicted at the other.
 *
 * D1. The sizes of all entries never exceed the capacity. An entry larger than the capacity empties the table; this is
 *     not an error (§4.4).
 * D2. `generation` grows with every change of the entries or the capacity, so equal generations mean equal contents.
 */
import { type DecodedField, ENTRY_BYTES_MIN, fieldBytes } from './header-field.ts';

export class DynamicTable {
  /** A power of two; room for as many of the smallest entries as fit into the largest capacity. */
  readonly #ring: (DecodedField | undefined)[];
  readonly #mask: number;
  /** The slot of the newest entry. */
  #newest = 0;
  #count = 0;
  #bytes = 0;
  #bytesMax: number;
  #generation = 0;

  /** @param capacityBytesMax the largest that the capacity is ever set to. */
  constructor({ bytesMax, capacityBytesMax }: { readonly bytesMax: number; readonly capacityBytesMax: number }) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(1, capacityBytesMax / ENTRY_BYTES_MIN)));
    this.#ring = new Array(slots).fill(undefined);
    this.#mask = slots - 1;
    this.#bytesMax = bytesMax;
  }

  get generation(): number {
    return this.#generation;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** The entry at this place; the newest is at 0. */
  at(place: number): DecodedField | undefined {
    return place < this.#count ? this.#ring[(this.#newest - place) & this.#mask] : undefined;
  }

  /** Adds an entry, after evicting as many of the oldest as its size needs (D1). */
  add(field: DecodedField): void {
    const size = fieldBytes(field);
    this.#generation++;
    this.#shrink(this.#bytesMax - size);
    if (size > this.#bytesMax) return;
    this.#newest = (this.#newest + 1) & this.#mask;
    this.#ring[this.#newest] = field;
    this.#count++;
    this.#bytes += size;
  }

  resize(bytesMax: number): void {
    this.#generation++;
    this.#bytesMax = bytesMax;
    this.#shrink(bytesMax);
  }

  /** Evicts the oldest entries until the rest fits, or none is left. */
  #shrink(bytes: number): void {
    while (this.#bytes > bytes && this.#count > 0) {
      const slot = (this.#newest - this.#count + 1) & this.#mask;
      const oldest = this.#ring[slot];
      this.#ring[slot] = undefined;
      this.#count--;
      if (oldest !== undefined) this.#bytes -= fieldBytes(oldest);
    }
  }
}
