/**
 * A MessagePack writer for exactly the values of our formats: lists, numbers, text, bytes, booleans, 64-bit integers
 * and null, and plain objects only in error details. A general writer spends most of its time on recognizing Buffers
 * and bigints. The bytes are the same; a test compares them.
 *
 * Frequent messages are written field by field, without a list for each part. All others are built from lists and
 * written as one `value`.
 *
 * K1. The items that a list announces are written right after it; the writer does not count them.
 */
import type { Bytes } from './bytes.ts';
import { ServiceError } from './errors.ts';

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const START_BYTES = 256;
/** A larger buffer is released when the next message begins. */
const KEEP_BYTES = 1 << 22;
/** A buffer that is handed to the caller is full to at least this share: the caller may keep it for long. */
const TAKEN_SHARE_MIN = 0.75;
/** Text up to this length is written in place; longer text, by the platform. */
const SHORT_TEXT = 0x20;
/** The length of the encoded text fits into a byte, whatever its characters. */
const MEDIUM_TEXT = 85;
const SHORT_BYTES = 24;
/** Parts up to this length are copied byte by byte, which takes less time than a slice. */
const SHORT_PART = 96;

/** The number of bytes that `Packer.number` writes. */
export function packedNumberBytes(value: number): number {
  if (value >>> 0 === value) return value < 0x80 ? 1 : value < 0x100 ? 2 : value < 0x10000 ? 3 : 5;
  if (value >> 0 === value) return value >= -0x20 ? 1 : value >= -0x80 ? 2 : value >= -0x8000 ? 3 : 5;
  return 9;
}

/** A part of a message that writes itself, instead of equivalent lists. */
export abstract class Packable {
  /** The approximate number of its bytes: exact for what makes messages large. */
  abstract readonly size: number;
  abstract pack(out: Packer): void;
}

export class Packer {
  #target: Buffer;
  #view: DataView;
  #at = 0;

  constructor(startBytes = START_BYTES) {
    this.#target = Buffer.allocUnsafeSlow(startBytes);
    this.#view = viewOf(this.#target);
  }

  /** The number of bytes written. */
  get length(): number {
    return this.#at;
  }

  /**
   * Begins a new message behind the given number of bytes, which the caller fills. If the message has about as many
   * bytes as expected, it is not copied while it grows.
   */
  begin(at = 0, expectedBytes = 0): void {
    const least = at + expectedBytes;
    if (this.#target.length > KEEP_BYTES || least > KEEP_BYTES) {
      this.#use(Buffer.allocUnsafeSlow(Math.max(START_BYTES, least)));
    }
    this.#at = at;
    this.#reserve(0);
  }

