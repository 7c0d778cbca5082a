/**
 * The codec of the head of a lock. It is written by hand and not by a general codec, as every acquire and release
 * writes a head. The codecs of the other rows are in `row-records.ts`, under the same rules.
 *
 * R1. Every record begins with its version. Another version is a broken invariant: a program that changes a record must
 *     also read the older one.
 * R2. The length of a record and of its token are checked first: reading numbers does not check the bounds of its slice
 *     of memory.
 * R3. A head whose holder has re-entered with a number has one more field, the first number, and version
 *     `REENTERED_VERSION`. Without it the grant answers one acquire, whose number is both the first and the latest.
 * R4. A record has version 3 only if versions 1 and 2 cannot express it: for nearly all commands records stay short.
 * R5. From version 3 of the head and version 2 of other rows on, fields of fixed length form a block that begins with
 *     its length. Fields are only added at the end of a block; a block without them means their default, 0.
 */
import { assert, type Bytes } from '@remora/base';
import { viewAround } from '../codec/binary.ts';
import type { Holder, HoldMode, Owner } from '../types.ts';
import {
  BLOCK_LENGTH_BYTES,
  checkBlock,
  checkRecord,
  HOLD_TERMS_BYTES,
  type HoldTerms,
  readTail,
  readTerms,
  writeTail,
  writeTerms,
} from './record-parts.ts';

export const RECORD_VERSION = 1;
const REENTERED_VERSION = 2;
const BLOCKS_VERSION = 3;

/** The head of a lock. Absent when no record of the lock exists. */
export interface Head {
  /** The exclusive hold. Nobody shares the lock then. */
  hold: Hold | undefined;
  /** The number of shares. */
  sharers: number;
  /** The number of holds that are delayed (T1 of `procedures.ts`). */
  delayed: number;
  /**
   * The numbers of owners that wait at the lock as a barrier (`barrier-waiters.ts`), and of those that have passed and
   * not confirmed it.
   */
  passing: number;
  passed: number;
  /** The lowest number of parties that any barrier waiter waits for; 0: none waits for parties. */
  parties: number;
  /** The held permits and the capacity of a semaphore; 0 for a lock. */
  permits: number;
  capacity: number;
  /** The capacity was set, and stays while nobody uses the semaphore. */
  capacityIsSet: boolean;
  /** A sharer waits for its upgrade, in a row of its own. */
  upgrading: boolean;
  /** A holder left data, in a row of its own. */
  keepsData: boolean;
  /** A forced release is on record, in a row of its own. */
  forcedOnRecord: boolean;
  /** There is a revocation, in a row of its own. */
  revoking: boolean;
  /** The number of waiters in the queue. Only a held lock has any. */
  waiters: number;
  /** The sequences of all waiters are in `[firstSequence, nextSequence)`; both are 1 when nobody waits. */
  firstSequence: number;
  nextSequence: number;
  marks: number;
  /** A lower bound of the ends of all marks; 0 when there are none. */
  marksDueMs: number;
  /** Owners have rows, and every attached session has one thing in the lock (W8 of `lock-records.ts`). */
  apart: boolean;
}

/** A grant, and the numbers of the acquires that it answers: the one that was granted, and the latest. */
export interface Hold extends HoldTerms {
  readonly holder: Omit<Holder, 'owner'> & { readonly owner: Owner };
  readonly mode: HoldMode;
  /** 0 unless the lock is a semaphore. */
  readonly permits: number;
  readonly firstAttempt: number;
  readonly attempt: number;
  /** The number of the latest upgrade that was granted or given up; 0: none. An upgrade is not a level. */
  readonly upgradeAttempt: number;
}

