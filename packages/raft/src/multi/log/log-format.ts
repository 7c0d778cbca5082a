/**
 * The format of the write-ahead log on disk: segments, and the frames in them.
 *
 * F1. A segment is one file, named by its generation, which increases by one with every segment and is never reused.
 *     The file starts with a header that repeats the generation and contains the version of the format.
 * F2. A frame is one write, synced before the next one begins. Its checksums cover its generation and its sequence
 *     number, so leftover bytes in a recycled file can never pass for a current frame.
 * F3. Sequence numbers of frames increase by one through the whole log. If a frame is missing or bad although one with
 *     a higher sequence is intact, it was durable once: this is damage, not a torn tail (traps 25).
 *
 * Numbers are little-endian; terms, indexes and generations take 48 bits here and varints inside records.
 */
import { assert, crc32 } from '@remora/base';

export const LOG_FORMAT_VERSION = 1;
export const SEGMENT_HEADER_BYTES = 64;
export const FRAME_HEADER_BYTES = 32;
/** Frames begin at multiples of this, which makes the search for a later intact frame cheap. */
const FRAME_ALIGNMENT = 8;

const SEGMENT_MAGIC = Buffer.from('REMORWAL', 'latin1');
const FRAME_MAGIC = Buffer.from([0xf7, 0x52, 0x4d, 0xa1]);
const UINT48_MAX = 2 ** 48 - 1;

/** The log has lost bytes that were durable once. The node must not start from it. */
export class LogDamagedError extends Error {
  override readonly name = 'LogDamagedError';
  readonly file: string;
  readonly offset: number;

  constructor(place: { readonly file: string; readonly offset: number }, what: string) {
    super(
      `the write-ahead log is damaged in ${place.file} at offset ${place.offset}: ${what}. ` +
        'Keep the data, and check the disk. Without the missing data this node must not vote under its old name: ' +
        'replace it by a new node with another name and an empty directory.',
    );
    this.file = place.file;
    this.offset = place.offset;
  }
}

/** The log was written by a newer version of this program. */
export class LogVersionError extends Error {
  override readonly name = 'LogVersionError';

  constructor(file: string, version: number) {
    super(
      `${file} has log format version ${version}; this program reads up to ${LOG_FORMAT_VERSION}: ` +
        'use the newer version of the program.',
    );
  }
}

export interface SegmentHeader {
  readonly generation: number;
  /** The sequence number of the first possible frame. */
  readonly firstSequence: number;
}

export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const out = Buffer.alloc(SEGMENT_HEADER_BYTES);
  SEGMENT_MAGIC.copy(out);
  out.writeUInt32LE(LOG_FORMAT_VERSION, 8);
  out.writeUIntLE(header.generation, 12, 6);
  out.writeUIntLE(header.firstSequence, 18, 6);
  out.writeUInt32LE(crc32(out.subarray(0, SEGMENT_HEADER_BYTES - 4)), SEGMENT_HEADER_BYTES - 4);
  return out;
}

/** Undefined if the bytes are not a complete header. Throws for a header of a newer version. */
export function decodeSegmentHeader(file: string, bytes: Buffer): SegmentHeader | undefined {
  if (bytes.length < SEGMENT_HEADER_BYTES || !bytes.subarray(0, 8).equals(SEGMENT_MAGIC)) return undefined;
  const sum = bytes.readUInt32LE(SEGMENT_HEADER_BYTES - 4);
  if (sum !== crc32(bytes.subarray(0, SEGMENT_HEADER_BYTES - 4))) return undefined;
  const version = bytes.readUInt32LE(8);
  if (version > LOG_FORMAT_VERSION) throw new LogVersionError(file, version);
  return { generation: bytes.readUIntLE(12, 6), firstSequence: bytes.readUIntLE(18, 6) };
}

export interface FrameId {
  readonly generation: number;
  readonly sequence: number;
}

/** Writes the header of a frame into its first bytes, after its payload. */
export function encodeFrameHeader(out: Buffer, id: FrameId, payload: { length: number; checksum: number }): void {
  assert(payload.length > 0 && payload.length < 2 ** 31, 'a frame holds between 1 byte and 2 GiB');
  assert(id.sequence <= UINT48_MAX && id.generation <= UINT48_MAX, 'sequences and generations fit 48 bits');
  FRAME_MAGIC.copy(out);
  out.writeUInt32LE(payload.length, 4);
  out.writeUIntLE(id.sequence, 8, 6);
  out.writeUIntLE(id.generation, 14, 6);
  out.writeUInt32LE(payload.checksum, 20);
  out.writeUInt32LE(0, 24);
  out.writeUInt32LE(crc32(out.subarray(0, 28)), 28);
}

export interface Frame {
  readonly sequence: number;
  readonly payload: Buffer;
  /** Where the next frame begins. */
  readonly end: number;
}

/** The frame at `offset`; undefined if there is no complete one of this generation (F2). */
export function readFrame(segment: Buffer, offset: number, generation: number): Frame | undefined {
  if (offset + FRAME_HEADER_BYTES > segment.length) return undefined;
  const header = segment.subarray(offset, offset + FRAME_HEADER_BYTES);
  if (FRAME_MAGIC.compare(header, 0, 4) !== 0) return undefined;
  if (header.readUInt32LE(28) !== crc32(header.subarray(0, 28))) return undefined;
  if (header.readUIntLE(14, 6) !== generation) return undefined;
  const length = header.readUInt32LE(4);
  const start = offset + FRAME_HEADER_BYTES;
  if (start + length > segment.length) return undefined;
  const payload = segment.subarray(start, start + length);
  if (header.readUInt32LE(20) !== crc32(payload)) return undefined;
  return { sequence: header.readUIntLE(8, 6), payload, end: start + length + framePadding(length) };
}

/** The length of the frame at `offset` according to its header, whether or not that is intact. */
export function frameBytes(segment: Buffer, offset: number): number {
  const length = offset + FRAME_HEADER_BYTES <= segment.length ? segment.readUInt32LE(offset + 4) : 0;
  return FRAME_HEADER_BYTES + length + framePadding(length);
}

/** The payload of a frame that is known to be intact. */
export function framePayload(segment: Buffer, offset: number): Buffer {
  const start = offset + FRAME_HEADER_BYTES;
  return segment.subarray(start, start + segment.readUInt32LE(offset + 4));
}

/** The number of zeros after a payload, so that the next frame is aligned. */
export function framePadding(payloadLength: number): number {
  return -payloadLength & (FRAME_ALIGNMENT - 1);
}

/**
 * Whether an intact frame with a sequence above `above` begins anywhere after `from`. Contents of entries may look like
 * frames of this very log, but only like earlier ones, whose sequences are lower.
 */
export function hasLaterFrame(segment: Buffer, from: number, place: { generation: number; above: number }): boolean {
  for (let at = segment.indexOf(FRAME_MAGIC, from); at >= 0; at = segment.indexOf(FRAME_MAGIC, at + 1)) {
    if (at % FRAME_ALIGNMENT !== 0) continue;
    const frame = readFrame(segment, at, place.generation);
    if (frame !== undefined && frame.sequence > place.above) return true;
  }
  return false;
}
