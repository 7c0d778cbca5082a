import { ServiceError } from '@remora/base';
import type { LockId, LockState, PublicOwner } from '@remora/lock';
import { type Duration, durationMs } from '../options/duration.ts';
import { duration, signal as signalCheck, text } from '../options/option-kinds.ts';
import { optionSet } from '../options/options.ts';
import { onAbort } from '../transport/abort.ts';
import type { Requester } from '../transport/requester.ts';
import { lockResult } from './acquire.ts';
import { refusalOf } from './lock-errors.ts';
import { eventsOfLock, LockStates, type LockWatchEvent } from './lock-events.ts';
import { NAMESPACE_CHECKS, type NamespaceOptions } from './lock-name.ts';

export interface RevokeOptions {
  /** Told to the holder, for people: at most 256 bytes. */
  readonly reason?: string | undefined;
  /** Who asks, told to the holder: at most 128 bytes. */
  readonly by?: string | undefined;
  /** How long to wait for its answer; then the request is void. Default 30 s, at most a day; 0: asks, and does not wait. */
  readonly wait?: Duration | undefined;
  /** Waits no longer when aborted; the request goes on until its time is over. */
  readonly signal?: AbortSignal | undefined;
}

export const REVOKE_OPTIONS = optionSet<RevokeOptions & NamespaceOptions>('revoke', {
  ...{ ...NAMESPACE_CHECKS, reason: text, by: text, wait: duration, signal: signalCheck },
});

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
/** Of who still holds the lock when the time is over. */
const LAST_LOOK_MS = 1_000;

/** Asks all who hold a lock to let go of it, and waits for what they do. */
export async function revokeLock(
  requester: Requester,
  lock: LockId,
  { reason = '', by = '', wait, signal, timeoutMs }: RevokeOptions & { readonly timeoutMs: number },
): Promise<RevocationOutcome> {
  const waitMs = wait === undefined ? WAIT_DEFAULT_MS : durationMs(wait, 'wait');
  const forMs = waitMs === 0 ? WAIT_DEFAULT_MS : Math.ceil(waitMs);
  const command = { type: 'revoke', lock, by, reason, forMs } as const;
  const { clock } = requester.ports;
  const endsMs = clock.monotonicMs() + waitMs;
  // To ask is part of the wait. Whether it was asked for is not known when that is over: holders may hear of it, and no more.
  const options = { timeoutMs: waitMs === 0 ? timeoutMs : Math.min(timeoutMs, waitMs), signal };
  const result = lockResult(await requester.command({ type: 'lock', command }, options));
  if (result.type === 'revoking') {
    const leftMs = Math.max(0, endsMs - clock.monotonicMs());
    return awaitRelease(requester, lock, { version: result.version, waitMs: leftMs, signal });
  }
  const refusal = refusalOf(result);
  if (refusal.code === 'LOCK_NOT_HELD') return 'free';
  throw refusal;
}

interface Asked {
  /** The revision of the request, which names it. */
  readonly version: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Events tell when to look. The time of the request at the lock is over before this client's, and others may ask anew: so
 * that the request is over there does not say by itself that those who were asked have let go. Where events stay away, as
 * its gateway is cut off, the lock itself is looked at in the end.
 */
async function awaitRelease(requester: Requester, lock: LockId, asked: Asked): Promise<RevocationOutcome> {
  const { waitMs, signal } = asked;
  const over = new AbortController();
  const timer = requester.ports.clock.setTimer(waitMs, () => over.abort());
  const forget = signal && onAbort(signal, () => over.abort());
  if (signal?.aborted) over.abort();
  const holders = new AskedHolders(asked.version);
  try {
    const states = new LockStates();
    for await (const event of eventsOfLock(requester, lock, { signal: over.signal })) {
      states.apply(event);
      const state = states.get(lock);
      holders.hear(event, state);
      const isHeard = event.revision >= asked.version; // One who tells it may not have heard of the request yet.
      if (isHeard && holders.isSettled(state)) return holders.outcome(state);
    }
    if (signal?.aborted) throw new ServiceError('CANCELED', 'the caller aborted', { cause: signal.reason });
    if (requester.closed) throw new ServiceError('CANCELED', 'the client is closed');
    return waitMs === 0 ? 'declined' : await lastLook(requester, lock, { holders, signal });
  } finally {
    timer.cancel();
    forget?.();
  }
}

async function lastLook(
  requester: Requester,
  lock: LockId,
  { holders, signal }: { readonly holders: AskedHolders; readonly signal: AbortSignal | undefined },
): Promise<RevocationOutcome> {
  const query = { type: 'lock', query: { type: 'show', lock, allKinds: true } } as const;
  try {
    const { result } = await requester.query(query, { timeoutMs: LAST_LOOK_MS, signal });
    if (result.type !== 'lock' || result.result.type !== 'show') return 'declined';
    const { state } = result.result;
    holders.see(state);
    return holders.outcome(state);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'CANCELED') throw error;
    return 'declined'; // Nobody has said that it is free.
  }
}

/**
 * Who was asked for a lock: those who held it then, and who holds it in another way since, together with those who were let in
 * by that (V1 and V3 of `revocation.ts` of the lock layer). The lock says so of the latest request only, so that what becomes
 * of the owners is followed here when somebody else has asked since.
 */
class AskedHolders {
  readonly #revision: number;
  /** Grants up to this version. */
  #version: number;
  /** Of those who were seen to hold it by such a grant, and not to let go. */
  readonly #owners = new Set<string>();

  constructor(revision: number) {
    this.#revision = revision;
    this.#version = revision;
  }

  /** `state`: after the event. */
  hear(event: LockWatchEvent, state: LockState | undefined): void {
    if (event.type === 'released' || event.type === 'expired' || event.type === 'forced') {
      this.#owners.delete(keyOf(event.owner));
    }
    this.see(state);
  }

  see(state: LockState | undefined): void {
    const revocation = state?.revocation;
    if (revocation?.revision === this.#revision) this.#version = revocation.version;
    for (const { owner, version } of state?.holders ?? []) {
      if (version <= this.#version) this.#owners.add(keyOf(owner));
    }
  }

  /** The request is over at the lock, or nobody is left of whom it was asked though somebody else has asked anew. */
  isSettled(state: LockState | undefined): boolean {
    const revocation = state?.revocation;
    if (revocation === undefined) return true;
    return revocation.revision > this.#revision && this.outcome(state) === 'released';
  }

  outcome(state: LockState | undefined): RevocationOutcome {
    const { holders, holderCount } = state ?? { holders: [], holderCount: 0 };
    // A state names the first ones. When they have left, the next ones are told.
    const isNamed = holders.length > 0 || holderCount === 0;
    const isHeld = holders.some(({ owner, version, delayed }) => {
      return !delayed && (version <= this.#version || this.#owners.has(keyOf(owner)));
    });
    return isHeld || !isNamed ? 'declined' : 'released';
  }
}

function keyOf({ session, id }: PublicOwner): string {
  return `${session.lease}.${session.incarnation}.${id}`;
}