/** The head of a lock without records. Field by field: spreading objects would cost most of an acquire. */
export function emptyHead(): Head {
  return {
    hold: undefined,
    sharers: 0,
    delayed: 0,
    passing: 0,
    passed: 0,
    parties: 0,
    permits: 0,
    capacity: 0,
    capacityIsSet: false,
    upgrading: false,
    keepsData: false,
    forcedOnRecord: false,
    revoking: false,
    waiters: 0,
    marks: 0,
    firstSequence: 1,
    nextSequence: 1,
    marksDueMs: 0,
    apart: false,
  };
}

/** An upper bound of the position of this place in the queue; a waiting upgrade comes first. */
export function positionOf(head: Readonly<Head>, sequence: number): number {
  return Math.min(sequence - head.firstSequence + 1, head.waiters) + (head.upgrading ? 1 : 0);
}

const HEAD_BYTES = 34;
/** From the holder's lease to the length of its token. */
const HOLD_BYTES = 46;
const FIRST_ATTEMPT_BYTES = 8;
/** Version 3: version and flags, then the blocks. */
const PREFIX_BYTES = 2;
const HEAD_BLOCK = { bytes: 60, bytesMin: 44 };
const HOLD_BLOCK = { bytes: 60 + HOLD_TERMS_BYTES, bytesMin: 60 };

const HELD = 1;
const CAPACITY_IS_SET = 2;
const UPGRADING = 4;
const KEEPS_DATA = 8;
const FORCED_ON_RECORD = 16;
const REVOKING = 32;
const APART = 64;
const FLAGS_MAX = 127;

export function encodeHead(head: Readonly<Head>): Buffer {
  const hold = head.hold;
  if (!isPlain(head)) return encodeBlocks(head);
  const tokenBytes = hold === undefined ? 0 : Buffer.byteLength(hold.holder.owner.token);
  const reentered = hold !== undefined && hold.firstAttempt !== hold.attempt;
  const extra = reentered ? FIRST_ATTEMPT_BYTES : 0; // R3
  const rest = hold === undefined ? 0 : HOLD_BYTES + extra + tokenBytes + hold.holder.data.length;
  const out = Buffer.allocUnsafe(HEAD_BYTES + rest);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = reentered ? REENTERED_VERSION : RECORD_VERSION;
  out[1] = (hold === undefined ? 0 : HELD) | (head.apart ? APART : 0);
  view.setUint32(at + 2, head.waiters);
  view.setUint32(at + 6, head.marks);
  view.setFloat64(at + 10, head.firstSequence);
  view.setFloat64(at + 18, head.nextSequence);
  view.setFloat64(at + 26, head.marksDueMs);
  if (hold === undefined) return out;
  const { owner, version, depth, lockTimeMs, data } = hold.holder;
  view.setBigUint64(at + 34, owner.session.lease);
  view.setFloat64(at + 42, owner.session.incarnation);
  view.setFloat64(at + 50, hold.attempt);
  view.setFloat64(at + 58, version);
  view.setFloat64(at + 66, lockTimeMs);
  view.setUint32(at + 74, depth);
  if (reentered) view.setFloat64(at + 78, hold.firstAttempt);
  writeTail(out, 78 + extra, { token: owner.token, tokenBytes, data });
  return out;
}

/** R4. Whether versions 1 and 2 can express it. */
function isPlain(head: Readonly<Head>): boolean {
  const { hold, sharers, permits, capacity, capacityIsSet, upgrading } = head;
  const { keepsData, forcedOnRecord, revoking, passing, passed } = head;
  const isShared = sharers !== 0 || permits !== 0 || capacity !== 0 || capacityIsSet || upgrading;
  const isMore = keepsData || forcedOnRecord || revoking || passing > 0 || passed > 0;
  return !isShared && !isMore && (hold === undefined || isPlainHold(hold));
}

function isPlainHold({ upgradeAttempt, keepData, delayMs }: Hold): boolean {
  return upgradeAttempt === 0 && !keepData && delayMs === 0;
}

