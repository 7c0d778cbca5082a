/**
 * A row whose only field is a list, built item by item: at any time its bytes are those that `encodeStored` returns for
 * all of its items, and none of the items is an object in memory meanwhile.
 *
 * SL1. In front of the items there is room for the longest header: the format's version and the count. A shorter one is
 *      placed directly before the first item.
 */
import { assert, type Bytes, Packer } from '@remora/base';
import type { StoredFormat } from './stored.ts';
import { unpack } from './unpack.ts';

/** As many as the header has room for. */
const STORED_ITEMS_MAX = 0xffff;
const HEADER_BYTES_MAX = 5;

/** Where an item lies in the bytes of its list. */
export interface ItemPlace {
  readonly from: number;
  readonly to: number;
}

export class StoredList {
  readonly #version: number;
  readonly #out = new Packer();
  /** The end of each item. */
  readonly #ends: number[] = [];
  /** What `#bytes` returned last: items are usually copied from a list that is complete. */
  #view: Buffer = Buffer.alloc(0);

  constructor({ version, fields }: StoredFormat) {
    assert(fields === 1 && version < 0x80, 'a list is the only field of its format, whose version is one byte');
    this.#version = version;
    this.#out.begin(HEADER_BYTES_MAX);
  }

  get count(): number {
    return this.#ends.length;
  }

  /** Adds the item that `write` writes. */
  add<T>(item: T, write: (out: Packer, item: T) => void): void {
    assert(this.count < STORED_ITEMS_MAX, 'the header has room for the count');
    write(this.#out, item);
    this.#ends.push(this.#out.length);
  }

  /** The item as it was packed; bytes in it are slices of the list. */
  item(at: number): unknown {
    const { from, to } = this.#placeOf(at);
    return unpack(this.#out.view().subarray(0, to), from);
  }

  /** Adds an item of another list of the same format: `write` copies it from `source`, where it lies at `place`. */
  addFrom(other: StoredList, at: number, write: (out: Packer, source: Bytes, place: ItemPlace) => void): void {
    assert(this.count < STORED_ITEMS_MAX, 'the header has room for the count');
    write(this.#out, other.#bytes(), other.#placeOf(at));
    this.#ends.push(this.#out.length);
  }

  #placeOf(at: number): ItemPlace {
    const to = this.#ends[at];
    assert(to !== undefined, 'an item of the list');
    return { from: at === 0 ? HEADER_BYTES_MAX : (this.#ends[at - 1] ?? 0), to };
  }

  /** The header and all items; valid until an item is added. */
  #bytes(): Buffer {
    if (this.#view.length !== this.#out.length) this.#view = this.#out.view();
    return this.#view;
  }

  /** The row. It is valid until an item is added. */
  row(): Buffer {
    const { count } = this;
    const header = count < 16 ? [0x90 | count] : [0xdc, count >> 8, count & 0xff];
    const start = HEADER_BYTES_MAX - 2 - header.length; // SL1
    const bytes = this.#out.view();
    bytes.set([0x92, this.#version, ...header], start);
    return bytes.subarray(start);
  }
}
