/** The codec of the rows that stay while nobody holds the lock. The rules are those of `records.ts`. */
import { asBuffer, type Bytes } from '@remora/base';
import { viewAround } from '../codec/binary.ts';
import type { ForcedRelease } from '../types.ts';
import { BLOCK_LENGTH_BYTES, checkBlock, checkRecord, readTail, writeTail } from './record-parts.ts';
import { RECORD_VERSION } from './records.ts';

/** The version, before the first block. */
const PREFIX_BYTES = 1;
const BLOCK_AT = PREFIX_BYTES + BLOCK_LENGTH_BYTES;
const FORCED_BLOCK = { bytes: 16, bytesMin: 16 };

export function encodeKept(data: Bytes): Buffer {
  const out = Buffer.allocUnsafe(PREFIX_BYTES + data.length);
  out[0] = RECORD_VERSION;
  out.set(data, PREFIX_BYTES);
  return out;
}

export function decodeKept(bytes: Bytes): Bytes {
  checkRecord(bytes, PREFIX_BYTES, RECORD_VERSION);
  return asBuffer(bytes).subarray(PREFIX_BYTES);
}

export function encodeForced({ atMs, by, reason, version }: ForcedRelease): Buffer {
  const tokenBytes = Buffer.byteLength(by);
  const data = Buffer.from(reason);
  const tailAt = BLOCK_AT + FORCED_BLOCK.bytes;
  const out = Buffer.allocUnsafe(tailAt + 2 + tokenBytes + data.length);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = RECORD_VERSION;
  view.setUint16(at + PREFIX_BYTES, FORCED_BLOCK.bytes);
  view.setFloat64(at + BLOCK_AT, atMs);
  view.setFloat64(at + BLOCK_AT + 8, version);
  writeTail(out, tailAt, { token: by, tokenBytes, data });
  return out;
}

export function decodeForced(bytes: Bytes): ForcedRelease {
  checkRecord(bytes, PREFIX_BYTES, RECORD_VERSION);
  const tailAt = checkBlock(bytes, PREFIX_BYTES, FORCED_BLOCK);
  const view = viewAround(bytes);
  const at = bytes.byteOffset + BLOCK_AT;
  const { token, data } = readTail(bytes, tailAt);
  return {
    atMs: view.getFloat64(at),
    by: token,
    reason: asBuffer(data).toString('utf8'),
    version: view.getFloat64(at + 8),
  };
}