/** Whether a row of the lock layer may be the head of a lock with a lock-delay: no other row has this version. */
export function mayBeDelayed(bytes: Bytes): boolean {
  return bytes[0] === BLOCKS_VERSION;
}

export function decodeHead(bytes: Bytes): Head {
  if (bytes[0] === BLOCKS_VERSION) return decodeBlocks(bytes);
  checkRecord(bytes, HEAD_BYTES, bytes[0] === REENTERED_VERSION ? REENTERED_VERSION : RECORD_VERSION);
  const flags = flagsOf(bytes);
  const view = viewAround(bytes);
  const at = bytes.byteOffset;
  return {
    hold: (flags & HELD) === 0 ? undefined : decodeHold(bytes),
    sharers: 0,
    delayed: 0,
    passing: 0,
    passed: 0,
    parties: 0,
    permits: 0,
    capacity: 0,
    capacityIsSet: false,
    upgrading: false,
    keepsData: false,
    forcedOnRecord: false,
    revoking: false,
    waiters: view.getUint32(at + 2),
    marks: view.getUint32(at + 6),
    firstSequence: view.getFloat64(at + 10),
    nextSequence: view.getFloat64(at + 18),
    marksDueMs: view.getFloat64(at + 26),
    apart: (flags & APART) !== 0,
  };
}

function flagsOf(bytes: Bytes): number {
  const flags = bytes[1] ?? 0;
  assert(flags <= FLAGS_MAX, `R1: flags ${flags} of a lock's head are known`);
  return flags;
}

function decodeHold(bytes: Bytes): Hold {
  const reentered = bytes[0] === REENTERED_VERSION;
  const extra = reentered ? FIRST_ATTEMPT_BYTES : 0;
  checkRecord(bytes, HEAD_BYTES + HOLD_BYTES + extra, reentered ? REENTERED_VERSION : RECORD_VERSION);
  const view = viewAround(bytes);
  const at = bytes.byteOffset;
  const session = { lease: view.getBigUint64(at + 34), incarnation: view.getFloat64(at + 42) };
  const { token, data } = readTail(bytes, 78 + extra);
  const holder = {
    owner: { session, token },
    version: view.getFloat64(at + 58),
    depth: view.getUint32(at + 74),
    lockTimeMs: view.getFloat64(at + 66),
    data,
  };
  const attempt = view.getFloat64(at + 50);
  const firstAttempt = reentered ? view.getFloat64(at + 78) : attempt;
  const terms = { keepData: false, delayMs: 0, delayed: false };
  return { holder, mode: 'exclusive', permits: 0, attempt, firstAttempt, upgradeAttempt: 0, ...terms };
}

// ------------------------------------------------------------------------------------------------ version 3