  /** A copy of everything written. */
  copy(): Buffer {
    const out = Buffer.allocUnsafe(this.#at);
    this.#target.copy(out, 0, 0, this.#at);
    return out;
  }

  /**
   * Everything written, for the caller to keep: a copy, unless the buffer is too large to be used again and mostly
   * full. Copying a list of 16 MiB would hold the loop for 5 to 10 ms more.
   */
  take(): Buffer {
    const { length } = this.#target;
    if (length <= KEEP_BYTES || this.#at < length * TAKEN_SHARE_MIN) return this.copy();
    const taken = this.view();
    this.#use(Buffer.allocUnsafeSlow(START_BYTES));
    this.#at = 0;
    return taken;
  }

  /** What is written, without a copy: valid until the next message begins. */
  view(): Buffer {
    return this.#target.subarray(0, this.#at);
  }

  /** Writes a byte as it is: the version of a format. */
  byte(value: number): void {
    this.#reserve(1);
    this.#target[this.#at++] = value;
  }

  /** The header of a list; the items follow (K1). */
  list(count: number): void {
    this.#header(count, 0x90, 0xdc);
  }

  nothing(): void {
    this.byte(0xc0);
  }

  bool(value: boolean): void {
    this.byte(value ? 0xc3 : 0xc2);
  }

  /** Small integers take the room they need, all other numbers eight bytes. */
  number(value: number): void {
    this.#reserve(9);
    if (value >>> 0 === value) this.#uint32(value);
    else if (value >> 0 === value) this.#negative(value);
    else {
      this.#target[this.#at] = 0xcb;
      this.#view.setFloat64(this.#at + 1, value);
      this.#at += 9;
    }
  }

  /**
   * Writes a signed 64-bit integer: a larger one would be truncated to another number.
   *
   * @throws ServiceError INVALID_ARGUMENT for one that does not fit.
   */
  integer(value: bigint): void {
    if (value < INT64_MIN || value > INT64_MAX) {
      throw new ServiceError('INVALID_ARGUMENT', `the number ${value} has more than 64 bits`);
    }
    this.#reserve(9);
    this.#target[this.#at] = 0xd3;
    this.#view.setBigInt64(this.#at + 1, value);
    this.#at += 9;
  }

  bytes(bytes: Bytes): void {
    const { length } = bytes;
    this.#reserve(length + 5);
    this.#bytesHeader(length);
    const target = this.#target;
    const at = this.#at;
    if (length <= SHORT_BYTES) for (let i = 0; i < length; i++) target[at + i] = bytes[i] ?? 0;
    else target.set(bytes, at);
    this.#at = at + length;
  }

  /** Writes a part that is packed already. */
  packed(bytes: Bytes): void {
    this.#reserve(bytes.length);
    this.#target.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Writes a part that is packed already in `source`, from `from` to `to`, without a slice of it. */
  packedPart(source: Bytes, from: number, to: number): void {
    this.#reserve(to - from);
    const target = this.#target;
    const by = this.#at - from;
    if (to - from > SHORT_PART) target.set(source.subarray(from, to), this.#at);
    else for (let i = from; i < to; i++) target[by + i] = source[i] ?? 0;
    this.#at += to - from;
  }

  text(text: string): void {
    if (text.length < SHORT_TEXT && this.#asciiText(text)) return;
    if (text.length < SHORT_TEXT || text.length > MEDIUM_TEXT) this.#longText(text);
    else this.#mediumText(text);
  }

  value(value: unknown): void {
    switch (typeof value) {
      case 'number':
        this.number(value);
        return;
      case 'string':
        this.text(value);
        return;
      case 'boolean':
        this.bool(value);
        return;
      case 'bigint':
        this.integer(value);
        return;
      case 'undefined':
        this.nothing();
        return;
      case 'object':
        this.#object(value);
        return;
      default:
        throw new ServiceError('INTERNAL', `a ${typeof value} cannot be encoded`);
    }
  }

  #object(value: object | null): void {
    if (value === null) this.nothing();
    else if (Array.isArray(value)) {
      this.list(value.length);
      for (let i = 0; i < value.length; i++) this.value(value[i]);
    } else if (value instanceof Uint8Array) this.bytes(value);
    else if (value instanceof Packable) value.pack(this);
    else {
      const fields = Object.entries(value);
      this.#header(fields.length, 0x80, 0xde);
      for (const [name, field] of fields) {
        this.text(name);
        this.value(field);
      }
    }
  }

  #reserve(bytes: number): void {
    const length = this.#at + bytes;
    if (length <= this.#target.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#target.length * 2, length));
    this.#target.copy(larger, 0, 0, this.#at);
    this.#use(larger);
  }

  #use(target: Buffer): void {
    this.#target = target;
    this.#view = viewOf(target);
  }

  /** Lists and maps: the count in the first byte, or after it in two or four. */
  #header(count: number, fix: number, sized: number): void {
    this.#reserve(5);
    if (count < 16) this.#target[this.#at++] = fix | count;
    else if (count < 0x10000) this.#uint16(sized, count);
    else {
      this.#target[this.#at] = sized + 1;
      this.#view.setUint32(this.#at + 1, count);
      this.#at += 5;
    }
  }

  #uint16(token: number, value: number): void {
    this.#target[this.#at] = token;
    this.#target[this.#at + 1] = value >> 8;
    this.#target[this.#at + 2] = value & 0xff;
    this.#at += 3;
  }

  #uint32(value: number): void {
    if (value < 0x80) this.#target[this.#at++] = value;
    else if (value < 0x100) {
      this.#target[this.#at++] = 0xcc;
      this.#target[this.#at++] = value;
    } else if (value < 0x10000) this.#uint16(0xcd, value);
    else {
      this.#target[this.#at] = 0xce;
      this.#view.setUint32(this.#at + 1, value);
      this.#at += 5;
    }
  }

  #negative(value: number): void {
    if (value >= -0x20) this.#target[this.#at++] = 0x100 + value;
    else if (value >= -0x80) {
      this.#target[this.#at++] = 0xd0;
      this.#target[this.#at++] = 0x100 + value;
    } else if (value >= -0x8000) this.#uint16(0xd1, value & 0xffff);
    else {
      this.#target[this.#at] = 0xd2;
      this.#view.setInt32(this.#at + 1, value);
      this.#at += 5;
    }
  }

  #bytesHeader(length: number): void {
    if (length < 0x100) {
      this.#target[this.#at++] = 0xc4;
      this.#target[this.#at++] = length;
    } else if (length < 0x10000) this.#uint16(0xc5, length);
    else {
      this.#target[this.#at] = 0xc6;
      this.#view.setUint32(this.#at + 1, length);
      this.#at += 5;
    }
  }

  /** Returns false and writes nothing if the text is not ASCII. */
  #asciiText(text: string): boolean {
    const { length } = text;
    this.#reserve(length + 1);
    const target = this.#target;
    const start = this.#at + 1;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) return false;
      target[start + i] = code;
    }
    target[this.#at] = 0xa0 | length;
    this.#at = start + length;
    return true;
  }

  /** The start of the text is known before its length in bytes is. */
  #mediumText(text: string): void {
    this.#reserve(2 + 3 * text.length);
    const length = this.#target.write(text, this.#at + 2, 'utf8');
    this.#target[this.#at] = 0xd9;
    this.#target[this.#at + 1] = length;
    this.#at += 2 + length;
  }

  #longText(text: string): void {
    const length = Buffer.byteLength(text);
    this.#reserve(length + 5);
    if (length < 0x20) this.#target[this.#at++] = 0xa0 | length;
    else if (length < 0x100) {
      this.#target[this.#at++] = 0xd9;
      this.#target[this.#at++] = length;
    } else if (length < 0x10000) this.#uint16(0xda, length);
    else {
      this.#target[this.#at] = 0xdb;
      this.#view.setUint32(this.#at + 1, length);
      this.#at += 5;
    }
    this.#at += this.#target.write(text, this.#at, 'utf8');
  }
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
