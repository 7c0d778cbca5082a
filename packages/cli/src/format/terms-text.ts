/** How long sessions, and what belongs to them, outlive their clients. */
import { formatDurationMs } from '@remora/base';
import type { HolderTerms, SessionInfo } from 'remora';
import { agoText } from './sizes.ts';

/** A session that would last for a century counts as one that never expires. */
const CENTURY_MS = 100 * 365 * 24 * 3_600_000;

/** The time until something ends. */
export function timeText(ms: number): string {
  return ms > CENTURY_MS ? 'never ends' : formatDurationMs(Math.round(ms));
}

/** The remaining time, rounded for display. */
export function leftText(ms: number): string {
  return ms > CENTURY_MS ? timeText(ms) : agoText(Math.max(0, ms));
}

/** For programs: whole milliseconds; the leader counts in fractions. */
export function jsonTerms({ ttlMs, remainingMs, condition }: HolderTerms) {
  return {
    ...{ ttlMs, remainingMs: Math.max(0, Math.round(remainingMs)) },
    ...(condition === undefined ? {} : { condition }),
  };
}

export function conditionText({
  heartbeatMs,
  serverMisses,
  holderMisses,
}: NonNullable<SessionInfo['condition']>): string {
  const every = `a heartbeat every ${formatDurationMs(heartbeatMs)}`;
  return `${every}; the server ends the session after ${serverMisses} missed, its client stops after ${holderMisses}`;
}
