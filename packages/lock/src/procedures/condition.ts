import { safeSpanMs } from '@remora/base';

/**
 * What a holder and the cluster have agreed on about the heartbeats of a session.
 *
 * N1. The server ends the session when it has received no heartbeat for `serverMisses` intervals, and not earlier.
 * N2. The holder stops using what it holds when none of the heartbeats of the last `holderMisses` intervals was
 *     answered. That is certainly before N1, whatever the clocks do within the drift that is assumed of any clock: a
 *     condition without a margin is refused.
 */
export interface Condition {
  readonly heartbeatMs: number;
  readonly serverMisses: number;
  readonly holderMisses: number;
}

/** The TTL of a lease that never expires: some 285 years, the longest TTL. */
export const TTL_NEVER_MS = 9_000_000_000_000;
const MISSES_MAX = 1_000;
/** With 1, a single late answer would end the hold. */
const HOLDER_MISSES_MIN = 2;

/** Covers what is not drift: rounded times, timers that fire late, the time from a check to the use that it allows. */
const REACTION_MS_MAX = 50;
/** The same as a fraction of the TTL, if that is less: for the short sessions of tests and experiments. */
const REACTION_FRACTION = 0.1;

/** How long a session is certainly alive after an acknowledged heartbeat was sent, by the client's clock. */
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

/** The highest `holderMisses` that leaves a margin before `serverMisses`. */
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
