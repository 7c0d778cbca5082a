/**
 * Finds outcomes by the ids of their requests. Nearly every command is new, so most look-ups are for ids that the index
 * does not have. Such a look-up reads one cache line of the processor, and the index adds no work for the garbage
 * collector. A `Map` of strings reads several objects at scattered addresses for the same look-up.
 *
 * X1. An id is in the bucket that its hash names, in any slot; or, if that was full, in `#overflow`. A hash of 0 is a
 *     free slot.
 * X2. A matching hash proves little: only the page tells whether the id is the one that was asked for.
 * X3. Buckets are at most half full on average, so few overflow. A look-up goes beyond its bucket only if its hash
 *     equals that of an overflowed id, which is rare. Ids crafted to share one hash overflow, and finding them there is
 *     no slower than in any map.
 */
import { assert, LazyMap } from '@remora/base';
import { type OutcomeEntries, PAGE_ENTRIES_MAX } from './outcome-entries.ts';

/** The place of an outcome. */
export interface OutcomePlace {
  readonly entries: OutcomeEntries;
  readonly at: number;
}

/** The hashes of one bucket are 64 bytes: a line of the processor's cache. */
const BUCKET_SLOTS = 16;
const SLOTS_MIN = 2 * BUCKET_SLOTS;
const SLOTS_PER_ID = 2;
/** The index shrinks when it has this many slots per id, so that it does not alternate between sizes. */
const SLOTS_PER_ID_MAX = 16;

/** Those of an index without outcomes, shared by all: nothing is written to them. */
const NO_HASHES = new Int32Array(SLOTS_MIN);
const NO_PLACES = new Float64Array(SLOTS_MIN);

export class OutcomeIndex {
  #hashes = NO_HASHES;
  /** For each slot: the number of the page times `PAGE_ENTRIES_MAX`, plus the place in it. */
  #places = NO_PLACES;
  /** X1, X3. Places by hash, and then by id. */
  readonly #overflow = new LazyMap<number, Map<string, number>>();
  #overflowed = 0;
  /** Pages have numbers of their own here, because the same page may have other numbers in other ranges. */
  readonly #pages = new LazyMap<number, OutcomeEntries>();
  readonly #numbers = new LazyMap<OutcomeEntries, number>();
  #nextPage = 0;
  /** The page that was numbered last: nearly every new outcome is in it. */
  #latest: OutcomeEntries | undefined;
  #used = 0;

  get size(): number {
    return this.#used + this.#overflowed;
  }

  find(requestId: string, hash: number): OutcomePlace | undefined {
    const slot = this.#slotOf(requestId, hash);
    if (slot !== undefined) return this.#at(this.#places[slot] ?? 0);
    const place = this.#overflow.get(hash)?.get(requestId);
    return place === undefined ? undefined : this.#at(place);
  }

