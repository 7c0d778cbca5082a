import type { Timers } from '../timers.ts';
import type { Http2Limits } from './limits.ts';

/** What a connection shows to the totals of its server. */
export interface CountedConnection {
  readonly unfinishedBytes: number;
  readonly outputBytes: number;
  readonly streams: { readonly size: number };
  /** Streams that wait for the rest of a request. */
  awaitedStreams(): number;
  /** Ends the connection, because it holds too much. */
  exceeded(limit: keyof Http2Limits): void;
}

/**
 * What all connections of a server hold together, and which limits they have reached.
 *
 * T1. A total that is above its limit is back below it before the next turn of the event loop: connections are closed,
 *     the largest first. Nothing is closed in the middle of what it does.
 * T2. Streams whose requests are not whole keep no place from others. When all places are taken, the connection with
 *     the most such streams is closed, unless it is the one that asks for another: then its new stream is refused.
 */
export class Totals {
  readonly connections = new Set<CountedConnection>();
  readonly limits: Http2Limits;
  readonly #timers: Timers;
  readonly #onRefused: (limit: keyof Http2Limits) => void;
  streams = 0;
  #unfinishedBytes = 0;
  #outputBytes = 0;
  #isEnforcing = false;

  constructor(limits: Http2Limits, timers: Timers, onRefused: (limit: keyof Http2Limits) => void) {
    this.limits = limits;
    this.#timers = timers;
    this.#onRefused = onRefused;
  }

  get unfinishedBytes(): number {
    return this.#unfinishedBytes;
  }

  get outputBytes(): number {
    return this.#outputBytes;
  }

  refused(limit: keyof Http2Limits): void {
    this.#onRefused(limit);
  }

  /** Whether one more stream of `asking` has a place; closes a connection to make one (T2). */
  hasRoomForStream(asking: CountedConnection): boolean {
    const { streamsMax } = this.limits;
    if (this.streams < streamsMax) return true;
    let [most, awaited]: [CountedConnection | undefined, number] = [undefined, 0];
    for (const connection of this.connections) {
      if (connection.streams.size <= awaited) continue;
      const count = connection.awaitedStreams();
      if (count > awaited) [most, awaited] = [connection, count];
    }
    if (most !== undefined && most !== asking) most.exceeded('streamsMax');
    return this.streams < streamsMax;
  }

  addUnfinished(bytes: number): void {
    this.#unfinishedBytes += bytes;
    if (this.#unfinishedBytes > this.limits.unfinishedBytesMax) this.#enforceSoon();
  }

  addOutput(connection: CountedConnection, bytes: number): void {
    this.#outputBytes += bytes;
    const { outputBytesMax, outputBytesPerConnectionMax } = this.limits;
    if (this.#outputBytes > outputBytesMax || connection.outputBytes > outputBytesPerConnectionMax) this.#enforceSoon();
  }

  #enforceSoon(): void {
    if (this.#isEnforcing) return;
    this.#isEnforcing = true;
    this.#timers.setImmediate(() => {
      this.#isEnforcing = false;
      this.#enforce();
    });
  }

  /** T1 */
  #enforce(): void {
    const { outputBytesPerConnectionMax, outputBytesMax, unfinishedBytesMax } = this.limits;
    for (const connection of [...this.connections]) {
      if (connection.outputBytes > outputBytesPerConnectionMax) connection.exceeded('outputBytesPerConnectionMax');
    }
    while (this.#outputBytes > outputBytesMax) {
      if (!this.#closeLargest('outputBytesMax', ({ outputBytes }) => outputBytes)) break;
    }
    while (this.#unfinishedBytes > unfinishedBytesMax) {
      if (!this.#closeLargest('unfinishedBytesMax', ({ unfinishedBytes }) => unfinishedBytes)) break;
    }
  }

  /** Returns false if no connection holds anything. */
  #closeLargest(limit: keyof Http2Limits, bytesOf: (connection: CountedConnection) => number): boolean {
    let largest: CountedConnection | undefined;
    let bytes = 0;
    for (const connection of this.connections) {
      if (bytesOf(connection) > bytes) {
        largest = connection;
        bytes = bytesOf(connection);
      }
    }
    largest?.exceeded(limit);
    return largest !== undefined;
  }
}
