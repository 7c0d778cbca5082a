import { assert, type Bytes, EMPTY_BYTES, prefixEnd, type Span } from '@remora/base';
import { KV_SPACE, kvRoutingKey, LEASE_SPACE, LOCK_SPACE } from '@remora/protocol';

/**
 * Where everything lies in a data server's engine. All ranges share one ordered space, so a split moves no data.
 *
 *   00 range(8) kind(1) …        range-local: applied position, descriptor, remembered outcomes,  (resident)
 *                                prepared transactions
 *   00 range(8) 'l' lease(8) …   a lease of another range, as a lease's own rows; what of it is here (resident)
 *   00 0(8) kind(1) range(8)     the node's own: `i` a snapshot that is being installed, `h` the   (resident)
 *                                replica held, `r` one that is being cleared away
 *   01 lease(8)                  a lease                                                          (resident)
 *   01 lease(8) kind(1) …        what belongs to it: `k` a plain key, `l` a lock                  (resident)
 *   02 …                         the lock layer                                                   (resident)
 *   03 key                       the current record of a plain key
 *   04 escaped key, revision(8)  older records of a plain key, and its deletions, until compaction
 */
const LOCAL_SPACE = 0x00;
export const HISTORY_SPACE = 0x04;
/** The length of a lease's own record key; the keys of its attachments are longer. */
export const LEASE_KEY_BYTES = 9;
/** The length of the key of a reference to a lease of another range. */
const REFERENCE_KEY_BYTES = 18;
const EVERY_TARGET: Span = { start: EMPTY_BYTES, end: EMPTY_BYTES };

/** The last of a range's own rows: a snapshot ends with it (N2 of snapshot-stream.ts). */
const LOCAL_STATE = 0x73; // 's'
const LOCAL_MASTER = 0x6d; // 'm'
const LOCAL_OUTCOMES = 0x6f; // 'o'
const LOCAL_TXN_PART = 0x70; // 'p'
const LOCAL_TXN_RECORD = 0x64; // 'd'
const LOCAL_INSTALL = 0x69; // 'i'
const LOCAL_LEASE = 0x6c; // 'l'
const LOCAL_HELD = 0x68; // 'h'
const LOCAL_REMOVAL = 0x72; // 'r'
/** Replaces a range's id in the rows of the node itself. */
const NO_RANGE = 0;
const ATTACHED_KEY = 0x6b; // 'k'
const ATTACHED_LOCK = 0x6c; // 'l'

/** The engine keeps these rows in memory, so that apply reads them without disk access. */
export const RESIDENT_SPANS: readonly Span[] = [{ start: Buffer.from([LOCAL_SPACE]), end: Buffer.from([KV_SPACE]) }];

const leaseIdBytes = new Uint8Array(8);
const leaseIdView = new DataView(leaseIdBytes.buffer);

function writeUint64(out: Buffer, value: number, offset: number): void {
  out.writeUInt32BE(Math.floor(value / 0x1_0000_0000), offset);
  out.writeUInt32BE(value >>> 0, offset + 4);
}

/** Reads an id, index or revision: no stored one exceeds what a number holds exactly, unless its row is damaged. */
export function readUint64(bytes: Buffer, offset: number): number {
  assert(bytes.length >= offset + 8, 'a stored number is complete');
  const high = bytes.readUInt32BE(offset);
  assert(high < 0x20_0000, 'stored numbers are safe integers');
  return high * 0x1_0000_0000 + bytes.readUInt32BE(offset + 4);
}

// ---------------------------------------------------------------------------------------------- range-local

function localKey(rangeId: number, kind: number, suffixBytes: number): Buffer {
  const key = Buffer.allocUnsafe(10 + suffixBytes);
  key[0] = LOCAL_SPACE;
  writeUint64(key, rangeId, 1);
  key[9] = kind;
  return key;
}

export function stateKey(rangeId: number): Buffer {
  return localKey(rangeId, LOCAL_STATE, 0);
}

/** The master's state, on nodes that run one; its group's id is below every range's. */
export function masterStateKey(groupId: number): Buffer {
  return localKey(groupId, LOCAL_MASTER, 0);
}

/** One page of remembered outcomes; pages are numbered in the order in which they were written. */
export function outcomePageKey(rangeId: number, page: number): Buffer {
  const key = localKey(rangeId, LOCAL_OUTCOMES, 8);
  writeUint64(key, page, 10);
  return key;
}

export function outcomePagesSpan(rangeId: number): Span {
  const start = localKey(rangeId, LOCAL_OUTCOMES, 0);
  return { start, end: prefixEnd(start) };
}

/**
 * A range's rows about transactions over several ranges: parts that it prepared, and records of those that it decides.
 */
