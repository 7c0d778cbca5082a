import { assert, type Bytes } from '@remora/base';
import { StoredList } from '@remora/protocol';
import { decodeRemembered, PAGE, packRemembered, type Remembered } from './outcome-codec.ts';

/** A page is closed when it holds this many outcomes. */
export const PAGE_ENTRIES_MAX = 1_024;

/**
 * What a page of outcomes holds, as the bytes of its row. There are hundreds of thousands of outcomes at a time, each
 * kept for many seconds and hardly ever asked for: as objects the garbage collector would copy and visit them again and
 * again, which took a sixth of what it costs to apply a command about a lock.
 */
export class OutcomeEntries {
  readonly #list = new StoredList(PAGE);
  readonly #hashes: number[] = [];

  get count(): number {
    return this.#hashes.length;
  }

  /** Of their ids. */
  get hashes(): readonly number[] {
    return this.#hashes;
  }

  /** `hash`: of its id. */
  add(entry: Remembered, hash: number): void {
    this.#list.add(entry, packRemembered);
    this.#hashes.push(hash);
  }

  at(i: number): Remembered {
    assert(i < this.count, 'an outcome of the page');
    return decodeRemembered(this.#list.item(i));
  }

  *[Symbol.iterator](): Generator<Remembered> {
    for (let i = 0; i < this.count; i++) yield this.at(i);
  }

  /** The row of the page, as long as nothing is added. */
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
