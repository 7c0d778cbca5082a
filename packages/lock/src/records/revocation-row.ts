/** The row of a revocation. The head says whether it exists, so a lock without one costs nothing. */
import { asBuffer, type Bytes, InvariantError, utf8 } from '@remora/base';
import { viewAround } from '../codec/binary.ts';
import type { LockView } from '../lock-view.ts';
import type { Revocation } from '../types.ts';
import type { LockKeys } from './keys.ts';
import { BLOCK_LENGTH_BYTES, checkBlock, checkRecord, readTail, writeTail } from './record-parts.ts';
import { type Head, RECORD_VERSION } from './records.ts';

const BLOCK = { bytes: 32, bytesMin: 32 };
/** The version, before the block. */
const PREFIX_BYTES = 1;

/** The revocation of a lock, whether its time is over or not; undefined if there is none. */
export function readRevocation(
  view: Pick<LockView, 'get'>,
  keys: LockKeys,
  head: Pick<Head, 'revoking'>,
): Revocation | undefined {
  if (!head.revoking) return undefined;
  const row = view.get(keys.revocation());
  if (row === undefined) throw new InvariantError('W1: the head says which rows there are');
  return decodeRow(row);
}

/** The revocation of a lock, unless its time is over. */
export function liveRevocation(
  view: Pick<LockView, 'get' | 'timeMs'>,
  keys: LockKeys,
  head: Pick<Head, 'revoking'>,
): Revocation | undefined {
  const revocation = readRevocation(view, keys, head);
  return revocation !== undefined && view.timeMs <= revocation.untilMs ? revocation : undefined;
}

/** Undefined: there is no revocation any more. */
export function writeRevocation(
  view: LockView,
  keys: LockKeys,
  { head, revocation }: { readonly head: Head; readonly revocation: Revocation | undefined },
): void {
  head.revoking = revocation !== undefined;
  if (revocation === undefined) view.delete(keys.revocation());
  else view.put(keys.revocation(), encodeRow(revocation));
}

function encodeRow({ revision, version, untilMs, sinceMs, by, reason }: Revocation): Buffer {
  const data = utf8(reason);
  const tokenBytes = Buffer.byteLength(by);
  const from = PREFIX_BYTES + BLOCK_LENGTH_BYTES;
  const tailAt = from + BLOCK.bytes;
  const out = Buffer.allocUnsafe(tailAt + 2 + tokenBytes + data.length);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = RECORD_VERSION;
  view.setUint16(at + PREFIX_BYTES, BLOCK.bytes);
  view.setFloat64(at + from, revision);
  view.setFloat64(at + from + 8, version);
  view.setFloat64(at + from + 16, untilMs);
  view.setFloat64(at + from + 24, sinceMs);
  writeTail(out, tailAt, { token: by, tokenBytes, data });
  return out;
}

function decodeRow(bytes: Bytes): Revocation {
  checkRecord(bytes, PREFIX_BYTES, RECORD_VERSION);
  const tailAt = checkBlock(bytes, PREFIX_BYTES, BLOCK);
  const { token: by, data } = readTail(bytes, tailAt);
  const view = viewAround(bytes);
  const at = bytes.byteOffset + PREFIX_BYTES + BLOCK_LENGTH_BYTES;
  return {
    revision: view.getFloat64(at),
    version: view.getFloat64(at + 8),
    untilMs: view.getFloat64(at + 16),
    sinceMs: view.getFloat64(at + 24),
    by,
    reason: asBuffer(data).toString('utf8'),
  };
}
