/**
 * Decoded header blocks by their octets. Clients repeat the same few blocks once their fields are in the dynamic table.
 *
 * B1. A list is returned only for exactly the octets that it was decoded from, under the same generation of the dynamic
 *     table. The caller stores only blocks that left the table as it was.
 * B2. A change of the table empties the cache, so it holds no entry that the table has evicted.
 * B3. It holds at most SLOTS blocks of at most BLOCK_BYTES_MAX octets. A new block replaces the one in its slot.
 */
import type { DecodedField } from './header-field.ts';

const SLOTS = 32;
/** A repeated block is mostly indices. A larger one takes long to compare and is rarely repeated. */
const BLOCK_BYTES_MAX = 128;
/** How many of the last octets are hashed: there the values differ that a client does not index. */
const HASHED_BYTES = 16;

export class BlockCache {
  readonly #lists: (readonly DecodedField[] | undefined)[] = new Array(SLOTS).fill(undefined);
  readonly #lengths = new Uint8Array(SLOTS);
  /** The octets of the block of each slot. Created with the first block: many connections send few. */
  #octets: Uint8Array | undefined;
  #generation = 0;
  #isEmpty = true;

  find(block: Uint8Array, start: number, end: number, generation: number): readonly DecodedField[] | undefined {
    const length = end - start;
    const octets = this.#octets;
    if (this.#isEmpty || octets === undefined || length > BLOCK_BYTES_MAX) return undefined;
    if (generation !== this.#generation) {
      this.#clear();
      return undefined;
    }
    const slot = slotOf(block, start, end);
    if (this.#lengths[slot] !== length) return undefined;
    const offset = slot * BLOCK_BYTES_MAX - start;
    for (let at = start; at < end; at++) if (octets[offset + at] !== block[at]) return undefined;
    return this.#lists[slot];
  }

  /** Keeps the list and freezes it. */
  store(block: Uint8Array, start: number, end: number, generation: number, list: readonly DecodedField[]): void {
    const length = end - start;
    if (length > BLOCK_BYTES_MAX) return;
    if (generation !== this.#generation) this.#clear();
    this.#octets ??= new Uint8Array(SLOTS * BLOCK_BYTES_MAX);
    const slot = slotOf(block, start, end);
    const offset = slot * BLOCK_BYTES_MAX - start;
    for (let at = start; at < end; at++) this.#octets[offset + at] = block[at] ?? 0;
    this.#lengths[slot] = length;
    this.#lists[slot] = Object.freeze(list);
    this.#generation = generation;
    this.#isEmpty = false;
  }

  /** Drops all lists (B2). */
  #clear(): void {
    this.#lists.fill(undefined);
    this.#lengths.fill(0);
    this.#isEmpty = true;
  }
}

function slotOf(block: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = Math.max(start, end - HASHED_BYTES); at < end; at++)
    hash = (Math.imul(hash, 31) + (block[at] ?? 0)) | 0;
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (SLOTS - 1);
}
