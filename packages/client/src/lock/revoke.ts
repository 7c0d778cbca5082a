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
  /** Why, for people: passed to the holders. At most 256 bytes. */
  readonly reason?: string | undefined;
  /** Who asks: passed to the holders. At most 128 bytes. */
  readonly by?: string | undefined;
  /**
   * How long to wait for the holders; after that the request is void. 0 asks without waiting, and the request is void
   * after 30 s. At most one day. Default 30 s.
   */
  readonly wait?: Duration | undefined;
  /** Stops waiting when it aborts (CANCELED). The request stays in force until its time is over. */
  readonly signal?: AbortSignal | undefined;
}

export const REVOKE_OPTIONS = optionSet<RevokeOptions & NamespaceOptions>('revoke', {
  ...{ ...NAMESPACE_CHECKS, reason: text, by: text, wait: duration, signal: signalCheck },
});

/**
 * `released`: none of the holders that were asked holds the lock any more. `declined`: one of them still held it when
 * the wait was over, or the cluster did not answer. `free`: nobody held it.
 */
export type RevocationOutcome = 'released' | 'declined' | 'free';

/** A request to release a lock, as its holder sees it. */
export interface RevocationRequest {
  /** Who asks; empty if not given. */
  readonly by: string;
  /** Why; empty if not given. */
  readonly reason: string;
  /** The wall time of the server at the request, in ms since 1970; for display only. */
  readonly sinceMs: number;
}

/** Called for each request to release the lock: see `HeldLock.onRevoke`. */
export type RevokeListener = (request: RevocationRequest) => void | Promise<void>;

const WAIT_DEFAULT_MS = 30_000;
/** For one last read of the lock when the wait is over. */
const LAST_LOOK_MS = 1_000;

/** Asks all holders of a lock to release it, and waits for what they do. */
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
  // Sending the request is part of the wait. If that fails, the holders may or may not have been asked.
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
 * Follows the events of the lock. The end of the request at the lock does not mean that its holders have released: its
 * time may have passed there first, or another request may have replaced it. If no events arrive, because the gateway
 * is cut off from the ranges, the lock is read once when the wait is over.
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
      const isHeard = event.revision >= asked.version; // An earlier state does not know of the request yet.
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
    return 'declined'; // Nobody has confirmed that the lock is free.
  }
}

/**
 * The holders that a request was addressed to: those who held the lock then, and those who hold it by a conversion
 * since, with those that a downgrade let in (V1 and V3 of `revocation.ts` of the lock layer). The lock knows that for
 * the latest request only, so this class follows the owners when another request has come since.
 */
class AskedHolders {
  readonly #revision: number;
  /** Grants up to this version. */
  #version: number;
  /** Owners that were seen to hold the lock by such a grant, and not to release it. */
  readonly #owners = new Set<string>();

  constructor(revision: number) {
    this.#revision = revision;
    this.#version = revision;
  }

  /** `state`: the one after the event. */
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

  /**
   * The request is over at the lock, or another one has replaced it and none of the holders that were asked is left.
   */
  isSettled(state: LockState | undefined): boolean {
    const revocation = state?.revocation;
    if (revocation === undefined) return true;
    return revocation.revision > this.#revision && this.outcome(state) === 'released';
  }

  outcome(state: LockState | undefined): RevocationOutcome {
    const { holders, holderCount } = state ?? { holders: [], holderCount: 0 };
    // A state names only the first holders, so one without any name says nothing about the others.
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