export type TxnRowKind = 'part' | 'record';

export function txnRowKey(rangeId: number, kind: TxnRowKind, name: string): Buffer {
  return Buffer.concat([txnRowsSpan(rangeId, kind).start, Buffer.from(name, 'utf8')]);
}

export function txnRowsSpan(rangeId: number, kind: TxnRowKind): Span {
  const start = localKey(rangeId, kind === 'part' ? LOCAL_TXN_PART : LOCAL_TXN_RECORD, 0);
  return { start, end: prefixEnd(start) };
}

export function nameOfTxnRow(key: Bytes): string {
  return Buffer.from(key.subarray(10)).toString('utf8');
}

/** The marker of a range whose rows a snapshot is replacing. */
export function installKey(rangeId: number): Buffer {
  return ownKey(LOCAL_INSTALL, rangeId);
}

export function allInstallsSpan(): Span {
  return ownSpan(LOCAL_INSTALL);
}

/** Which replica of the range this node holds, or held last. */
export function heldKey(rangeId: number): Buffer {
  return ownKey(LOCAL_HELD, rangeId);
}

export function allHeldSpan(): Span {
  return ownSpan(LOCAL_HELD);
}

/** Replaces the row of a range: the highest id among the deleted rows. */
export function heldFloorKey(): Buffer {
  return heldKey(NO_RANGE);
}

/** The marker of a range whose rows are being deleted. */
export function removalKey(rangeId: number): Buffer {
  return ownKey(LOCAL_REMOVAL, rangeId);
}

/** Takes the key of a node's own row about a range. */
export function rangeIdOfOwnKey(key: Bytes): number {
  return readUint64(Buffer.from(key), 10);
}

export function allRemovalsSpan(): Span {
  return ownSpan(LOCAL_REMOVAL);
}

/** A row of the node itself that is about a range. */
function ownKey(kind: number, rangeId: number): Buffer {
  const key = localKey(NO_RANGE, kind, 8);
  writeUint64(key, rangeId, 10);
  return key;
}

function ownSpan(kind: number): Span {
  const start = localKey(NO_RANGE, kind, 0);
  return { start, end: prefixEnd(start) };
}

export function localSpan(rangeId: number): Span {
  const start = localKey(rangeId, 0, 0).subarray(0, 9);
  return { start, end: prefixEnd(start) };
}

/** The range that a range-local key belongs to. */
export function rangeIdOfLocalKey(key: Bytes): number {
  return readUint64(Buffer.from(key), 1);
}

/** All ranges' state rows, for recovery. */
export function allLocalSpan(): Span {
  return { start: Buffer.from([LOCAL_SPACE]), end: Buffer.from([LOCAL_SPACE + 1]) };
}

export function isStateKey(key: Bytes): boolean {
  return key.length === 10 && key[9] === LOCAL_STATE;
}

// ---------------------------------------------------------------------------------------------- leases

export function leaseKey(id: bigint): Buffer {
  const key = Buffer.allocUnsafe(LEASE_KEY_BYTES);
  key[0] = LEASE_SPACE;
  writeLeaseId(key, id, 1);
  return key;
}

/**
 * Writes through a view: Buffer's own method takes the number apart, and the hot path of a lock writes one with every
 * command.
 */
function writeLeaseId(out: Buffer, id: bigint, at: number): void {
  leaseIdView.setBigInt64(0, id);
  out.set(leaseIdBytes, at);
}

export function leaseIdOfKey(key: Bytes): bigint {
  assert(key.length >= LEASE_KEY_BYTES, 'a key of the space of leases names its lease');
  return Buffer.from(key).readBigInt64BE(1);
}

/** True for the lease's own record, false for an attachment row. */
export function isLeaseRecordKey(key: Bytes): boolean {
  return key.length === LEASE_KEY_BYTES;
}

/** The row of a lease whose home is another range: one of the range's own rows, followed by the lease's attachments. */
export function referenceKey(rangeId: number, id: bigint): Buffer {
  const key = localKey(rangeId, LOCAL_LEASE, 8);
  writeLeaseId(key, id, 10);
  return key;
}

export function referencesSpan(rangeId: number): Span {
  const start = localKey(rangeId, LOCAL_LEASE, 0);
  return { start, end: prefixEnd(start) };
}

export function leaseIdOfReference(key: Bytes): bigint {
  assert(key.length >= REFERENCE_KEY_BYTES, 'a reference names its lease');
  return Buffer.from(key).readBigInt64BE(10);
}

export function isReferenceKey(key: Bytes): boolean {
  return key.length === REFERENCE_KEY_BYTES;
}

/** `lease`: the key of the lease's row, in its home or of a reference. */
export function attachedKeyRow(lease: Bytes, key: Bytes): Buffer {
  return attachedRow(lease, ATTACHED_KEY, key);
}

