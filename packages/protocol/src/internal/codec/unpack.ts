import { asBuffer, type Bytes } from '@remora/base';

/**
 * The inverse of `pack.ts`: a MessagePack decoder for exactly the contents of our formats. A general decoder also reads
 * extensions (dates, patterns, errors, sets, references, records that it compiles to code): with these, a peer or a
 * client could produce values that no codec expects.
 *
 * U1. The result is a value that `pack` can write, or `UnpackError` is thrown: no extensions, no bytes left over, only
 *     UTF-8 text, only text as names of fields.
 * U2. Nothing larger than the given bytes allow is created: all lists and maps together announce at most as many items
 *     as there are bytes left.
 * U3. Nesting is bounded: neither decoding nor code that walks the result exhausts the stack.
 * U4. Bytes in the result are slices of the input: copy them to keep them (conventions 7).
 * U5. The input being read is state of the module, as in `pack.ts`: decoding never runs inside itself.
 */
export class UnpackError extends Error {
  override readonly name = 'UnpackError';
}

/** Our deepest message, a transaction of 16 levels in an entry, has 72. */
const DEPTH_MAX = 96;
const REPLACEMENT = '\ufffd';

const NOTHING = Buffer.alloc(0) as Buffer as TextBuffer;
const NO_VIEW = new DataView(new ArrayBuffer(0));
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads text without a look-up of its encoding's name, which costs as much as short text itself. */
interface TextBuffer extends Buffer {
  utf8Slice(from: number, to: number): string;
}

let input = NOTHING;
let view: DataView = NO_VIEW;
let at = 0;
/** The number of items that lists and maps may still announce (U2). */
let room = 0;
/** The sizes of the outermost list's items, if they are wanted. */
let sizes: number[] | undefined;

/** Decodes `bytes` from `from` on; throws `UnpackError`. */
export function unpack(bytes: Bytes, from: number): unknown {
  input = asBuffer(bytes) as TextBuffer;
  at = from;
  room = input.length;
  try {
    const value = read(0);
    if (at !== input.length) throw new UnpackError('bytes are left over');
    return value;
  } finally {
    input = NOTHING;
    view = NO_VIEW;
  }
}

/** Returns where packed text at `from` ends, without reading it; throws `UnpackError` if it is not text. */
export function endOfText(bytes: Bytes, from: number): number {
  const token = bytes[from] ?? 0;
  const byte = (i: number): number => bytes[from + i] ?? 0;
  if (token >= 0xa0 && token < 0xc0) return from + 1 + (token & 0x1f);
  if (token === 0xd9) return from + 2 + byte(1);
  if (token === 0xda) return from + 3 + ((byte(1) << 8) | byte(2));
  if (token === 0xdb) return from + 5 + (((byte(1) << 24) | (byte(2) << 16) | (byte(3) << 8) | byte(4)) >>> 0);
  throw new UnpackError('not text');
}

/** Like `unpack`, with the number of bytes of each item if it is a list. */
export function unpackMeasured(
  bytes: Bytes,
  from: number,
): { readonly value: unknown; readonly sizes: readonly number[] } {
  const measured: number[] = [];
  sizes = measured;
  try {
    return { value: unpack(bytes, from), sizes: measured };
  } finally {
    sizes = undefined;
  }
}

function read(depth: number): unknown {
  const token = input[at++];
  if (token === undefined) throw cutShort();
  if (token < 0x80) return token;
  if (token < 0x90) return readMap(token & 0x0f, depth);
  if (token < 0xa0) return readList(token & 0x0f, depth);
  if (token < 0xc0) return readText(token & 0x1f);
  switch (token) {
    case 0xc0:
      return null;
    case 0xc2:
      return false;
    case 0xc3:
      return true;
    case 0xc4:
      return readBytes(uint8());
    case 0xc5:
      return readBytes(uint16());
    case 0xc6:
      return readBytes(uint32());
    case 0xd9:
      return readText(uint8());
    case 0xda:
      return readText(uint16());
    case 0xdb:
      return readText(uint32());
    case 0xdc:
      return readList(uint16(), depth);
    case 0xdd:
      return readList(uint32(), depth);
    case 0xde:
      return readMap(uint16(), depth);
    case 0xdf:
      return readMap(uint32(), depth);
    default:
      return readNumber(token);
  }
}

