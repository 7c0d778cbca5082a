import { assert, type Bytes } from '@remora/base';
import { StoredList } from '@remora/protocol';
import { decodeRemembered, PAGE, packMoved, packRemembered, type Remembered } from './outcome-codec.ts';

/** A page is closed when it holds this many outcomes. */
export const PAGE_ENTRIES_MAX = 1_024;

/**
 * The contents of a page of outcomes, as the bytes of its row. There are hundreds of thousands of outcomes at a time,
 * each kept for many seconds and rarely looked up. As objects, the garbage collector would copy and visit them again
 * and again; that took a sixth of the cost of applying a lock command.
 */
export class OutcomeEntries {
  readonly #list = new StoredList(PAGE);
  readonly #hashes: number[] = [];
  readonly #deadlines: number[] = [];

  get count(): number {
    return this.#hashes.length;
  }

  /** The hashes of the ids. */
  get hashes(): readonly number[] {
    return this.#hashes;
  }

  /** The deadlines, in milliseconds of range time. */
  get deadlines(): readonly number[] {
    return this.#deadlines;
  }

  /** `hash`: the hash of the entry's id. */
  add(entry: Remembered, hash: number): void {
    this.#list.add(entry, packRemembered);
    this.#hashes.push(hash);
    this.#deadlines.push(entry.deadlineMs);
  }

  /** Adds an outcome of another page with a new deadline, without decoding it. */
  addFrom(other: OutcomeEntries, at: number, deadlineMs: number): void {
    assert(at < other.count, 'an outcome of the page');
    const deadlines = { beforeMs: other.#deadlines[at] ?? 0, afterMs: deadlineMs };
    this.#list.addFrom(other.#list, at, (out, source, place) => packMoved(out, source, place, deadlines));
    this.#hashes.push(other.#hashes[at] ?? 0);
    this.#deadlines.push(deadlineMs);
  }

  at(i: number): Remembered {
    assert(i < this.count, 'an outcome of the page');
    return decodeRemembered(this.#list.item(i));
  }

  *[Symbol.iterator](): Generator<Remembered> {
    for (let i = 0; i < this.count; i++) yield this.at(i);
  }

  /** The row of the page; valid until an entry is added. */
  row(): Bytes {
    return this.#list.row();
  }
}

/** FNV-1a, whose last bits are mixed with the others as ids differ at their ends (MurmurHash3's finalizer); never 0. */
export function hashOfId(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16) || 1;
}