export function attachedLockRow(lease: Bytes, lockPrefix: Bytes): Buffer {
  return attachedRow(lease, ATTACHED_LOCK, lockPrefix);
}

function attachedRow(lease: Bytes, kind: number, target: Bytes): Buffer {
  const row = Buffer.allocUnsafe(lease.length + 1 + target.length);
  row.set(lease, 0);
  row[lease.length] = kind;
  row.set(target, lease.length + 1);
  return row;
}

/** Attachment rows of a lease for plain keys in `[start, end)`; by default all of them. */
export function attachedKeysSpan(lease: Bytes, { start, end }: Span = EVERY_TARGET): Span {
  return { start: attachedKeyRow(lease, start), end: targetsEnd(lease, ATTACHED_KEY, end) };
}

/** The same for locks, by their prefixes. */
export function attachedLocksSpan(lease: Bytes, { start, end }: Span = EVERY_TARGET): Span {
  return { start: attachedLockRow(lease, start), end: targetsEnd(lease, ATTACHED_LOCK, end) };
}

function targetsEnd(lease: Bytes, kind: number, end: Bytes): Bytes {
  return end.length > 0 ? attachedRow(lease, kind, end) : prefixEnd(attachedRow(lease, kind, EMPTY_BYTES));
}

/** The key or lock prefix that an attachment row names. */
export function attachedTarget(row: Bytes): Buffer {
  return Buffer.from(row.subarray(kindAt(row) + 1));
}

/** The routing key of what an attachment row names. */
export function attachedRoutingKey(row: Bytes): Buffer {
  const target = attachedTarget(row);
  return row[kindAt(row)] === ATTACHED_KEY ? kvRoutingKey(target) : target;
}

function kindAt(row: Bytes): number {
  return row[0] === LOCAL_SPACE ? REFERENCE_KEY_BYTES : LEASE_KEY_BYTES;
}

export function leaseSpaceSpan(): Span {
  return { start: Buffer.from([LEASE_SPACE]), end: Buffer.from([LOCK_SPACE]) };
}

// ---------------------------------------------------------------------------------------------- plain keys

export function currentKey(key: Bytes): Buffer {
  const out = Buffer.allocUnsafe(1 + key.length);
  out[0] = KV_SPACE;
  out.set(key, 1);
  return out;
}

export function userKeyOfCurrent(row: Bytes): Bytes {
  return row.subarray(1);
}

/** Records of the plain keys in `[key, end)`; `end` absent: just `key`, empty: to the last one. */
export function currentSpan(range: { readonly key: Bytes; readonly end?: Bytes }): Span {
  const start = currentKey(range.key);
  if (range.end === undefined) return { start, end: Buffer.concat([start, Buffer.from([0])]) };
  return { start, end: range.end.length === 0 ? Buffer.from([KV_SPACE + 1]) : currentKey(range.end) };
}

/** 00 becomes 00 FF and the key ends with 00 01, so that keys keep their order and none is a prefix of another. */
function historyPrefix(key: Bytes, suffixBytes: number): Buffer {
  let zeros = 0;
  for (const byte of key) if (byte === 0) zeros++;
  const out = Buffer.allocUnsafe(1 + key.length + zeros + 2 + suffixBytes);
  out[0] = HISTORY_SPACE;
  let at = 1;
  for (const byte of key) {
    out[at++] = byte;
    if (byte === 0) out[at++] = 0xff;
  }
  out[at++] = 0;
  out[at] = 1;
  return out;
}

export function historyKey(key: Bytes, revision: number): Buffer {
  const out = historyPrefix(key, 8);
  writeUint64(out, revision, out.length - 8);
  return out;
}

export function historySpan(range: { readonly key: Bytes; readonly end?: Bytes }): Span {
  const start = historyPrefix(range.key, 0);
  if (range.end === undefined) return { start, end: prefixEnd(start) };
  // Every escaped key at or above `end` begins at or above its own prefix without revision.
  return { start, end: range.end.length === 0 ? Buffer.from([HISTORY_SPACE + 1]) : historyPrefix(range.end, 0) };
}

export function parseHistoryKey(row: Bytes): { readonly key: Buffer; readonly revision: number } {
  const bytes = Buffer.from(row.buffer, row.byteOffset, row.byteLength);
  assert(bytes.length >= 11, 'a key of the history ends with its revision');
  const key = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  let at = 1;
  for (; at < bytes.length - 10; at++) {
    const byte = bytes[at] ?? 0;
    key[length++] = byte;
    if (byte === 0) at++; // skip the FF
  }
  return { key: Buffer.from(key.subarray(0, length)), revision: readUint64(bytes, bytes.length - 8) };
}
