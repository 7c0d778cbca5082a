/**
 * ReadIndex (dissertation §6.4).
 *
 * I1. A read is confirmed by a round of heartbeats that began after the read arrived. Every broadcast has its own round
 *     number, so that an answer from before a pause confirms nothing newer (traps 7).
 * I2. The index of a read is the commit index at the start of its round. Rounds start only once the leader has
 *     committed an entry of its own term; until then reads wait.
 * I3. Rounds end with the term: a leader that loses its leadership drops every read, and the core drops answers of
 *     older terms before they reach this file.
 */
import type { ReadState } from './types.ts';

/**
 * Reads in progress in one group; more are refused with `queueFull`. The host batches reads, so this is hardly reached.
 */
const READS_MAX = 1024;

interface PendingRead extends ReadState {
  readonly round: number;
}

export class ReadQueue {
  /** The last round broadcast. */
  round = 0;
  readonly #waiting: number[] = [];
  readonly #pending: PendingRead[] = [];
  #lastContext = 0;

  get full(): boolean {
    return this.#waiting.length + this.#pending.length >= READS_MAX;
  }
  /** Rounds are in progress: heartbeats should confirm them. */
  get active(): boolean {
    return this.#pending.length > 0;
  }
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Contexts must grow, so that callers cannot confuse the answers of two reads. */
  accepts(context: number): boolean {
    return Number.isSafeInteger(context) && context > this.#lastContext;
  }

  /** Keeps a read until the leader may serve it (I2). */
  wait(context: number): void {
    this.#lastContext = context;
    this.#waiting.push(context);
  }

  /** Assigns this index to all waiting reads; the next round confirms it. */
  begin(index: number): void {
    for (const context of this.#waiting) this.#pending.push({ context, index, round: this.round + 1 });
    this.#waiting.length = 0;
  }

  /** A quorum has answered rounds up to `round`. */
  confirm(round: number, into: ReadState[]): void {
    let n = 0;
    for (const read of this.#pending) {
      if (read.round > round) break;
      into.push({ context: read.context, index: read.index });
      n++;
    }
    if (n > 0) this.#pending.splice(0, n);
  }

  /** Leadership is lost (I3). */
  drop(into: number[]): void {
    for (const read of this.#pending) into.push(read.context);
    into.push(...this.#waiting);
    this.#pending.length = 0;
    this.#waiting.length = 0;
  }
}
