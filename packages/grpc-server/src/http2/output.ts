/**
 * What one connection sends: frames are written into pages, and those of one turn of the event loop leave together.
 *
 * O1. Bytes leave in the order in which they were written.
 * O2. What waits for the end of a turn is bounded: `UNSENT_BYTES_MAX` and a page.
 * O3. A page is never written again below what was handed to the socket, which may read it later.
 */
import type { Duplex } from 'node:stream';
import type { Timers } from '../timers.ts';
import { FRAME_HEAD_BYTES } from './protocol.ts';

const PAGE_BYTES = 32 << 10;
/** A page with less room than this is not used for another turn, whose answers would be in two pieces. */
const PAGE_ROOM_MIN = 8 << 10;
/** A turn that has written more hands it to the socket without waiting for its end. */
const UNSENT_BYTES_MAX = 256 << 10;
/** Longer pieces are not copied into a page. */
const COPIED_BYTES_MAX = 2 << 10;
const NO_PAGE = Buffer.alloc(0);

export class Output {
  readonly #socket: Duplex;
  readonly #timers: Timers;
  /** Whole pieces before the page's own. */
  #pieces: Buffer[] = [];
  #piecesBytes = 0;
  #page: Buffer = NO_PAGE;
  /** The page's bytes in [#from, #at) are not in `#pieces` yet. */
  #from = 0;
  #at = 0;
  /** A flush is scheduled for the end of the turn. */
  #isScheduled = false;
  /** The caller of `hold` flushes or schedules. */
  #isHeld = false;
  #isOver = false;
  readonly #flush = (): void => {
    this.#isScheduled = false;
    this.flush();
  };
  readonly #onFlushed: () => void;

  /** `onFlushed` is called whenever the socket was given something. */
  constructor(socket: Duplex, timers: Timers, onFlushed: () => void) {
    this.#socket = socket;
    this.#timers = timers;
    this.#onFlushed = onFlushed;
  }

  /** Bytes of this turn that the socket does not have yet. */
  get unsentBytes(): number {
    return this.#piecesBytes + this.#at - this.#from;
  }

  /** The caller flushes, or calls `release`, before its turn ends. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Flushes now, or at the end of the turn. */
  release(isNow: boolean): void {
    this.#isHeld = false;
    if (this.unsentBytes === 0) return;
    if (isNow) return this.flush();
    if (!this.#isScheduled) this.#schedule();
  }

  #schedule(): void {
    this.#isScheduled = true;
    this.#timers.setImmediate(this.#flush);
  }

  flush(): void {
    this.#closePiece();
    if (this.#piecesBytes === 0 || this.#isOver) return;
    if (this.#page.length - this.#at < PAGE_ROOM_MIN) this.shrink();
    const pieces = this.#pieces;
    const [first] = pieces;
    this.#piecesBytes = 0;
    if (pieces.length === 1 && first !== undefined) {
      pieces.length = 0;
      this.#socket.write(first);
      return this.#onFlushed();
    }
    this.#pieces = [];
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
    this.#onFlushed();
  }

  /** Drops everything from now on. */
  end(): void {
    this.#isOver = true;
    this.#pieces = [];
    this.#piecesBytes = 0;
    this.shrink();
  }

  /** Gives up the page of a connection that sends nothing. */
  shrink(): void {
    if (this.#at !== this.#from && !this.#isOver) return;
    this.#page = NO_PAGE;
    this.#from = 0;
    this.#at = 0;
  }

  /** Makes room for so many bytes in a row. */
  reserve(bytes: number): void {
    if (this.#isOver) this.#at = this.#from = 0;
    else if (!this.#isHeld && !this.#isScheduled) this.#schedule();
    if (this.#at + bytes <= this.#page.length) return;
    this.#closePiece();
    if (this.#piecesBytes > UNSENT_BYTES_MAX) this.flush();
    this.#page = Buffer.allocUnsafeSlow(Math.max(PAGE_BYTES, bytes));
    this.#from = 0;
    this.#at = 0;
  }

  /** The head of a frame (RFC 9113 §4.1); as all of those below, into reserved room. */
  head(length: number, type: number, flags: number, streamId: number): void {
    const page = this.#page;
    const at = this.#at;
    page[at] = length >>> 16;
    page[at + 1] = length >>> 8;
    page[at + 2] = length;
    page[at + 3] = type;
    page[at + 4] = flags;
    page[at + 5] = streamId >>> 24;
    page[at + 6] = streamId >>> 16;
    page[at + 7] = streamId >>> 8;
    page[at + 8] = streamId;
    this.#at = at + FRAME_HEAD_BYTES;
  }

  octet(value: number): void {
    this.#page[this.#at++] = value;
  }

  uint32(value: number): void {
    const page = this.#page;
    const at = this.#at;
    page[at] = value >>> 24;
    page[at + 1] = value >>> 16;
    page[at + 2] = value >>> 8;
    page[at + 3] = value;
    this.#at = at + 4;
  }

  bytes(piece: Uint8Array): void {
    this.#page.set(piece, this.#at);
    this.#at += piece.length;
  }

  /** Writes a piece of any length, for which no room needs to be reserved. It must not change afterwards. */
  piece(piece: Buffer): void {
    if (piece.length <= COPIED_BYTES_MAX) {
      this.reserve(piece.length);
      return this.bytes(piece);
    }
    this.#closePiece();
    if (this.#isOver) return;
    this.#pieces.push(piece);
    this.#piecesBytes += piece.length;
    if (this.#piecesBytes > UNSENT_BYTES_MAX) this.flush(); // O2
  }

  /** Moves what the page has into `#pieces` (O1). */
  #closePiece(): void {
    if (this.#at === this.#from) return;
    this.#pieces.push(this.#page.subarray(this.#from, this.#at));
    this.#piecesBytes += this.#at - this.#from;
    this.#from = this.#at;
  }
}
