/**
 * Records follow one another in a frame's payload: one per group and call.
 *
 *   flags, group, [hard state], [restart or compacted position], [first index, count, data bytes, entries]
 *
 * All numbers are varints of safe integers. An entry has its type and "same term as the one before" in one byte, then
 * its term if it changed, its length and its bytes.
 */
import { assert, crc32 } from '@remora/base';
import type { Entry, HardState, LogPosition } from '../../core/types.ts';
import type { GroupId } from '../ports.ts';
import { encodeFrameHeader, FRAME_HEADER_BYTES, type FrameId, framePadding } from './log-format.ts';

export interface LogRecord {
  readonly groupId: GroupId;
  readonly hardState?: HardState | undefined;
  /** The log restarts here: everything before this record is dropped. */
  readonly restartAt?: LogPosition | undefined;
  /** Entries up to here may be missing. */
  readonly compacted?: LogPosition | undefined;
  /** The group was removed. */
  readonly removed?: boolean | undefined;
  readonly entries: readonly Entry[];
  /** The entries are copies from a reclaimed segment: they replace nothing and truncate nothing. */
  readonly moved?: boolean | undefined;
}

const HARD_STATE = 1;
const RESTART = 2;
const COMPACTED = 4;
const REMOVED = 8;
const MOVED = 16;

const ENTRY_CONF = 1;
const ENTRY_SAME_TERM = 2;

const ZEROS = Buffer.alloc(8);
/**
 * Data of at least this size is written from its own memory; smaller data is copied, because a vector element costs
 * more.
 */
const BY_REFERENCE_BYTES = 4096;
const BUFFER_BYTES = 256 * 1024;
const VARINT_BYTES_MAX = 8;

/**
 * Gathers records into the chunks of one frame. Used for one frame at a time: `begin` reuses the buffer of the last
 * one.
 */
export class FrameWriter {
  readonly #home = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #buffer = this.#home;
  #at = 0;
  /** Start of the part of `#buffer` that is not in `#chunks` yet. */
  #from = 0;
  #chunks: Uint8Array[] = [];
  #chunkBytes = 0;

  begin(): void {
    this.#buffer = this.#home;
    this.#at = FRAME_HEADER_BYTES;
    this.#from = 0;
    this.#chunks = [];
    this.#chunkBytes = 0;
  }

  /** Bytes of records so far. */
  get payloadBytes(): number {
    return this.#chunkBytes + this.#at - this.#from - FRAME_HEADER_BYTES;
  }

  add(record: LogRecord): void {
    this.#reserve(12 * VARINT_BYTES_MAX);
    const position = record.restartAt ?? record.compacted;
    let flags = 0;
    if (record.hardState !== undefined) flags |= HARD_STATE;
    if (record.restartAt !== undefined) flags |= RESTART;
    if (record.compacted !== undefined) flags |= COMPACTED;
    if (record.removed === true) flags |= REMOVED;
    if (record.moved === true) flags |= MOVED;
    this.#number(flags);
    this.#number(record.groupId);
    if (record.hardState !== undefined) {
      this.#number(record.hardState.term);
      this.#number(record.hardState.vote);
      this.#number(record.hardState.commit);
    }
    if (position !== undefined) {
      this.#number(position.index);
      this.#number(position.term);
    }
    this.#entries(record.entries);
  }

  /** Completes the frame and returns what to write. */
  finish(id: FrameId): { readonly chunks: readonly Uint8Array[]; readonly bytes: number } {
    const length = this.payloadBytes;
    const padding = framePadding(length);
    this.#flush();
    let checksum = 0;
    this.#chunks.forEach((chunk, i) => {
      checksum = crc32(i === 0 ? chunk.subarray(FRAME_HEADER_BYTES) : chunk, checksum);
    });
    encodeFrameHeader(this.#home, id, { length, checksum });
    if (padding > 0) this.#chunks.push(ZEROS.subarray(0, padding));
    return { chunks: this.#chunks, bytes: FRAME_HEADER_BYTES + length + padding };
  }

  #entries(entries: readonly Entry[]): void {
    this.#number(entries.length);
    const first = entries[0];
    if (first === undefined) return;
    this.#number(first.index);
    let term = -1;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i];
      assert(entry !== undefined && entry.index === first.index + i, 'the entries of one append are contiguous');
      const data = entry.data;
      this.#reserve(3 * VARINT_BYTES_MAX + (data.length < BY_REFERENCE_BYTES ? data.length : 0));
      this.#number((entry.type === 'conf' ? ENTRY_CONF : 0) | (entry.term === term ? ENTRY_SAME_TERM : 0));
      if (entry.term !== term) this.#number(entry.term);
      term = entry.term;
      this.#number(data.length);
      if (data.length < BY_REFERENCE_BYTES) {
        this.#buffer.set(data, this.#at);
        this.#at += data.length;
      } else {
        this.#flush();
        this.#chunks.push(data);
        this.#chunkBytes += data.length;
      }
    }
  }

  #number(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, 'numbers in the log are safe integers');
    let left = value;
    const buffer = this.#buffer;
    while (left >= 0x80) {
      buffer[this.#at++] = (left & 0x7f) | 0x80;
      // Above 31 bits a shift would lose the upper part.
      left = left > 0x7fffffff ? Math.floor(left / 128) : left >>> 7;
    }
    buffer[this.#at++] = left;
  }

  /** Makes room. Written data stays where it is, because chunks refer to it. */
  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    this.#flush();
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, bytes));
    this.#at = 0;
    this.#from = 0;
  }

  #flush(): void {
    if (this.#at === this.#from) return;
    this.#chunks.push(this.#buffer.subarray(this.#from, this.#at));
    this.#chunkBytes += this.#at - this.#from;
    this.#from = this.#at;
  }
}

