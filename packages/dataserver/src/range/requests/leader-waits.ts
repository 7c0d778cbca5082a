import type { Clock, ServiceError } from '@remora/base';
import type { AwaitLeaderRequest, Done, RangeInfo } from '@remora/protocol';

/** The gateway repeats longer waits. */
const WAIT_MAX_MS = 1_000;
/** Above this number, further callers are answered at once with what is known now. */
const WAITS_MAX = 10_000;

export interface LeaderWaitsDeps {
  readonly clock: Clock;
  readonly nodeId: number;
  /** Returns what is known here of a range now. */
  readonly look: (rangeId: number) => RangeInfo | ServiceError;
}

/**
 * Gateways that look for the leader of a range wait here until this node leads it. So they learn of the leader one trip
 * after it begins to lead, and do not have to poll while there is none.
 *
 * LW1. An answer states what is known when it is given, and nothing more. A waiter is answered early when this node
 *      leads the range or knows where its keys went, and never late.
 * LW2. A gateway can also wait for a range that has no replica here: a split may be about to make it.
 */
export class LeaderWaits {
  readonly #deps: LeaderWaitsDeps;
  readonly #waiting = new Map<number, Set<() => void>>();
  #count = 0;

  constructor(deps: LeaderWaitsDeps) {
    this.#deps = deps;
  }

  /** The number of waiters. */
  get size(): number {
    return this.#count;
  }

  /** Returns a function that takes the question back. */
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
