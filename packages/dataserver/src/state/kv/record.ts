import { asBuffer, assert, type Bytes } from '@remora/base';
import type { KeyValue } from '@remora/protocol';
import { readUint64 } from '../keys.ts';

/**
 * A stored version of a plain key: 1 byte kind, then createRevision(8) modRevision(8) version(8) lease(8) value.
 * A deletion (only in history) is the kind byte alone. All integers are big-endian.
 */
export interface Version {
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  readonly lease: bigint;
  readonly value: Bytes;
}

const KIND_PUT = 1;
const KIND_DELETE = 2;
const HEADER_BYTES = 33;

/** The row of a deletion in history; its revision is in the key. */
export const DELETION: Bytes = Buffer.from([KIND_DELETE]);

export function isDeletion(row: Bytes): boolean {
  return row[0] === KIND_DELETE;
}

export function encodeVersion(v: Version): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + v.value.length);
  out[0] = KIND_PUT;
  putUint64(out, v.createRevision, 1);
  putUint64(out, v.modRevision, 9);
  putUint64(out, v.version, 17);
  if (v.lease === 0n) out.fill(0, 25, 33);
  else out.writeBigInt64BE(v.lease, 25);
  out.set(v.value, HEADER_BYTES);
  return out;
}

/** The value is a slice of the row. */
export function decodeVersion(row: Bytes): Version {
  assert(row[0] === KIND_PUT && row.length >= HEADER_BYTES, 'a stored version has an unknown kind');
  const bytes = asBuffer(row);
  const noLease = bytes.readInt32BE(25) === 0 && bytes.readInt32BE(29) === 0;
  return {
    createRevision: readUint64(bytes, 1),
    modRevision: readUint64(bytes, 9),
    version: readUint64(bytes, 17),
    lease: noLease ? 0n : bytes.readBigInt64BE(25),
    value: bytes.subarray(HEADER_BYTES),
  };
}

/** The value alone, as a slice of the row. */
export function valueOfRow(row: Bytes): Bytes {
  return row.subarray(HEADER_BYTES);
}

/** The modification revision alone, without decoding the rest. */
export function modRevisionOf(row: Bytes): number {
  return readUint64(asBuffer(row), 9);
}

export function toKeyValue(key: Bytes, v: Version): KeyValue {
  return {
    key,
    value: v.value,
    createRevision: v.createRevision,
    modRevision: v.modRevision,
    version: v.version,
    lease: v.lease,
  };
}

function putUint64(out: Buffer, value: number, offset: number): void {
  out.writeUInt32BE(Math.floor(value / 0x1_0000_0000), offset);
  out.writeUInt32BE(value >>> 0, offset + 4);
}
