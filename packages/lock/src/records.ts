/**
 * The records of a lock as bytes. They are written by hand rather than by a general codec, as every acquire and
 * release writes one: fixed fields at fixed places, then the token with its length, then the data.
 *
 * R1. Every record begins with `RECORD_VERSION`; one of another version is a broken invariant, as an upgrade that
 *     changes a record must read the older one too.
 */
import { asBuffer, assert, type Bytes } from '@remora/base';
import type { Holder, Owner } from './types.ts';

export const RECORD_VERSION = 1;

/** What is known of a lock as a whole. Absent when there is nothing to know. */
export interface Head {
  hold: Hold | undefined;
  /** Rows in the queue. Only a lock that is held has any. */
  waiters: number;
  /** Every waiter's sequence is in `[firstSequence, nextSequence)`; both are 1 when nobody waits. */
  firstSequence: number;
  nextSequence: number;
  marks: number;
  /** No mark ends before; 0 when there are none. */
  marksDueMs: number;
}

/** A grant, and the number of the latest acquire that it answers. */
export interface Hold {
  readonly holder: Holder;
  readonly attempt: number;
}

export interface WaiterRecord {
  readonly owner: Owner;
  readonly attempt: number;
  readonly waitUntilMs: number;
  readonly sinceMs: number;
  readonly data: Bytes;
}

export interface Mark {
  /** The latest acquire that it refuses; 0 when acquires are not numbered. */
  readonly attempt: number;
  readonly deadlineMs: number;
}

/** What an owner has besides the hold. A row without either is not kept. */
export interface OwnerRecord {
  /** Its place in the queue; 0: none. */
  readonly sequence: number;
  readonly mark: Mark | undefined;
}

const HEAD_BYTES = 34;
const HOLD_BYTES = 46;
const WAITER_BYTES = 43;
const OWNER_BYTES = 25;
const HELD = 1;

export function encodeHead(head: Head): Buffer {
  const hold = head.hold;
  const tokenBytes = hold === undefined ? 0 : Buffer.byteLength(hold.holder.owner.token);
  const rest = hold === undefined ? 0 : HOLD_BYTES + tokenBytes + hold.holder.data.length;
  const out = Buffer.allocUnsafe(HEAD_BYTES + rest);
  out[0] = RECORD_VERSION;
  out[1] = hold === undefined ? 0 : HELD;
  out.writeUInt32BE(head.waiters, 2);
  out.writeUInt32BE(head.marks, 6);
  out.writeDoubleBE(head.firstSequence, 10);
  out.writeDoubleBE(head.nextSequence, 18);
  out.writeDoubleBE(head.marksDueMs, 26);
  if (hold === undefined) return out;
  const { owner, version, depth, lockTimeMs, data } = hold.holder;
  out.writeBigUInt64BE(owner.session.lease, 34);
  out.writeDoubleBE(owner.session.incarnation, 42);
  out.writeDoubleBE(hold.attempt, 50);
  out.writeDoubleBE(version, 58);
  out.writeDoubleBE(lockTimeMs, 66);
  out.writeUInt32BE(depth, 74);
  writeTail(out, 78, { token: owner.token, tokenBytes, data });
  return out;
}

export function decodeHead(bytes: Bytes): Head {
  const b = open(bytes);
  return {
    hold: b[1] === HELD ? decodeHold(b) : undefined,
    waiters: b.readUInt32BE(2),
    marks: b.readUInt32BE(6),
    firstSequence: b.readDoubleBE(10),
    nextSequence: b.readDoubleBE(18),
    marksDueMs: b.readDoubleBE(26),
  };
}

function decodeHold(b: Buffer): Hold {
  const session = { lease: b.readBigUInt64BE(34), incarnation: b.readDoubleBE(42) };
  const { token, data } = readTail(b, 78);
  const holder = {
    owner: { session, token },
    version: b.readDoubleBE(58),
    depth: b.readUInt32BE(74),
    lockTimeMs: b.readDoubleBE(66),
    data,
  };
  return { holder, attempt: b.readDoubleBE(50) };
}

export function encodeWaiter(waiter: WaiterRecord): Buffer {
  const { owner, data } = waiter;
  const tokenBytes = Buffer.byteLength(owner.token);
  const out = Buffer.allocUnsafe(WAITER_BYTES + tokenBytes + data.length);
  out[0] = RECORD_VERSION;
  out.writeBigUInt64BE(owner.session.lease, 1);
  out.writeDoubleBE(owner.session.incarnation, 9);
  out.writeDoubleBE(waiter.attempt, 17);
  out.writeDoubleBE(waiter.waitUntilMs, 25);
  out.writeDoubleBE(waiter.sinceMs, 33);
  writeTail(out, 41, { token: owner.token, tokenBytes, data });
  return out;
}

export function decodeWaiter(bytes: Bytes): WaiterRecord {
  const b = open(bytes);
  const session = { lease: b.readBigUInt64BE(1), incarnation: b.readDoubleBE(9) };
  const { token, data } = readTail(b, 41);
  return {
    owner: { session, token },
    attempt: b.readDoubleBE(17),
    waitUntilMs: b.readDoubleBE(25),
    sinceMs: b.readDoubleBE(33),
    data,
  };
}

export function encodeOwner(record: OwnerRecord): Buffer {
  const out = Buffer.allocUnsafe(OWNER_BYTES);
  out[0] = RECORD_VERSION;
  out.writeDoubleBE(record.sequence, 1);
  out.writeDoubleBE(record.mark?.attempt ?? 0, 9);
  out.writeDoubleBE(record.mark?.deadlineMs ?? -1, 17);
  return out;
}

export function decodeOwner(bytes: Bytes): OwnerRecord {
  const b = open(bytes);
  const deadlineMs = b.readDoubleBE(17);
  const mark = deadlineMs < 0 ? undefined : { attempt: b.readDoubleBE(9), deadlineMs };
  return { sequence: b.readDoubleBE(1), mark };
}

function open(bytes: Bytes): Buffer {
  assert(bytes[0] === RECORD_VERSION, `R1: lock record version ${String(bytes[0])} is not ${RECORD_VERSION}`);
  return asBuffer(bytes);
}

function writeTail(out: Buffer, at: number, tail: { token: string; tokenBytes: number; data: Bytes }): void {
  out.writeUInt16BE(tail.tokenBytes, at);
  out.write(tail.token, at + 2);
  out.set(tail.data, at + 2 + tail.tokenBytes);
}

function readTail(b: Buffer, at: number): { readonly token: string; readonly data: Bytes } {
  const dataStart = at + 2 + b.readUInt16BE(at);
  assert(dataStart <= b.length, 'R1: a lock record is complete');
  return { token: b.toString('utf8', at + 2, dataStart), data: b.subarray(dataStart) };
}
