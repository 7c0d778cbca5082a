/**
 * The records of a lock as bytes. They are written by hand rather than by a general codec, as every acquire and
 * release writes one: fixed fields at fixed places, then the token with its length, then the data.
 *
 * R1. Every record begins with its version, which is `RECORD_VERSION` but for R3; one of another version is a broken
 *     invariant, as an upgrade that changes a record must read the older one too.
 * R2. A record is as long as its fields, and its token within bounds: checked first, as numbers are read past the bounds of its slice of memory.
 * R3. A head whose holder has re-entered with a number has one field more, the first number, and version
 *     `REENTERED_VERSION`. Without it the grant answers one acquire, and the first number is the latest.
 */
import { asBuffer, assert, type Bytes, EMPTY_BYTES, InvariantError } from '@remora/base';
import { viewAround, writeText } from './binary.ts';
import { TOKEN_BYTES_MAX } from './limits.ts';
import type { Holder, Owner } from './types.ts';

export const RECORD_VERSION = 1;
const REENTERED_VERSION = 2;

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

/** A grant, and the numbers of the acquires that it answers: the one that was granted, and the latest. */
export interface Hold {
  readonly holder: Holder;
  readonly firstAttempt: number;
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
/** From the holder's lease to the length of its token. */
const HOLD_BYTES = 46;
const FIRST_ATTEMPT_BYTES = 8;
const WAITER_BYTES = 43;
const OWNER_BYTES = 25;
const HELD = 1;

export function encodeHead(head: Head): Buffer {
  const hold = head.hold;
  const tokenBytes = hold === undefined ? 0 : Buffer.byteLength(hold.holder.owner.token);
  const reentered = hold !== undefined && hold.firstAttempt !== hold.attempt;
  const extra = reentered ? FIRST_ATTEMPT_BYTES : 0; // R3
  const rest = hold === undefined ? 0 : HOLD_BYTES + extra + tokenBytes + hold.holder.data.length;
  const out = Buffer.allocUnsafe(HEAD_BYTES + rest);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = reentered ? REENTERED_VERSION : RECORD_VERSION;
  out[1] = hold === undefined ? 0 : HELD;
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

export function decodeHead(bytes: Bytes): Head {
  check(bytes, HEAD_BYTES, bytes[0] === REENTERED_VERSION ? REENTERED_VERSION : RECORD_VERSION);
  const view = viewAround(bytes);
  const at = bytes.byteOffset;
  return {
    hold: bytes[1] === HELD ? decodeHold(bytes) : undefined,
    waiters: view.getUint32(at + 2),
    marks: view.getUint32(at + 6),
    firstSequence: view.getFloat64(at + 10),
    nextSequence: view.getFloat64(at + 18),
    marksDueMs: view.getFloat64(at + 26),
  };
}

function decodeHold(bytes: Bytes): Hold {
  const reentered = bytes[0] === REENTERED_VERSION;
  const extra = reentered ? FIRST_ATTEMPT_BYTES : 0;
  check(bytes, HEAD_BYTES + HOLD_BYTES + extra, reentered ? REENTERED_VERSION : RECORD_VERSION);
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
  return { holder, attempt, firstAttempt: reentered ? view.getFloat64(at + 78) : attempt };
}

export function encodeWaiter(waiter: WaiterRecord): Buffer {
  const { owner, data } = waiter;
  const tokenBytes = Buffer.byteLength(owner.token);
  const out = Buffer.allocUnsafe(WAITER_BYTES + tokenBytes + data.length);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = RECORD_VERSION;
  view.setBigUint64(at + 1, owner.session.lease);
  view.setFloat64(at + 9, owner.session.incarnation);
  view.setFloat64(at + 17, waiter.attempt);
  view.setFloat64(at + 25, waiter.waitUntilMs);
  view.setFloat64(at + 33, waiter.sinceMs);
  writeTail(out, 41, { token: owner.token, tokenBytes, data });
  return out;
}

export function decodeWaiter(bytes: Bytes): WaiterRecord {
  check(bytes, WAITER_BYTES);
  const view = viewAround(bytes);
  const at = bytes.byteOffset;
  const session = { lease: view.getBigUint64(at + 1), incarnation: view.getFloat64(at + 9) };
  const { token, data } = readTail(bytes, 41);
  return {
    owner: { session, token },
    attempt: view.getFloat64(at + 17),
    waitUntilMs: view.getFloat64(at + 25),
    sinceMs: view.getFloat64(at + 33),
    data,
  };
}

export function encodeOwner(record: OwnerRecord): Buffer {
  const out = Buffer.allocUnsafe(OWNER_BYTES);
  const view = viewAround(out);
  const at = out.byteOffset;
  out[0] = RECORD_VERSION;
  view.setFloat64(at + 1, record.sequence);
  view.setFloat64(at + 9, record.mark?.attempt ?? 0);
  view.setFloat64(at + 17, record.mark?.deadlineMs ?? -1);
  return out;
}

export function decodeOwner(bytes: Bytes): OwnerRecord {
  check(bytes, OWNER_BYTES);
  const view = viewAround(bytes);
  const at = bytes.byteOffset;
  const deadlineMs = view.getFloat64(at + 17);
  const mark = deadlineMs < 0 ? undefined : { attempt: view.getFloat64(at + 9), deadlineMs };
  return { sequence: view.getFloat64(at + 1), mark };
}

/** R1, R2. */
function check(bytes: Bytes, bytesMin: number, version = RECORD_VERSION): void {
  if (bytes[0] === version && bytes.length >= bytesMin) return;
  assert(bytes[0] === version, `R1: lock record version ${String(bytes[0])} is not ${version}`);
  incomplete();
}

function incomplete(): never {
  throw new InvariantError('R2: a lock record is complete');
}

function writeTail(out: Buffer, at: number, tail: { token: string; tokenBytes: number; data: Bytes }): void {
  const tokenAt = at + 2;
  out[at] = tail.tokenBytes >> 8;
  out[at + 1] = tail.tokenBytes & 0xff;
  const dataAt = writeText(out, tail.token, tokenAt, tail.tokenBytes);
  if (tail.data.length > 0) out.set(tail.data, dataAt);
}

function readTail(bytes: Bytes, at: number): { readonly token: string; readonly data: Bytes } {
  const b = asBuffer(bytes);
  const dataAt = at + 2 + (((b[at] ?? 0) << 8) | (b[at + 1] ?? 0));
  if (dataAt > b.length || dataAt > at + 2 + TOKEN_BYTES_MAX) incomplete();
  return { token: b.toString('utf8', at + 2, dataAt), data: dataAt === b.length ? EMPTY_BYTES : b.subarray(dataAt) };
}
