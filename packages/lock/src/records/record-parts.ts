/** What the records of a lock share; their rules are in `records.ts`. */
import { asBuffer, assert, type Bytes, EMPTY_BYTES, InvariantError } from '@remora/base';
import { viewAround, writeText } from '../codec/binary.ts';
import { TOKEN_BYTES_MAX } from '../limits.ts';

/** The length of the number at the beginning of a block, which is the length of the block. */
export const BLOCK_LENGTH_BYTES = 2;

/** R1, R2. */
export function checkRecord(bytes: Bytes, bytesMin: number, version: number): void {
  if (bytes[0] === version && bytes.length >= bytesMin) return;
  assert(bytes[0] === version, `R1: lock record version ${String(bytes[0])} is not ${version}`);
  incomplete();
}

/**
 * The length of a block: `bytes` as written now. Earlier blocks lack fields at the end, and have at least `bytesMin`.
 */
export interface BlockLength {
  readonly bytes: number;
  readonly bytesMin: number;
}

/**
 * R5. The end of the block at `at`. A block that is longer than this version knows was written by a later version,
 *     whose fields must not be lost.
 */
export function checkBlock(bytes: Bytes, at: number, { bytes: bytesMax, bytesMin }: BlockLength): number {
  if (bytes.length < at + BLOCK_LENGTH_BYTES) incomplete();
  const length = viewAround(bytes).getUint16(bytes.byteOffset + at);
  if (length < bytesMin || length > bytesMax) {
    throw new InvariantError(`R5: a block of a lock record has ${bytesMin} to ${bytesMax} bytes, not ${length}`);
  }
  const end = at + BLOCK_LENGTH_BYTES + length;
  if (bytes.length < end) incomplete();
  return end;
}

/** The options of a hold, and whether it is delayed: the last fields of blocks about a hold. */
export interface HoldTerms {
  readonly keepData: boolean;
  readonly delayMs: number;
  readonly delayed: boolean;
}

export const HOLD_TERMS_BYTES = 5;
const KEEP_DATA = 1;
const DELAYED = 2;

export function writeTerms(out: Buffer, at: number, { keepData, delayMs, delayed }: HoldTerms): void {
  out[at] = (keepData ? KEEP_DATA : 0) | (delayed ? DELAYED : 0);
  viewAround(out).setUint32(out.byteOffset + at + 1, delayMs);
}

const NO_TERMS: HoldTerms = { keepData: false, delayMs: 0, delayed: false };

/** R5. These fields were added later: a block that ends at `end` may not have them. */
export function readTerms(bytes: Bytes, at: number, end: number): HoldTerms {
  if (end < at + HOLD_TERMS_BYTES) return NO_TERMS;
  const flags = bytes[at] ?? 0;
  const delayMs = viewAround(bytes).getUint32(bytes.byteOffset + at + 1);
  return { keepData: (flags & KEEP_DATA) !== 0, delayMs, delayed: (flags & DELAYED) !== 0 };
}

function incomplete(): never {
  throw new InvariantError('R2: a lock record is complete');
}

export function writeTail(out: Buffer, at: number, tail: { token: string; tokenBytes: number; data: Bytes }): void {
  const tokenAt = at + 2;
  out[at] = tail.tokenBytes >> 8;
  out[at + 1] = tail.tokenBytes & 0xff;
  const dataAt = writeText(out, tail.token, tokenAt, tail.tokenBytes);
  if (tail.data.length > 0) out.set(tail.data, dataAt);
}

export function readTail(bytes: Bytes, at: number): { readonly token: string; readonly data: Bytes } {
  if (at + 2 > bytes.length) incomplete();
  const b = asBuffer(bytes);
  const dataAt = at + 2 + (((b[at] ?? 0) << 8) | (b[at + 1] ?? 0));
  if (dataAt > b.length || dataAt > at + 2 + TOKEN_BYTES_MAX) incomplete();
  return { token: b.toString('utf8', at + 2, dataAt), data: dataAt === b.length ? EMPTY_BYTES : b.subarray(dataAt) };
}
