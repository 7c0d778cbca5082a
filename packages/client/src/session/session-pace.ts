import type { Clock } from '@remora/base';
import { type Condition, conditionValidityMs, validityMs } from '@remora/lock';

/** How long a session lives without heartbeats, and the condition that its client and the cluster have agreed on. */
export interface SessionTerms {
  readonly ttlMs: number;
  readonly condition?: Condition;
}

/** The terms as the client applies them. */
export interface Pace {
  readonly ttlMs: number;
  readonly intervalMs: number;
  /** How long the client goes on without an answer, if that is less than the TTL allows. */
  readonly silenceMs: number;
}

const HEARTBEATS_PER_TTL = 3;

/** A time limit by two clocks: the monotonic clock stops while a machine is suspended. */
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

/** How long the session is certainly alive after sending a heartbeat that was acknowledged with this TTL. */
export function aliveMs(pace: Pace, ttlMs: number): number {
  return Math.min(validityMs(Math.min(pace.ttlMs, ttlMs)), pace.silenceMs);
}