function encodeBlocks(head: Readonly<Head>): Buffer {
  const hold = head.hold;
  const holdAt = PREFIX_BYTES + BLOCK_LENGTH_BYTES + HEAD_BLOCK.bytes;
  const tailAt = holdAt + BLOCK_LENGTH_BYTES + HOLD_BLOCK.bytes;
  const tokenBytes = hold === undefined ? 0 : Buffer.byteLength(hold.holder.owner.token);
  const length = hold === undefined ? holdAt : tailAt + 2 + tokenBytes + hold.holder.data.length;
  const out = Buffer.allocUnsafe(length);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = BLOCKS_VERSION;
  out[1] =
    (hold === undefined ? 0 : HELD) |
    (head.capacityIsSet ? CAPACITY_IS_SET : 0) |
    (head.upgrading ? UPGRADING : 0) |
    (head.keepsData ? KEEPS_DATA : 0) |
    (head.forcedOnRecord ? FORCED_ON_RECORD : 0) |
    (head.revoking ? REVOKING : 0) |
    (head.apart ? APART : 0);
  view.setUint16(at + 2, HEAD_BLOCK.bytes);
  view.setUint32(at + 4, head.waiters);
  view.setUint32(at + 8, head.marks);
  view.setFloat64(at + 12, head.firstSequence);
  view.setFloat64(at + 20, head.nextSequence);
  view.setFloat64(at + 28, head.marksDueMs);
  view.setUint32(at + 36, head.sharers);
  view.setUint32(at + 40, head.permits);
  view.setUint32(at + 44, head.capacity);
  view.setUint32(at + 48, head.delayed);
  view.setUint32(at + 52, head.passing);
  view.setUint32(at + 56, head.passed);
  view.setUint32(at + 60, head.parties);
  if (hold === undefined) return out;
  const { owner, version, depth, lockTimeMs, data } = hold.holder;
  view.setUint16(at + holdAt, HOLD_BLOCK.bytes);
  const from = at + holdAt + BLOCK_LENGTH_BYTES;
  view.setBigUint64(from, owner.session.lease);
  view.setFloat64(from + 8, owner.session.incarnation);
  view.setFloat64(from + 16, hold.attempt);
  view.setFloat64(from + 24, version);
  view.setFloat64(from + 32, lockTimeMs);
  view.setUint32(from + 40, depth);
  view.setFloat64(from + 44, hold.firstAttempt);
  view.setFloat64(from + 52, hold.upgradeAttempt);
  writeTerms(out, holdAt + BLOCK_LENGTH_BYTES + 60, hold);
  writeTail(out, tailAt, { token: owner.token, tokenBytes, data });
  return out;
}

function decodeBlocks(bytes: Bytes): Head {
  const holdAt = checkBlock(bytes, PREFIX_BYTES, HEAD_BLOCK);
  const flags = flagsOf(bytes);
  const view = viewAround(bytes);
  const at = bytes.byteOffset;
  return {
    hold: (flags & HELD) === 0 ? undefined : decodeHoldBlock(bytes, holdAt),
    sharers: view.getUint32(at + 36),
    delayed: holdAt < 52 ? 0 : view.getUint32(at + 48),
    passing: holdAt < 64 ? 0 : view.getUint32(at + 52),
    passed: holdAt < 64 ? 0 : view.getUint32(at + 56),
    parties: holdAt < 64 ? 0 : view.getUint32(at + 60),
    permits: view.getUint32(at + 40),
    capacity: view.getUint32(at + 44),
    capacityIsSet: (flags & CAPACITY_IS_SET) !== 0,
    upgrading: (flags & UPGRADING) !== 0,
    keepsData: (flags & KEEPS_DATA) !== 0,
    forcedOnRecord: (flags & FORCED_ON_RECORD) !== 0,
    revoking: (flags & REVOKING) !== 0,
    waiters: view.getUint32(at + 4),
    marks: view.getUint32(at + 8),
    firstSequence: view.getFloat64(at + 12),
    nextSequence: view.getFloat64(at + 20),
    marksDueMs: view.getFloat64(at + 28),
    apart: (flags & APART) !== 0,
  };
}

function decodeHoldBlock(bytes: Bytes, holdAt: number): Hold {
  const tailAt = checkBlock(bytes, holdAt, HOLD_BLOCK);
  const { token, data } = readTail(bytes, tailAt);
  const view = viewAround(bytes);
  const from = bytes.byteOffset + holdAt + BLOCK_LENGTH_BYTES;
  const session = { lease: view.getBigUint64(from), incarnation: view.getFloat64(from + 8) };
  const holder = {
    owner: { session, token },
    version: view.getFloat64(from + 24),
    depth: view.getUint32(from + 40),
    lockTimeMs: view.getFloat64(from + 32),
    data,
  };
  return {
    holder,
    mode: 'exclusive',
    permits: 0,
    attempt: view.getFloat64(from + 16),
    firstAttempt: view.getFloat64(from + 44),
    upgradeAttempt: view.getFloat64(from + 52),
    ...readTerms(bytes, holdAt + BLOCK_LENGTH_BYTES + 60, tailAt),
  };
}
