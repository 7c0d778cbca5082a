/**
 * Encodes header blocks without a dynamic table: fields of the static table by their index, all others as literals that
 * are not added to a table (RFC 7541 §6.2.2). So a block of constant fields is the same on every connection and may be
 * encoded once.
 *
 * The table of the peer's decoder stays empty. Its capacity changes in one case only: if the peer lowers it below the
 * initial one, the next block must say so (§4.2); the encoder chooses 0 then, which every later setting allows.
 */
import { type HeaderField, TABLE_BYTES_INITIAL } from './header-field.ts';
import { huffmanBytes, huffmanEncode } from './huffman.ts';
import { staticFieldIndex, staticNameIndex } from './static-table.ts';

/** A table size update to 0 (§6.3). */
const TO_ZERO = Buffer.from([0x20]);
const NO_BYTES = Buffer.alloc(0);
/** The most that the index and two lengths of a field take; strings are shorter than 2^28 octets. */
const PREFIX_BYTES_MAX = 11;

/** Encodes fields, the same on every connection. */
export function encodeFields(fields: readonly HeaderField[]): Buffer {
  const roomBytes = fields.reduce((sum, { name, value }) => sum + PREFIX_BYTES_MAX + name.length + value.length, 0);
  const block = Buffer.allocUnsafe(roomBytes);
  let at = 0;
  for (const field of fields) at = writeField(field, block, at);
  return block.subarray(0, at);
}

export class HeaderEncoder {
  #isZero = false;
  #isUpdateDue = false;

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  setTableBytesMax(bytes: number): void {
    if (bytes < TABLE_BYTES_INITIAL && !this.#isZero) this.#isUpdateDue = true;
  }

  /**
   * What the next block must begin with; empty except for one block after the peer has lowered its setting. Callers who
   * send a constant block send this before it.
   */
  takePrefix(): Buffer {
    if (!this.#isUpdateDue) return NO_BYTES;
    this.#isUpdateDue = false;
    this.#isZero = true;
    return TO_ZERO;
  }

  /** One whole header block. */
  encode(fields: readonly HeaderField[]): Buffer {
    const block = encodeFields(fields);
    return this.#isUpdateDue ? Buffer.concat([this.takePrefix(), block]) : block;
  }
}

function writeField({ name, value }: HeaderField, block: Buffer, start: number): number {
  const whole = staticFieldIndex(name, value);
  if (whole !== 0) return writeInteger(whole, 0x7f, 0x80, block, start);
  const index = staticNameIndex(name);
  let at = writeInteger(index, 0x0f, 0, block, start);
  if (index === 0) at = writeString(name, block, at);
  return writeString(value, block, at);
}

/** An integer (§5.1) behind the bits of `flags`. */
function writeInteger(value: number, prefix: number, flags: number, block: Buffer, start: number): number {
  let at = start;
  if (value < prefix) {
    block[at++] = flags | value;
    return at;
  }
  block[at++] = flags | prefix;
  let rest = value - prefix;
  for (; rest >= 128; rest >>>= 7) block[at++] = 0x80 | (rest & 0x7f);
  block[at++] = rest;
  return at;
}

/** A string literal (§5.2), by the Huffman code if that is shorter. */
function writeString(text: string, block: Buffer, start: number): number {
  const coded = huffmanBytes(text);
  if (coded < text.length) return huffmanEncode(text, block, writeInteger(coded, 0x7f, 0x80, block, start));
  const at = writeInteger(text.length, 0x7f, 0, block, start);
  return at + block.write(text, at, 'latin1');
}