/** Decodes a frame's records. Entries are copied out of `payload`, so that keeping them does not pin a segment. */
export function decodeRecords(payload: Buffer): LogRecord[] {
  const reader = new RecordReader(payload);
  const records: LogRecord[] = [];
  while (!reader.atEnd) records.push({ ...reader.head(), entries: reader.entries(0, Number.POSITIVE_INFINITY) });
  return records;
}

/** A record's content without its entries. */
export type RecordHead = Omit<LogRecord, 'entries'>;

/** A description of a record's entries, without their data. */
export interface EntriesOutline {
  /** 0 if there are no entries. */
  readonly first: number;
  readonly last: number;
  /** Bytes of data. */
  readonly bytes: number;
  /** Runs of entries of one term and type: first index, term, and 1 for `conf`, one after another. */
  readonly runs: readonly number[];
}

/** Reads records one after another: first the head of each, then its entries in one of three ways. */
export class RecordReader {
  readonly #bytes: Buffer;
  #at = 0;
  /** Index, flags, term, place and length of each wanted entry of the record being read. */
  readonly #parts: number[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The start of the next record; `seek` returns there. */
  get position(): number {
    return this.#at;
  }

  seek(position: number): void {
    this.#at = position;
  }

  head(): RecordHead {
    const flags = this.#number();
    const groupId = this.#number();
    const hardState =
      (flags & HARD_STATE) !== 0 ? { term: this.#number(), vote: this.#number(), commit: this.#number() } : undefined;
    const position =
      (flags & (RESTART | COMPACTED)) !== 0 ? { index: this.#number(), term: this.#number() } : undefined;
    return {
      groupId,
      hardState,
      restartAt: (flags & RESTART) !== 0 ? position : undefined,
      compacted: (flags & COMPACTED) !== 0 ? position : undefined,
      removed: (flags & REMOVED) !== 0,
      moved: (flags & MOVED) !== 0,
    };
  }

  /** The index of the record's first entry, without moving on; 0 if there is none. */
  peekFirst(): number {
    const at = this.#at;
    const first = this.#number() === 0 ? 0 : this.#number();
    this.#at = at;
    return first;
  }

  /** Skips the entries of the record without decoding them. */
  skipEntries(): void {
    const count = this.#number();
    if (count > 0) this.#number();
    for (let i = 0; i < count; i++) {
      const flags = this.#number();
      if ((flags & ENTRY_SAME_TERM) === 0) this.#number();
      this.#skip(this.#number());
    }
  }

  entriesOutline(): EntriesOutline {
    const count = this.#number();
    if (count === 0) return NO_OUTLINE;
    const first = this.#number();
    const runs: number[] = [];
    let bytes = 0;
    let term = 0;
    let type = -1;
    for (let i = 0; i < count; i++) {
      const flags = this.#number();
      const sameTerm = (flags & ENTRY_SAME_TERM) !== 0;
      if (!sameTerm) term = this.#number();
      if (!sameTerm || (flags & ENTRY_CONF) !== type) runs.push(first + i, term, flags & ENTRY_CONF);
      type = flags & ENTRY_CONF;
      const length = this.#number();
      bytes += length;
      this.#skip(length);
    }
    return { first, last: first + count - 1, bytes, runs };
  }

  /** The entries of the record from index `from` to at most `to`, in one copy. */
  entries(from: number, to: number): readonly Entry[] {
    const count = this.#number();
    if (count === 0) return NO_ENTRIES;
    const first = this.#number();
    const parts = this.#parts;
    parts.length = 0;
    let copyFrom = 0;
    let copyTo = 0;
    let term = 0;
    for (let index = first; index < first + count; index++) {
      const flags = this.#number();
      if ((flags & ENTRY_SAME_TERM) === 0) term = this.#number();
      const length = this.#number();
      if (index >= from && index <= to) {
        if (parts.length === 0) copyFrom = this.#at;
        copyTo = this.#at + length;
        parts.push(index, flags, term, this.#at - copyFrom, length);
      }
      this.#skip(length);
    }
    return parts.length === 0 ? NO_ENTRIES : partsOf(Buffer.from(this.#bytes.subarray(copyFrom, copyTo)), parts);
  }

  #skip(length: number): void {
    this.#at += length;
    assert(this.#at <= this.#bytes.length, 'an entry lies within its frame');
  }

  #number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.#bytes[this.#at++];
      assert(byte !== undefined, 'a record lies within its frame');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 128;
    }
    assert(Number.isSafeInteger(value), 'numbers in the log are safe integers');
    return value;
  }
}

const NO_ENTRIES: readonly Entry[] = [];
const NO_OUTLINE: EntriesOutline = { first: 0, last: 0, bytes: 0, runs: [] };

function partsOf(copy: Buffer, parts: readonly number[]): Entry[] {
  const entries: Entry[] = [];
  for (let i = 0; i < parts.length; i += 5) {
    const [index = 0, flags = 0, term = 0] = [parts[i], parts[i + 1], parts[i + 2]];
    const [at = 0, length = 0] = [parts[i + 3], parts[i + 4]];
    const type = (flags & ENTRY_CONF) !== 0 ? 'conf' : 'normal';
    entries.push({ index, term, type, data: copy.subarray(at, at + length) });
  }
  return entries;
}
