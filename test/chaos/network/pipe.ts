/**
 * Carries the bytes of one socket to another over a link.
 *
 * P1. Order is kept: a piece never overtakes an earlier one, whatever delays were drawn, and the end of the stream
 *     comes after all pieces.
 * P2. At most QUEUE_BYTES_MAX, plus one read, wait here. Then the source is not read any further, which looks like a
 *     slow network to the sender.
 */
import type { Socket } from 'node:net';
import type { Link } from './link.ts';

const QUEUE_BYTES_MAX = 4 << 20;

interface Piece {
  /** Absent: the end of the stream. */
  readonly bytes: Buffer | undefined;
  readonly dueMs: number;
}

export class Pipe {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #link: Link;
  readonly #forgetLink: () => void;
  readonly #queue: Piece[] = [];
  #queuedBytes = 0;
  #lastDueMs = 0;
  #sinkIsFull = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ source, sink, link }: { readonly source: Socket; readonly sink: Socket; readonly link: Link }) {
    this.#source = source;
    this.#sink = sink;
    this.#link = link;
    this.#forgetLink = link.onChange(() => this.#pump());
    source.on('data', (bytes) => this.#take(bytes));
    source.on('end', () => this.#take(undefined));
    sink.on('drain', () => {
      this.#sinkIsFull = false;
      this.#pump();
    });
  }

  close(): void {
    this.#forgetLink();
    clearTimeout(this.#timer);
  }

  #take(bytes: Buffer | undefined): void {
    this.#lastDueMs = Math.max(this.#lastDueMs, performance.now() + this.#link.drawDelayMs());
    this.#queue.push({ bytes, dueMs: this.#lastDueMs });
    this.#queuedBytes += bytes?.length ?? 0;
    if (this.#queuedBytes >= QUEUE_BYTES_MAX) this.#source.pause();
    this.#pump();
  }

  #pump(): void {
    for (let piece = this.#queue[0]; piece !== undefined; piece = this.#queue[0]) {
      if (this.#link.blocked || this.#sinkIsFull) return;
      const waitMs = piece.dueMs - performance.now();
      if (waitMs > 0) return this.#pumpIn(waitMs);
      this.#queue.shift();
      this.#deliver(piece.bytes);
    }
  }

  #deliver(bytes: Buffer | undefined): void {
    if (bytes === undefined) {
      this.#sink.end();
      return;
    }
    this.#sinkIsFull = !this.#sink.write(bytes);
    this.#queuedBytes -= bytes.length;
    if (this.#source.isPaused() && this.#queuedBytes < QUEUE_BYTES_MAX) this.#source.resume();
  }

  #pumpIn(ms: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#pump();
    }, ms);
  }
}