  /** Returns false if no id with this hash is in the index, without reading a page; true says little (X2). */
  mayHave(hash: number): boolean {
    const first = this.#bucketOf(hash);
    for (let slot = first; slot < first + BUCKET_SLOTS; slot++) if (this.#hashes[slot] === hash) return true;
    return this.#overflow.has(hash);
  }

  /** Whether an id belongs to the outcome at that place and to no later one, without reading the page. */
  holds({ entries, at }: OutcomePlace): boolean {
    const page = this.#numbers.get(entries);
    if (page === undefined) return false;
    const place = page * PAGE_ENTRIES_MAX + at;
    const hash = entries.hashes[at] ?? 0;
    if (this.#slotAt(hash, place) !== undefined) return true;
    return [...(this.#overflow.get(hash)?.values() ?? [])].includes(place);
  }

  /** Assigns the id to the outcome at that place; another outcome no longer has it. */
  set(requestId: string, { entries, at }: OutcomePlace): void {
    assert(at < PAGE_ENTRIES_MAX, 'a page has room for the outcome');
    const place = this.#numberOf(entries) * PAGE_ENTRIES_MAX + at;
    const hash = entries.hashes[at] ?? 0;
    const slot = this.#slotOf(requestId, hash);
    const overflowed = this.#overflow.get(hash);
    if (slot !== undefined) this.#places[slot] = place;
    else if (overflowed?.has(requestId)) overflowed.set(requestId, place);
    else this.#insertNew(hash, place);
  }

  /** Like `set`, for an outcome whose hash no id of the index has (`mayHave`). */
  setNew({ entries, at }: OutcomePlace): void {
    assert(at < PAGE_ENTRIES_MAX, 'a page has room for the outcome');
    this.#insertNew(entries.hashes[at] ?? 0, this.#numberOf(entries) * PAGE_ENTRIES_MAX + at);
  }

  #insertNew(hash: number, place: number): void {
    if ((this.size + 1) * SLOTS_PER_ID > this.#hashes.length) this.#resize(2 * this.#hashes.length);
    this.#insert(hash, place);
  }

  /** Forgets a page: ids that were since assigned to other pages stay. */
  forget(entries: OutcomeEntries): void {
    const page = this.#numbers.get(entries);
    if (page === undefined) return;
    const { hashes } = entries;
    for (let at = 0; at < hashes.length; at++) this.#remove(hashes[at] ?? 0, page * PAGE_ENTRIES_MAX + at);
    for (const [hash, ids] of this.#overflow) this.#forgetOverflowed(page, hash, ids);
    this.#pages.delete(page);
    this.#numbers.delete(entries);
    if (entries === this.#latest) this.#latest = undefined;
    const { length } = this.#hashes;
    if (length > SLOTS_MIN && this.size * SLOTS_PER_ID_MAX < length) this.#resize(length / 2);
  }

  #slotOf(requestId: string, hash: number): number | undefined {
    const first = this.#bucketOf(hash);
    for (let slot = first; slot < first + BUCKET_SLOTS; slot++) {
      if (this.#hashes[slot] !== hash) continue;
      const { entries, at } = this.#at(this.#places[slot] ?? 0);
      if (entries.at(at).requestId === requestId) return slot; // X2
    }
    return undefined;
  }

  /** `length` is a power of two. */
  #bucketOf(hash: number): number {
    return Math.imul(hash, BUCKET_SLOTS) & (this.#hashes.length - 1);
  }

  #insert(hash: number, place: number): void {
    if (this.#hashes === NO_HASHES) {
      this.#hashes = new Int32Array(SLOTS_MIN);
      this.#places = new Float64Array(SLOTS_MIN);
    }
    const first = this.#bucketOf(hash);
    for (let slot = first; slot < first + BUCKET_SLOTS; slot++) {
      if (this.#hashes[slot] !== 0) continue;
      this.#hashes[slot] = hash;
      this.#places[slot] = place;
      this.#used++;
      return;
    }
    const { entries, at } = this.#at(place);
    this.#overflow.set(hash, (this.#overflow.get(hash) ?? new Map()).set(entries.at(at).requestId, place)); // X1
    this.#overflowed++;
  }

  #forgetOverflowed(page: number, hash: number, ids: Map<string, number>): void {
    for (const [id, place] of ids) if (pageOf(place) === page && ids.delete(id)) this.#overflowed--;
    if (ids.size === 0) this.#overflow.delete(hash);
  }

  #remove(hash: number, place: number): void {
    const slot = this.#slotAt(hash, place);
    if (slot === undefined) return;
    this.#hashes[slot] = 0;
    this.#used--;
  }

  #slotAt(hash: number, place: number): number | undefined {
    const first = this.#bucketOf(hash);
    for (let slot = first; slot < first + BUCKET_SLOTS; slot++) {
      if (this.#hashes[slot] === hash && this.#places[slot] === place) return slot;
    }
    return undefined;
  }

  #resize(length: number): void {
    const [hashes, places, overflow] = [this.#hashes, this.#places, [...this.#overflow]];
    this.#hashes = new Int32Array(length);
    this.#places = new Float64Array(length);
    this.#overflow.clear();
    this.#overflowed = 0;
    this.#used = 0;
    for (let slot = 0; slot < hashes.length; slot++) {
      const hash = hashes[slot] ?? 0;
      if (hash !== 0) this.#insert(hash, places[slot] ?? 0);
    }
    for (const [hash, ids] of overflow) for (const place of ids.values()) this.#insert(hash, place);
  }

  #at(place: number): OutcomePlace {
    const entries = this.#pages.get(pageOf(place));
    assert(entries !== undefined, 'X1: a place is in a page that was not forgotten');
    return { entries, at: place % PAGE_ENTRIES_MAX };
  }

  #numberOf(entries: OutcomeEntries): number {
    if (entries === this.#latest) return this.#nextPage - 1;
    let page = this.#numbers.get(entries);
    if (page === undefined) {
      page = this.#nextPage++;
      this.#pages.set(page, entries);
      this.#numbers.set(entries, page);
      this.#latest = entries;
    }
    return page;
  }
}

function pageOf(place: number): number {
  return Math.floor(place / PAGE_ENTRIES_MAX);
}
