/**
 * The row of an owner that waits at a barrier, or has passed; its key names the owner. The rules are those of
 * `records.ts`.
 */
import type { Bytes } from '@remora/base';
import { viewAround } from '../codec/binary.ts';
import { BLOCK_LENGTH_BYTES, checkBlock, checkRecord } from './record-parts.ts';
import { RECORD_VERSION } from './records.ts';

export interface BarrierWaiterRecord {
  readonly attempt: number;
  readonly waitUntilMs: number;
  /** It waits until this many owners share the lock, itself included; 0: until nobody holds it. */
  readonly parties: number;
  /** The revision at which it passed; 0: it still waits. */
  readonly passedVersion: number;
}

/** The version, before the block. */
const PREFIX_BYTES = 1;
const BLOCK_AT = PREFIX_BYTES + BLOCK_LENGTH_BYTES;
const BLOCK = { bytes: 28, bytesMin: 28 };

export function encodeBarrierWaiter({ attempt, waitUntilMs, passedVersion, parties }: BarrierWaiterRecord): Buffer {
  const out = Buffer.allocUnsafe(BLOCK_AT + BLOCK.bytes);
  const view = viewAround(out);
  const at = out.byteOffset + BLOCK_AT;
  out[0] = RECORD_VERSION;
  view.setUint16(out.byteOffset + PREFIX_BYTES, BLOCK.bytes);
  view.setFloat64(at, attempt);
  view.setFloat64(at + 8, waitUntilMs);
  view.setFloat64(at + 16, passedVersion);
  view.setUint32(at + 24, parties);
  return out;
}

export function decodeBarrierWaiter(bytes: Bytes): BarrierWaiterRecord {
  checkRecord(bytes, PREFIX_BYTES, RECORD_VERSION);
  checkBlock(bytes, PREFIX_BYTES, BLOCK);
  const view = viewAround(bytes);
  const at = bytes.byteOffset + BLOCK_AT;
  return {
    attempt: view.getFloat64(at),
    waitUntilMs: view.getFloat64(at + 8),
    passedVersion: view.getFloat64(at + 16),
    parties: view.getUint32(at + 24),
  };
}
