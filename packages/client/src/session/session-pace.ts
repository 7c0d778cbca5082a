import type { Clock } from '@remora/base';
import { type Condition, conditionValidityMs, validityMs } from '@remora/lock';

/** How long a session lives without heartbeats, and what its client and the cluster have agreed on about them. */
export interface SessionTerms {
  readonly ttlMs: number;
  readonly condition?: Condition;
}

/** The terms as the client keeps to them. */
export interface Pace {
  readonly ttlMs: number;
  readonly intervalMs: number;
  /** How long without an answer the client goes on, if that is less than what the TTL allows. */
  readonly silenceMs: number;
}

const HEARTBEATS_PER_TTL = 3;

/** For how long something lasts at most, by either clock: the monotonic one stands still while a machine is suspended. */
export class Limit {
  /** On the monotonic clock. */
  readonly endMs: number;
  /** On the wall clock. */
  readonly wallEndMs: number;

  constructor(clock: Clock, spanMs: number) {
    this.endMs = clock.monotonicMs() + spanMs;
    this.wallEndMs = clock.wallMs() + spanMs;
  }

  isOver(nowMs: number, wallMs: number): boolean {
    return nowMs >= this.endMs || wallMs >= this.wallEndMs;
  }
}

export function paceOf({ ttlMs, condition }: SessionTerms): Pace {
  if (condition === undefined) {
    return { ttlMs, intervalMs: ttlMs / HEARTBEATS_PER_TTL, silenceMs: Number.POSITIVE_INFINITY };
  }
  return { ttlMs, intervalMs: condition.heartbeatMs, silenceMs: conditionValidityMs(condition) };
}

export function shorterOf(a: Pace, b: Pace): Pace {
  return {
    ttlMs: Math.min(a.ttlMs, b.ttlMs),
    intervalMs: Math.min(a.intervalMs, b.intervalMs),
    silenceMs: Math.min(a.silenceMs, b.silenceMs),
  };
}

/** How long after sending a heartbeat the session is certainly alive, if it was acknowledged with this TTL. */
export function aliveMs(pace: Pace, ttlMs: number): number {
  return Math.min(validityMs(Math.min(pace.ttlMs, ttlMs)), pace.silenceMs);
}
