/**
 * The codecs of waiters, of shares, and of owner rows. The rules are those of `records.ts`.
 */
import { asBuffer, type Bytes, EMPTY_BYTES, InvariantError, type Row } from '@remora/base';
import { viewAround } from '../codec/binary.ts';
import type { Owner, Waiter } from '../types.ts';
import type { LockKeys } from './keys.ts';
import {
  BLOCK_LENGTH_BYTES,
  checkBlock,
  checkRecord,
  HOLD_TERMS_BYTES,
  readTail,
  readTerms,
  writeTail,
  writeTerms,
} from './record-parts.ts';
import { type Hold, RECORD_VERSION } from './records.ts';

const BLOCKS_VERSION = 2;

export interface WaiterRecord {
  readonly owner: Owner;
  readonly mode: Waiter['mode'];
  /** 0 unless the lock is a semaphore. */
  readonly permits: number;
  readonly attempt: number;
  readonly waitUntilMs: number;
  readonly sinceMs: number;
  readonly data: Bytes;
  readonly keepData: boolean;
  readonly delayMs: number;
}

export interface Mark {
  /** The latest acquire that it refuses; 0 when acquires are not numbered. */
  readonly attempt: number;
  readonly deadlineMs: number;
}

/** What an owner has besides an exclusive hold. A row without any of it is deleted. */
export interface OwnerRecord {
  /** The sequence of its place in the queue; 0: none. */
  readonly sequence: number;
  readonly mark: Mark | undefined;
  /** The version of its share, which leads to the row of the share; 0: none. */
  readonly shareVersion: number;
}

export const NOTHING_OWNED: OwnerRecord = { sequence: 0, mark: undefined, shareVersion: 0 };

/** Modes by number, in stored records. */
const MODES: readonly Waiter['mode'][] = ['exclusive', 'shared', 'permits', 'upgrade'];
const WAITER_BYTES = 43;
const WAITER_BLOCK = { bytes: 45 + HOLD_TERMS_BYTES, bytesMin: 45 };
const OWNER_BYTES = 25;
const OWNER_BLOCK = { bytes: 32, bytesMin: 32 };
const SHARE_BLOCK = { bytes: 40 + HOLD_TERMS_BYTES, bytesMin: 40 };
/** The version, before the first block. */
const PREFIX_BYTES = 1;
const BLOCK_AT = PREFIX_BYTES + BLOCK_LENGTH_BYTES;

export function encodeWaiter(waiter: WaiterRecord): Buffer {
  const { owner, data } = waiter;
  const tokenBytes = Buffer.byteLength(owner.token);
  const plain = waiter.mode === 'exclusive' && waiter.permits === 0 && !waiter.keepData && waiter.delayMs === 0; // R4
  const tailAt = plain ? WAITER_BYTES - 2 : BLOCK_AT + WAITER_BLOCK.bytes;
  const out = Buffer.allocUnsafe(tailAt + 2 + tokenBytes + data.length);
  const view = viewAround(out);
  const at = out.byteOffset + (plain ? PREFIX_BYTES : BLOCK_AT);
  out[0] = plain ? RECORD_VERSION : BLOCKS_VERSION;
  view.setBigUint64(at, owner.session.lease);
  view.setFloat64(at + 8, owner.session.incarnation);
  view.setFloat64(at + 16, waiter.attempt);
  view.setFloat64(at + 24, waiter.waitUntilMs);
  view.setFloat64(at + 32, waiter.sinceMs);
  if (!plain) {
    view.setUint16(out.byteOffset + PREFIX_BYTES, WAITER_BLOCK.bytes);
    view.setUint8(at + 40, MODES.indexOf(waiter.mode));
    view.setUint32(at + 41, waiter.permits);
    writeTerms(out, BLOCK_AT + 45, { keepData: waiter.keepData, delayMs: waiter.delayMs, delayed: false });
  }
  writeTail(out, tailAt, { token: owner.token, tokenBytes, data });
  return out;
}

