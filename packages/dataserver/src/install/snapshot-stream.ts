/**
 * A replica's data as a stream of bytes, between nodes and in the file where an incoming snapshot is staged.
 *
 *   stream  magic(8), whose last byte is the format's version; then frames. Format 3 says in its header which keys the
 *           range has; format 2, in which ranges over all keys are still sent, does not
 *   frame   length(4) checksum(4) body: MessagePack, `[kind, …]`
 *   frames  one header, any number of rows, one end
 *
 * N1. A damaged, truncated, extended or foreign stream is never taken for data: each frame has a checksum, and the end
 *     frame has the number of rows, their bytes, and a checksum over all frames before it.
 * N2. Rows come span by span and ascending, none outside the spans. The last span is the one of the range's own rows,
 *     and the state row, which holds the applied position, is the last of them: so a receiver that writes the rows in
 *     order has it in the last batch.
 * N3. Chunks may be cut anywhere. At most one frame is held, which is about `FRAME_BYTES`, or one row if that is
 *     larger.
 */
import {
  asBuffer,
  type Bytes,
  compareBytes,
  copyBytes,
  crc32,
  EMPTY_BYTES,
  equalBytes,
  loopSection,
  type Row,
  type Span,
  spanContains,
} from '@remora/base';
import { packPlain, unpack as unpackValue } from '@remora/protocol';
import type { LogPosition } from '@remora/raft';
import { boundsOf, rangeSpans } from '../state/bounds.ts';
import { stateKey } from '../state/keys.ts';
import { decodeRangeMeta } from '../state/meta-codec.ts';

const FORMAT_WHOLE = 2;
const FORMAT_BOUNDED = 3;
const EVERYTHING: Span = { start: EMPTY_BYTES, end: EMPTY_BYTES };
const MAGIC = Buffer.from('remsnap\0', 'latin1');
const FRAME_HEADER_BYTES = 8;
/** A frame of rows is closed when it holds this much. */
const FRAME_BYTES = 128 * 1024;
/** A value comes to a range in one message between nodes, of at most 64 MiB. */
const FRAME_BYTES_MAX = 72 * 1024 * 1024;
const HEADER = 0;
const ROWS = 1;
const END = 2;

/** Which data a stream holds. */
export interface SnapshotIdentity {
  readonly rangeId: number;
  readonly applied: LogPosition;
}

export interface SnapshotTotals {
  readonly rows: number;
  readonly bytes: number;
}

/** The received bytes are not the announced snapshot; none of them were used. */
export class SnapshotFormatError extends Error {
  override readonly name = 'SnapshotFormatError';
}

// ------------------------------------------------------------------------------------------------ writing

/** Encodes the rows of a range over `span`, which come as N2 says. A chunk is valid until the next one is asked for. */
export async function* encodeSnapshot(
  { rangeId, applied, span }: SnapshotIdentity & { readonly span: Span },
  batches: AsyncIterable<readonly Row[]>,
): AsyncGenerator<Buffer> {
  const frames = new FrameEncoder();
  const bounds = boundsOf(span).whole ? [] : [span.start, span.end];
  yield magicOf(bounds.length === 0 ? FORMAT_WHOLE : FORMAT_BOUNDED);
  yield frames.encode([HEADER, rangeId, applied.index, applied.term, ...bounds]);
  let parts: unknown[] = [ROWS];
  let frameBytes = 0;
  let [rows, bytes] = [0, 0];
  for await (const batch of batches) {
    for (const { key, value } of batch) {
      parts.push(key, value);
      frameBytes += key.length + value.length;
      rows++;
      if (frameBytes < FRAME_BYTES) continue;
      bytes += frameBytes;
      yield frames.encode(parts);
      [parts, frameBytes] = [[ROWS], 0];
    }
  }
  bytes += frameBytes;
  if (parts.length > 1) yield frames.encode(parts);
  yield frames.encode([END, rows, bytes, frames.checksum]);
}

function magicOf(version: number): Buffer {
  const magic = Buffer.from(MAGIC);
  magic[MAGIC.length - 1] = version;
  return magic;
}

class FrameEncoder {
  /** Over the checksums of all frames so far. */
  checksum = 0;
  /** Frames are written into this buffer one after the other: a buffer for each would create much garbage. */
  #room = Buffer.alloc(0);

