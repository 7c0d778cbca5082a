import { ServiceError } from '@remora/base';

/**
 * A MessagePack encoder for exactly what our formats hold (see `wire.ts`). The general one spends most of its time on
 * finding out what a Buffer and a bigint are; this one takes a third of it. The bytes are the same: a test compares.
 *
 * P1. One buffer is written to again and again, so encoding never runs inside itself; results are copies.
 */
const START_BYTES = 1 << 16;
/** A larger buffer is given back after use. */
const KEEP_BYTES = 1 << 22;
const SHORT_TEXT = 64;
const SHORT_BYTES = 24;

let target = Buffer.allocUnsafeSlow(START_BYTES);
let view = viewOf(target);
let at = 0;

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

/** `firstByte`, then `value`. The result is the caller's. */
export function pack(firstByte: number, value: unknown): Buffer {
  target[0] = firstByte;
  at = 1;
  return written(value);
}

/** The value alone. The result is the caller's. */
export function packPlain(value: unknown): Buffer {
  at = 0;
  return written(value);
}

/**
 * Puts the value into `out`, from `from` on, and gives where it ends. If that is behind the end of `out`, nothing is put
 * there.
 */
export function packInto(out: Buffer, from: number, value: unknown): number {
  at = 0;
  packValue(value);
  const end = from + at;
  if (end <= out.length) target.copy(out, from, 0, at);
  release();
  return end;
}

/** Adds `value` to what was begun, and gives all of it. */
function written(value: unknown): Buffer {
  packValue(value);
  const out = Buffer.allocUnsafe(at);
  target.copy(out, 0, 0, at);
  release();
  return out;
}

function release(): void {
  if (target.length <= KEEP_BYTES) return;
  target = Buffer.allocUnsafeSlow(START_BYTES);
  view = viewOf(target);
}

function reserve(bytes: number): void {
  if (at + bytes <= target.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(target.length * 2, at + bytes));
  target.copy(larger, 0, 0, at);
  target = larger;
  view = viewOf(larger);
}

function packValue(value: unknown): void {
  reserve(10);
  switch (typeof value) {
    case 'number':
      packNumber(value);
      return;
    case 'string':
      packText(value);
      return;
    case 'boolean':
      target[at++] = value ? 0xc3 : 0xc2;
      return;
    case 'bigint':
      target[at] = 0xd3;
      view.setBigInt64(at + 1, value);
      at += 9;
      return;
    case 'undefined':
      target[at++] = 0xc0;
      return;
    case 'object':
      packObject(value);
      return;
    default:
      throw new ServiceError('INTERNAL', `a ${typeof value} cannot be encoded`);
  }
}

function packObject(value: object | null): void {
  if (value === null) target[at++] = 0xc0;
  else if (Array.isArray(value)) {
    packHeader(value.length, 0x90, 0xdc);
    for (let i = 0; i < value.length; i++) packValue(value[i]);
  } else if (value instanceof Uint8Array) packBytes(value);
  else {
    const fields = Object.entries(value);
    packHeader(fields.length, 0x80, 0xde);
    for (const [name, field] of fields) {
      reserve(5);
      packText(name);
      packValue(field);
    }
  }
}

/** Arrays and maps: the count in the first byte, or after it in two or four. */
function packHeader(count: number, fix: number, sized: number): void {
  if (count < 16) target[at++] = fix | count;
  else if (count < 0x10000) {
    target[at] = sized;
    view.setUint16(at + 1, count);
    at += 3;
  } else {
    target[at] = sized + 1;
    view.setUint32(at + 1, count);
    at += 5;
  }
}

function packNumber(value: number): void {
  if (value >>> 0 === value) packUint32(value);
  else if (value >> 0 === value) packNegative(value);
  else {
    target[at] = 0xcb;
    view.setFloat64(at + 1, value);
    at += 9;
  }
}

function packUint32(value: number): void {
  if (value < 0x80) target[at++] = value;
  else if (value < 0x100) {
    target[at++] = 0xcc;
    target[at++] = value;
  } else if (value < 0x10000) {
    target[at++] = 0xcd;
    target[at++] = value >> 8;
    target[at++] = value & 0xff;
  } else {
    target[at] = 0xce;
    view.setUint32(at + 1, value);
    at += 5;
  }
}

function packNegative(value: number): void {
  if (value >= -0x20) target[at++] = 0x100 + value;
  else if (value >= -0x80) {
    target[at++] = 0xd0;
    target[at++] = 0x100 + value;
  } else if (value >= -0x8000) {
    target[at] = 0xd1;
    view.setInt16(at + 1, value);
    at += 3;
  } else {
    target[at] = 0xd2;
    view.setInt32(at + 1, value);
    at += 5;
  }
}

function packBytes(bytes: Uint8Array): void {
  const { length } = bytes;
  reserve(length + 5);
  if (length < 0x100) {
    target[at++] = 0xc4;
    target[at++] = length;
  } else if (length < 0x10000) {
    target[at] = 0xc5;
    view.setUint16(at + 1, length);
    at += 3;
  } else {
    target[at] = 0xc6;
    view.setUint32(at + 1, length);
    at += 5;
  }
  if (length <= SHORT_BYTES) for (let i = 0; i < length; i++) target[at + i] = bytes[i] ?? 0;
  else target.set(bytes, at);
  at += length;
}

/** Short ASCII, nearly all of our text, is written in place; anything else by the platform. */
function packText(text: string): void {
  const { length } = text;
  if (length < SHORT_TEXT) {
    reserve(length + 2);
    const start = at + (length < 0x20 ? 1 : 2);
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) break;
      target[start + i] = code;
    }
    if (i === length) {
      if (length < 0x20) target[at] = 0xa0 | length;
      else {
        target[at] = 0xd9;
        target[at + 1] = length;
      }
      at = start + length;
      return;
    }
  }
  packLongText(text);
}

function packLongText(text: string): void {
  const bytes = Buffer.byteLength(text);
  reserve(bytes + 5);
  if (bytes < 0x20) target[at++] = 0xa0 | bytes;
  else if (bytes < 0x100) {
    target[at++] = 0xd9;
    target[at++] = bytes;
  } else if (bytes < 0x10000) {
    target[at] = 0xda;
    view.setUint16(at + 1, bytes);
    at += 3;
  } else {
    target[at] = 0xdb;
    view.setUint32(at + 1, bytes);
    at += 5;
  }
  at += target.write(text, at, 'utf8');
}