export function decodeWaiter(bytes: Bytes): WaiterRecord {
  const plain = bytes[0] !== BLOCKS_VERSION;
  if (plain) checkRecord(bytes, WAITER_BYTES, RECORD_VERSION);
  const tailAt = plain ? WAITER_BYTES - 2 : checkBlock(bytes, PREFIX_BYTES, WAITER_BLOCK);
  const { token, data } = readTail(bytes, tailAt);
  const view = viewAround(bytes);
  const at = bytes.byteOffset + (plain ? PREFIX_BYTES : BLOCK_AT);
  const { keepData, delayMs } = readTerms(bytes, BLOCK_AT + 45, plain ? 0 : tailAt);
  const session = { lease: view.getBigUint64(at), incarnation: view.getFloat64(at + 8) };
  return {
    owner: { session, token },
    mode: plain ? 'exclusive' : modeOf(view.getUint8(at + 40)),
    permits: plain ? 0 : view.getUint32(at + 41),
    attempt: view.getFloat64(at + 16),
    waitUntilMs: view.getFloat64(at + 24),
    sinceMs: view.getFloat64(at + 32),
    data,
    keepData,
    delayMs,
  };
}

function modeOf(number: number): Waiter['mode'] {
  const mode = MODES[number];
  if (mode === undefined) throw new InvariantError(`R1: mode ${number} of a waiter is known`);
  return mode;
}

export function encodeOwner(record: OwnerRecord): Buffer {
  const plain = record.shareVersion === 0; // R4
  const out = Buffer.allocUnsafe(plain ? OWNER_BYTES : BLOCK_AT + OWNER_BLOCK.bytes);
  const view = viewAround(out);
  const at = out.byteOffset + (plain ? PREFIX_BYTES : BLOCK_AT);
  out[0] = plain ? RECORD_VERSION : BLOCKS_VERSION;
  view.setFloat64(at, record.sequence);
  view.setFloat64(at + 8, record.mark?.attempt ?? 0);
  view.setFloat64(at + 16, record.mark?.deadlineMs ?? -1);
  if (plain) return out;
  view.setUint16(out.byteOffset + PREFIX_BYTES, OWNER_BLOCK.bytes);
  view.setFloat64(at + 24, record.shareVersion);
  return out;
}

export function decodeOwner(bytes: Bytes): OwnerRecord {
  const plain = bytes[0] !== BLOCKS_VERSION;
  if (plain) checkRecord(bytes, OWNER_BYTES, RECORD_VERSION);
  else checkBlock(bytes, PREFIX_BYTES, OWNER_BLOCK);
  const view = viewAround(bytes);
  const at = bytes.byteOffset + (plain ? PREFIX_BYTES : BLOCK_AT);
  const deadlineMs = view.getFloat64(at + 16);
  const mark = deadlineMs < 0 ? undefined : { attempt: view.getFloat64(at + 8), deadlineMs };
  return { sequence: view.getFloat64(at), mark, shareVersion: plain ? 0 : view.getFloat64(at + 24) };
}

/** The row of a share: its key has the owner and the version. */
export function encodeShare(hold: Hold): Buffer {
  const { holder } = hold;
  const out = Buffer.allocUnsafe(BLOCK_AT + SHARE_BLOCK.bytes + holder.data.length);
  const view = viewAround(out);
  const at = out.byteOffset + BLOCK_AT;
  out[0] = RECORD_VERSION;
  view.setUint16(out.byteOffset + PREFIX_BYTES, SHARE_BLOCK.bytes);
  view.setFloat64(at, hold.firstAttempt);
  view.setFloat64(at + 8, hold.attempt);
  view.setFloat64(at + 16, hold.upgradeAttempt);
  view.setFloat64(at + 24, holder.lockTimeMs);
  view.setUint32(at + 32, holder.depth);
  view.setUint32(at + 36, hold.permits);
  writeTerms(out, BLOCK_AT + 40, hold);
  out.set(holder.data, BLOCK_AT + SHARE_BLOCK.bytes);
  return out;
}

export function shareAt(keys: LockKeys, { key, value }: Row): Hold {
  checkRecord(value, PREFIX_BYTES, RECORD_VERSION);
  const dataAt = checkBlock(value, PREFIX_BYTES, SHARE_BLOCK);
  const view = viewAround(value);
  const at = value.byteOffset + BLOCK_AT;
  const permits = view.getUint32(at + 36);
  const { owner, version } = keys.shareOf(key);
  const data = dataAt === value.length ? EMPTY_BYTES : asBuffer(value).subarray(dataAt);
  return {
    holder: { owner, version, depth: view.getUint32(at + 32), lockTimeMs: view.getFloat64(at + 24), data },
    mode: permits === 0 ? 'shared' : 'permits',
    permits,
    firstAttempt: view.getFloat64(at),
    attempt: view.getFloat64(at + 8),
    upgradeAttempt: view.getFloat64(at + 16),
    ...readTerms(value, BLOCK_AT + 40, dataAt),
  };
}