  encode(parts: readonly unknown[]): Buffer {
    return loopSection('snapshot', () => this.#encode(parts));
  }

  #encode(parts: readonly unknown[]): Buffer {
    const body = packPlain(parts);
    const length = FRAME_HEADER_BYTES + body.length;
    if (this.#room.length < length) this.#room = Buffer.allocUnsafeSlow(length);
    const frame = this.#room.subarray(0, length);
    frame.writeUInt32BE(body.length, 0);
    frame.writeUInt32BE(crc32(body), 4);
    frame.set(body, FRAME_HEADER_BYTES);
    this.checksum = crc32(frame.subarray(4, FRAME_HEADER_BYTES), this.checksum);
    return frame;
  }
}

// ------------------------------------------------------------------------------------------------ reading

type Stage = 'magic' | 'header' | 'rows' | 'ended';

/**
 * Reads a stream and checks it (N1, N2). Every method throws a `SnapshotFormatError`; after that the parser must not be
 * used.
 */
export class SnapshotParser {
  readonly #expected: SnapshotIdentity;
  #order: RowOrder | undefined;
  #span: Span | undefined;
  #format = 0;
  #stage: Stage = 'magic';
  #held: Bytes[] = [];
  #heldBytes = 0;
  /** Pieces are joined once this many bytes are there. */
  #needed = MAGIC.length;
  #checksum = 0;
  #rows = 0;
  #bytes = 0;

  constructor(expected: SnapshotIdentity) {
    this.#expected = expected;
  }

  /** The keys of the range that the stream holds; undefined until its header is read. */
  get span(): Span | undefined {
    return this.#span;
  }

  /** Bytes that wait for the rest of their frame. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Yields the rows of the frames that `bytes` completes, a frame at a time; the rows are views of the pushed bytes.
   */
  *push(bytes: Bytes): Generator<readonly Row[]> {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes < this.#needed) {
      this.#held[this.#held.length - 1] = copyBytes(bytes);
      return;
    }
    let rest = this.#held.length === 1 ? asBuffer(bytes) : Buffer.concat(this.#held);
    this.#held = [];
    for (;;) {
      const taken = this.#take(rest);
      if (taken === undefined) break;
      rest = rest.subarray(taken.bytes);
      if (taken.rows.length > 0) yield taken.rows;
    }
    this.#heldBytes = rest.length;
    if (rest.length > 0) this.#held = [copyBytes(rest)];
  }

