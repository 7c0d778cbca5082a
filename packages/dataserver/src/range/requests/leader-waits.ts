import type { Clock, ServiceError } from '@remora/base';
import type { AwaitLeaderRequest, Done, RangeInfo } from '@remora/protocol';

/** Longer waits are asked for anew. */
const WAIT_MAX_MS = 1_000;
/** Whoever comes on top of them is told at once what is known now. */
const WAITS_MAX = 10_000;

export interface LeaderWaitsDeps {
  readonly clock: Clock;
  readonly nodeId: number;
  /** What is known here of a range now. */
  readonly look: (rangeId: number) => RangeInfo | ServiceError;
}

/**
 * Gateways that look for the leader of a range, and wait here until it is this node. So they know of it one trip after
 * it leads, without asking again and again while nobody does.
 *
 * LW1. An answer says what is known when it is given, and that is all that it says: whoever waits is told earlier than
 *      asked for when this node leads the range, or knows where its keys went, and never later.
 * LW2. A range that has no replica here is waited for as well: a split may be about to make it.
 */
export class LeaderWaits {
  readonly #deps: LeaderWaitsDeps;
  readonly #waiting = new Map<number, Set<() => void>>();
  #count = 0;

  constructor(deps: LeaderWaitsDeps) {
    this.#deps = deps;
  }

  /** Those who wait now. */
  get size(): number {
    return this.#count;
  }

  /** Gives what takes the question back. */
  add({ rangeId, waitMs }: AwaitLeaderRequest, done: Done<RangeInfo>): () => void {
    if (waitMs === 0 || this.#count >= WAITS_MAX || this.#isKnown(rangeId)) {
      this.#answer(rangeId, done);
      return () => {};
    }
    const timer = this.#deps.clock.setTimer(Math.min(waitMs, WAIT_MAX_MS), () => tell());
    const leave = (): void => {
      timer.cancel();
      this.#leave(rangeId, tell);
    };
    const tell = (): void => {
      leave();
      this.#answer(rangeId, done);
    };
    this.#enter(rangeId, tell);
    return leave;
  }

  /** The range is led here now, or has ended here. */
  changed(rangeId: number): void {
    const waiting = this.#waiting.get(rangeId);
    if (waiting === undefined || !this.#isKnown(rangeId)) return;
    for (const tell of [...waiting]) tell();
  }

  #enter(rangeId: number, tell: () => void): void {
    const waiting = this.#waiting.get(rangeId) ?? new Set();
    this.#waiting.set(rangeId, waiting.add(tell));
    this.#count++;
  }

  #leave(rangeId: number, tell: () => void): void {
    const waiting = this.#waiting.get(rangeId);
    if (waiting?.delete(tell) !== true) return;
    this.#count--;
    if (waiting.size === 0) this.#waiting.delete(rangeId);
  }

  /** LW1. */
  #isKnown(rangeId: number): boolean {
    const now = this.#deps.look(rangeId);
    return 'code' in now ? now.code === 'STALE_EPOCH' : now.leaderNode === this.#deps.nodeId;
  }

  #answer(rangeId: number, done: Done<RangeInfo>): void {
    const now = this.#deps.look(rangeId);
    if ('code' in now) done(now, undefined);
    else done(undefined, now);
  }
}
