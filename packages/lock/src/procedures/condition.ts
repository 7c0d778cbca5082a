import { safeSpanMs } from '@remora/base';

/**
 * What a holder and the cluster have agreed on about the heartbeats of a session.
 *
 * N1. The server ends the session when it has heard nothing for `serverMisses` intervals, and not before.
 * N2. The holder stops using what it holds when nothing that it sent within the last `holderMisses` intervals was
 *     answered. That is certainly before N1, whatever their clocks do within the drift assumed of any: a condition that
 *     leaves no margin is refused.
 */
export interface Condition {
  readonly heartbeatMs: number;
  readonly serverMisses: number;
  readonly holderMisses: number;
}

/** The TTL of a lease that does not end by itself: some 285 years, the longest that there is. */
export const TTL_NEVER_MS = 9_000_000_000_000;
const MISSES_MAX = 1_000;
/** With less, one answer that is a little late would end it. */
const HOLDER_MISSES_MIN = 2;

/** For what drift does not cover: rounding of times, timers that fire late, the way from the check to the use. */
const REACTION_MS_MAX = 50;
/** The same as a part of the TTL, where that is less: sessions of tests and experiments live for a moment only. */
const REACTION_FRACTION = 0.1;

/** How long after sending a heartbeat that was acknowledged a session is certainly alive, on the client's clock. */
export function validityMs(ttlMs: number): number {
  return safeSpanMs(ttlMs) - Math.min(REACTION_MS_MAX, ttlMs * REACTION_FRACTION);
}

/** N1. */
export function conditionTtlMs({ heartbeatMs, serverMisses }: Condition): number {
  return heartbeatMs * serverMisses;
}

/** N2. */
export function conditionValidityMs({ heartbeatMs, holderMisses }: Condition): number {
  return heartbeatMs * holderMisses;
}

/** The most that the holder may miss when the server frees the lock after so many. */
export function holderMissesMax(heartbeatMs: number, serverMisses: number): number {
  return Math.floor(validityMs(heartbeatMs * serverMisses) / heartbeatMs);
}

/** What is wrong with a condition; undefined when nothing is. */
export function conditionRefusal(condition: Condition): string | undefined {
  const { heartbeatMs, serverMisses, holderMisses } = condition;
  if (!(heartbeatMs > 0) || conditionTtlMs(condition) > TTL_NEVER_MS) {
    return `expected a heartbeat above 0 ms, and at most ${TTL_NEVER_MS} ms for all misses, got ${heartbeatMs} ms`;
  }
  if (!isCount(serverMisses) || !isCount(holderMisses)) {
    return `expected ${HOLDER_MISSES_MIN} to ${MISSES_MAX} misses, got serverMisses ${serverMisses} and holderMisses ${holderMisses}`;
  }
  if (conditionValidityMs(condition) <= validityMs(conditionTtlMs(condition))) return undefined;
  const most = holderMissesMax(heartbeatMs, serverMisses);
  const hint = most < HOLDER_MISSES_MIN ? 'let the server miss more' : `at most ${most}`;
  return (
    `the holder must stop before the server frees the lock: holderMisses ${holderMisses} leaves no margin before ` +
    `serverMisses ${serverMisses} with a heartbeat of ${heartbeatMs} ms (${hint})`
  );
}

function isCount(misses: number): boolean {
  return Number.isInteger(misses) && misses >= HOLDER_MISSES_MIN && misses <= MISSES_MAX;
}
