import { ServiceError } from '@remora/base';
import type { LockId, LockState } from '@remora/lock';
import { onAbort } from './abort.ts';
import { lockResult } from './acquire.ts';
import { type Duration, durationMs } from './duration.ts';
import { refusalOf } from './lock-errors.ts';
import { eventsOfLock, LockStates } from './lock-events.ts';
import type { Requester } from './requester.ts';

export interface RevokeOptions {
  /** Told to the holder, for people: at most 256 bytes. */
  readonly reason?: string;
  /** Who asks, told to the holder: at most 128 bytes. */
  readonly by?: string;
  /** How long to wait for its answer; then the request is void. Default 30 s, at most a day; 0: asks, and does not wait. */
  readonly wait?: Duration;
  /** Waits no longer when aborted; the request goes on until its time is over. */
  readonly signal?: AbortSignal;
}

/**
 * `released`: nobody of those who were asked holds the lock any more. `declined`: somebody still did when the time was over.
 * `free`: nobody held it.
 */
export type RevocationOutcome = 'released' | 'declined' | 'free';

/** What a holder is asked. */
export interface RevocationRequest {
  readonly by: string;
  readonly reason: string;
  /** The wall time of the server when it was asked, in ms; for display. */
  readonly sinceMs: number;
}

export type RevokeListener = (request: RevocationRequest) => void | Promise<void>;

const WAIT_DEFAULT_MS = 30_000;

/** Asks all who hold a lock to let go of it, and waits for what they do. */
export async function revokeLock(
  requester: Requester,
  lock: LockId,
  { reason = '', by = '', wait, signal, timeoutMs }: RevokeOptions & { readonly timeoutMs: number },
): Promise<RevocationOutcome> {
  const waitMs = wait === undefined ? WAIT_DEFAULT_MS : durationMs(wait, 'wait');
  const forMs = waitMs === 0 ? WAIT_DEFAULT_MS : Math.ceil(waitMs);
  const command = { type: 'revoke', lock, by, reason, forMs } as const;
  const result = lockResult(await requester.command({ type: 'lock', command }, { timeoutMs, signal }));
  if (result.type === 'revoking') {
    return awaitRelease(requester, lock, { version: result.version, waitMs, signal });
  }
  const refusal = refusalOf(result);
  if (refusal.code === 'LOCK_NOT_HELD') return 'free';
  throw refusal;
}

/**
 * The request is over when the lock says so: events tell when to look. Its time at the lock is over before this client's,
 * so that alone does not say that those who were asked (up to `version`) have let go.
 */
async function awaitRelease(
  requester: Requester,
  lock: LockId,
  asked: { readonly version: number; readonly waitMs: number; readonly signal: AbortSignal | undefined },
): Promise<RevocationOutcome> {
  const { waitMs, signal } = asked;
  let { version } = asked;
  const over = new AbortController();
  const timer = requester.ports.clock.setTimer(waitMs, () => over.abort());
  const forget = signal && onAbort(signal, () => over.abort());
  if (signal?.aborted) over.abort();
  try {
    const states = new LockStates();
    for await (const event of eventsOfLock(requester, lock, { signal: over.signal })) {
      states.apply(event);
      const state = states.get(lock);
      if (state?.revocation === undefined) return isHeldByAsked(state, version) ? 'declined' : 'released';
      // Who holds it in another way since is asked as before, under the new version.
      version = state.revocation.version;
    }
    if (signal?.aborted) throw new ServiceError('CANCELED', 'the caller aborted', { cause: signal.reason });
    if (requester.closed) throw new ServiceError('CANCELED', 'the client is closed');
    return 'declined';
  } finally {
    timer.cancel();
    forget?.();
  }
}

function isHeldByAsked(state: LockState | undefined, version: number): boolean {
  return state?.holders.some((holder) => !holder.delayed && holder.version <= version) ?? false;
}