function readNumber(token: number): number | bigint {
  switch (token) {
    case 0xca:
      return numbers().getFloat32(take(4));
    case 0xcb:
      return numbers().getFloat64(take(8));
    case 0xcc:
      return uint8();
    case 0xcd:
      return uint16();
    case 0xce:
      return uint32();
    case 0xcf:
      return numbers().getBigUint64(take(8));
    case 0xd0:
      return (uint8() << 24) >> 24;
    case 0xd1:
      return (uint16() << 16) >> 16;
    case 0xd2:
      return uint32() | 0;
    case 0xd3:
      return numbers().getBigInt64(take(8));
    default:
      if (token >= 0xe0) return token - 0x100;
      throw new UnpackError(`a value of the unknown type ${token}`); // U1
  }
}

function readList(count: number, depth: number): unknown[] {
  announce(count, depth);
  if (depth === 0 && sizes !== undefined) return readMeasuredList(count, sizes);
  const list = new Array<unknown>(count);
  for (let i = 0; i < count; i++) list[i] = read(depth + 1);
  return list;
}

function readMeasuredList(count: number, measured: number[]): unknown[] {
  const list = new Array<unknown>(count);
  for (let i = 0; i < count; i++) {
    const from = at;
    list[i] = read(1);
    measured.push(at - from);
  }
  return list;
}

/** The fields are the result's own properties, whatever their names: `__proto__` is an ordinary name. */
function readMap(count: number, depth: number): Record<string, unknown> {
  announce(2 * count, depth);
  const map: Record<string, unknown> = {};
  for (let i = 0; i < count; i++) {
    const name = read(depth + 1);
    if (typeof name !== 'string') throw new UnpackError('the name of a field is not text');
    const value = read(depth + 1);
    if (name === '__proto__') {
      Object.defineProperty(map, name, { value, enumerable: true, configurable: true, writable: true });
    } else map[name] = value;
  }
  return map;
}

/** U2, U3. */
function announce(items: number, depth: number): void {
  room -= items;
  if (items > input.length - at || room < 0) throw cutShort();
  if (depth >= DEPTH_MAX) throw new UnpackError('nested too deep');
}

/** One object for all empty bytes: keeping them keeps nothing of the message that they came in. */
const NO_BYTES = Buffer.alloc(0);

function readBytes(length: number): Buffer {
  const from = take(length);
  if (length === 0) return NO_BYTES;
  return input.subarray(from, at);
}

function readText(length: number): string {
  const from = take(length);
  const text = input.utf8Slice(from, at);
  // U1. Invalid UTF-8 becomes a replacement character; so does that character itself.
  if (text.includes(REPLACEMENT)) checkUtf8(input.subarray(from, at));
  return text;
}

function checkUtf8(bytes: Uint8Array): void {
  try {
    strictUtf8.decode(bytes);
  } catch {
    throw new UnpackError('text that is not UTF-8');
  }
}

/** Skips `length` bytes and returns where they begin. */
function take(length: number): number {
  const from = at;
  if (length > input.length - from) throw cutShort();
  at = from + length;
  return from;
}

function uint8(): number {
  const from = take(1);
  return input[from] ?? 0;
}

function uint16(): number {
  const from = take(2);
  return ((input[from] ?? 0) << 8) | (input[from + 1] ?? 0);
}

function uint32(): number {
  const from = take(4);
  const low = ((input[from + 1] ?? 0) << 16) | ((input[from + 2] ?? 0) << 8) | (input[from + 3] ?? 0);
  return (input[from] ?? 0) * 0x100_0000 + low;
}

/** Created when the first number needs it. */
function numbers(): DataView {
  if (view === NO_VIEW) view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  return view;
}

function cutShort(): UnpackError {
  return new UnpackError('cut short');
}