  /** Decodes what is at the beginning of `bytes`, if it is complete; otherwise records how many bytes are needed. */
  #take(bytes: Buffer): { readonly bytes: number; readonly rows: readonly Row[] } | undefined {
    if (this.#stage === 'ended' && bytes.length > 0) throw broken('has data after its end');
    this.#needed = this.#stage === 'magic' ? MAGIC.length : FRAME_HEADER_BYTES;
    if (bytes.length < this.#needed) return undefined;
    if (this.#stage === 'magic') {
      this.#format = formatOf(bytes);
      this.#stage = 'header';
      return { bytes: MAGIC.length, rows: [] };
    }
    const length = bytes.readUInt32BE(0);
    if (length > FRAME_BYTES_MAX) throw broken(`has a frame of ${length} bytes; at most ${FRAME_BYTES_MAX} are taken`);
    this.#needed = FRAME_HEADER_BYTES + length;
    if (bytes.length < this.#needed) return undefined;
    const body = bytes.subarray(FRAME_HEADER_BYTES, this.#needed);
    if (crc32(body) !== bytes.readUInt32BE(4)) throw broken('is damaged: the checksum of a frame is wrong');
    const rows = this.#frame(unpack(body));
    this.#checksum = crc32(bytes.subarray(4, FRAME_HEADER_BYTES), this.#checksum);
    return { bytes: this.#needed, rows };
  }

  #frame(parts: readonly unknown[]): readonly Row[] {
    const [kind] = parts;
    if (this.#stage === 'header' && kind === HEADER) {
      this.#header(parts);
      return [];
    }
    const order = this.#order;
    if (this.#stage === 'rows' && kind === ROWS && order !== undefined) return this.#rowsOf(parts, order);
    if (this.#stage === 'rows' && kind === END) {
      const [, rows, bytes, checksum] = parts;
      const complete = rows === this.#rows && bytes === this.#bytes && checksum === this.#checksum;
      if (!complete) throw broken(`is not complete: ${String(rows)} rows were sent, ${this.#rows} came`);
      order?.finish();
      this.#stage = 'ended';
      return [];
    }
    throw broken('has its frames in no known order');
  }

  #header(parts: readonly unknown[]): void {
    const { rangeId, applied } = this.#expected;
    const [, range, index, term] = parts;
    if (range !== rangeId || index !== applied.index || term !== applied.term) {
      const [found, wanted] = [place(range, index, term), place(rangeId, applied.index, applied.term)];
      throw broken(`is one of ${found}, not of ${wanted}`);
    }
    const span = this.#format === FORMAT_WHOLE ? EVERYTHING : spanOf(parts);
    this.#span = span;
    this.#order = new RowOrder({ rangeId, applied, span });
    this.#stage = 'rows';
  }

  #rowsOf(parts: readonly unknown[], order: RowOrder): readonly Row[] {
    const rows: Row[] = [];
    for (let i = 1; i < parts.length; i += 2) {
      const [key, value] = [parts[i], parts[i + 1]];
      if (!(key instanceof Uint8Array && value instanceof Uint8Array)) throw broken('has a malformed row');
      this.#bytes += key.length + value.length;
      rows.push({ key, value });
    }
    order.check(rows);
    this.#rows += rows.length;
    return rows;
  }

  /** Ends the stream: everything was pushed. */
  finish(): SnapshotTotals {
    if (this.#stage !== 'ended') throw broken('ends too early');
    if (this.#heldBytes > 0) throw broken('has data after its end');
    return { rows: this.#rows, bytes: this.#bytes };
  }
}

/** N2. */
class RowOrder {
  readonly #expected: SnapshotIdentity & { readonly span: Span };
  readonly #spans: readonly Span[];
  #at = 0;
  #last: Bytes | undefined;
  #lastRow: Row | undefined;

  constructor(expected: SnapshotIdentity & { readonly span: Span }) {
    this.#expected = expected;
    this.#spans = rangeSpans(expected.rangeId, expected.span);
  }

  check(rows: readonly Row[]): void {
    for (const { key } of rows) {
      while (!spanContains(this.#span(), key)) {
        this.#at++;
        this.#last = undefined;
      }
      if (this.#last !== undefined && compareBytes(this.#last, key) >= 0) throw broken('has rows out of order');
      this.#last = key;
    }
    const row = rows[rows.length - 1];
    if (row === undefined) return;
    this.#lastRow = { key: copyBytes(row.key), value: copyBytes(row.value) };
    this.#last = this.#lastRow.key;
  }

  #span(): Span {
    const span = this.#spans[this.#at];
    if (span === undefined) throw broken('has rows out of order, or outside its range');
    return span;
  }

  finish(): void {
    const { rangeId, applied, span } = this.#expected;
    const row = this.#lastRow;
    if (row === undefined || compareBytes(row.key, stateKey(rangeId)) !== 0) throw broken("lacks its range's state");
    const state = attempt(() => decodeRangeMeta(row.value));
    if (
      state.descriptor.rangeId !== rangeId ||
      state.applied.index !== applied.index ||
      state.applied.term !== applied.term
    ) {
      throw broken('stands for another position than it names');
    }
    const { start, end } = state.descriptor;
    if (!equalBytes(start, span.start) || !equalBytes(end, span.end)) throw broken('has other bounds than it names');
  }
}

function spanOf(header: readonly unknown[]): Span {
  const [, , , , start, end] = header;
  if (!(start instanceof Uint8Array && end instanceof Uint8Array)) throw broken('does not say which keys it has');
  return { start: copyBytes(start), end: copyBytes(end) };
}

function formatOf(bytes: Buffer): number {
  const version = bytes[MAGIC.length - 1] ?? 0;
  if (MAGIC.compare(bytes, 0, MAGIC.length - 1, 0, MAGIC.length - 1) !== 0)
    throw broken('is not a snapshot of a range');
  if (version !== FORMAT_WHOLE && version !== FORMAT_BOUNDED) {
    throw broken(`has format ${version}; this version reads ${FORMAT_WHOLE} and ${FORMAT_BOUNDED}`);
  }
  return version;
}

function place(range: unknown, index: unknown, term: unknown): string {
  return `range ${String(range)} at (${String(index)}, term ${String(term)})`;
}

function unpack(body: Buffer): readonly unknown[] {
  const parts = attempt(() => unpackValue(body, 0));
  if (!Array.isArray(parts)) throw broken('has a frame that cannot be read');
  return parts;
}

/** Decodes bytes from elsewhere: a failure here is never this node's fault. */
function attempt<T>(decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    throw broken(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function broken(what: string): SnapshotFormatError {
  return new SnapshotFormatError(`the snapshot ${what}`);
}
