/**
 * Packing by msgpackr, for messages and rows that are not on the hot path (docs/decisions/0008).
 *
 * LP1. The bytes equal those of our own packer: records and extensions are off, and a test compares the two.
 * LP2. msgpackr writes some values in a form that our reader refuses: half of a surrogate pair as text that is not
 *      UTF-8, and undefined as an extension. Our packer packs messages with one of these, or with a part that writes
 *      itself.
 */
import { Packable, type Packer } from '@remora/base';
import { Packr } from 'msgpackr';
import { packPlain } from './pack.ts';

/** LP1. */
const library = new Packr({
  useRecords: false,
  variableMapSize: true,
  moreTypes: false,
  structuredClone: false,
  int64AsType: 'bigint',
});

/** A part of a larger message that is packed already. */
class Packed extends Packable {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    super();
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#bytes.length;
  }

  pack(out: Packer): void {
    out.packed(this.#bytes);
  }
}

/** The body of a call or an answer, packed by the library if it can be. */
export function packBody(body: unknown): unknown {
  return isForLibrary(body) ? new Packed(library.pack(body)) : body;
}

/** The same for a row. The caller owns the bytes. */
export function packRow(row: readonly unknown[]): Buffer {
  // The library returns a part of a larger buffer, which rows would keep in memory.
  return isForLibrary(row) ? Buffer.from(library.pack(row)) : packPlain(row);
}

/** LP2. */
function isForLibrary(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed();
    case 'object':
      if (value === null || value instanceof Uint8Array) return true;
      if (value instanceof Packable) return false;
      if (Array.isArray(value)) return value.every(isForLibrary);
      return Object.entries(value).every(([name, field]) => name.isWellFormed() && isForLibrary(field));
    case 'number':
    case 'bigint':
    case 'boolean':
      return true;
    default:
      return false;
  }
}
