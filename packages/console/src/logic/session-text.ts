/** Sessions in words. */
import { counted } from './format.ts';

interface SessionLocks {
  readonly holds: number;
  readonly waits: number;
  /** There are more than these. */
  readonly hasMore: boolean;
}

/** What happens to the locks of a session when it is ended. */
export function endingText({ holds, waits, hasMore }: SessionLocks): string {
  const more = hasMore ? 'at least ' : '';
  const held =
    holds === 0 ? 'It holds no lock.' : `It holds ${more}${counted(holds, 'lock')}, released at once when it ends.`;
  return waits === 0 ? held : `${held} It also loses its place in ${more}${counted(waits, 'queue')}.`;
}

interface Heartbeats {
  readonly ttlMs: number;
  /** What was left of the TTL when the session was read. */
  readonly remainingMs: number;
}

/** Clients renew their sessions about every third of the TTL. More than half of it without one is unusual. */
const SILENT_SHARE = 1 / 2;

/** The TTL starts again with each heartbeat, so what is gone of it is the age of the last one. */
export function heartbeatAgeMs({ ttlMs, remainingMs }: Heartbeats): number {
  return Math.max(0, ttlMs - remainingMs);
}

/** Whether a session has missed its usual heartbeat. */
export function isSilent(session: Heartbeats): boolean {
  return heartbeatAgeMs(session) > session.ttlMs * SILENT_SHARE;
}

/** A cursor before a session: the list of sessions that goes on after it begins with this one. */
export function cursorBefore(session: string): string | undefined {
  const match = /^([0-9a-f]{1,16})\.\d+$/.exec(session);
  const lease = BigInt(`0x${match?.[1] ?? '0'}`);
  return lease <= 1n ? undefined : `${(lease - 1n).toString(16)}.0`;
}
