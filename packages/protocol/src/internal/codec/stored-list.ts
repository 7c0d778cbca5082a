/**
 * A row whose only field is a list, built item by item: at any time its bytes are those that `encodeStored` returns for
 * all of its items, and none of the items is an object in memory meanwhile.
 *
 * SL1. In front of the items there is room for the longest header: the format's version and the count. A shorter one is
 *      placed directly before the first item.
 */
import { assert, Packer } from '@remora/base';
import type { StoredFormat } from './stored.ts';
import { unpack } from './unpack.ts';

/** As many as the header has room for. */
const STORED_ITEMS_MAX = 0xffff;
const HEADER_BYTES_MAX = 5;

export class StoredList {
  readonly #version: number;
  readonly #out = new Packer();
  /** The end of each item. */
  readonly #ends: number[] = [];

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
    const end = this.#ends[at];
    assert(end !== undefined, 'an item of the list');
    return unpack(this.#out.view().subarray(0, end), at === 0 ? HEADER_BYTES_MAX : (this.#ends[at - 1] ?? 0));
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
