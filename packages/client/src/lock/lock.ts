import type { LockId, SessionRef } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import type { Duration } from '../options/duration.ts';
import { checkOptions } from '../options/known-options.ts';
import type { LeaseOptions } from '../session/dedicated-lease.ts';
import { type RevocationOutcome, type RevokeListener, type RevokeOptions, revokeLock } from '../session/revoke.ts';
import type { Session } from '../session/session.ts';
import type { SessionTerms } from '../session/session-pace.ts';
import type { Requester } from '../transport/requester.ts';
import type { Tracing } from '../transport/tracing.ts';
import { acquireLock, tryAcquireLock } from './acquire-lock.ts';
import type { GrantWatches } from './grant-watch.ts';
import type { HeldLock } from './held-lock.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from './lock-events.ts';
import { type RunArguments, runWithLock } from './run-with-lock.ts';

export interface AcquireOptions extends LeaseOptions {
  /** How long to queue for the lock; without it, as long as it takes. 0: not at all (LOCK_BUSY when it is taken). */
  readonly wait?: Duration | undefined;
  /** Called when somebody asks for the lock: see `HeldLock.onRevoke`. */
  readonly onRevoke?: RevokeListener | undefined;
  /** Gives up when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Shown with the lock to whoever looks at it, at most 4 KiB. Changed by `setData` while it is held. */
  readonly data?: BytesLike | undefined;
  /**
   * The data stay with the lock when it is held no longer, released or lost, for whoever holds it next (`previousData`),
   * and nobody has to hold it for them to be seen. Without `data` the holder's own begin with what was kept; to leave
   * nothing, set them to nothing before the release. Default: no.
   */
  readonly keepData?: boolean | undefined;
  /**
   * The lock-delay, at most 60 s: when the session ends without this lock's release, nobody else is granted it for so long.
   * For work that cannot present `version` and may go on for a while after its time; a change of leader makes it longer.
   * Default: 0.
   */
  readonly lockDelay?: Duration | undefined;
  /**
   * The owner's token, 1 to 128 bytes. By default each acquire has its own, a GUID. With the token of a lock that
   * this session holds, the acquire is a re-entry, up to `depthMax` deep.
   */
  readonly token?: string | undefined;
  /**
   * How deep the owner may re-enter, by its token or by the handle that the acquire returns (`HeldLock.acquire`); 1 turns
   * re-entry off. Default: 1,000.
   */
  readonly depthMax?: number | undefined;
}

/** What locks need of their client. */
export interface LockDeps {
  readonly requester: Requester;
  /** The session that locks belong to; opened when first asked for, and anew after a loss. */
  readonly session: () => Session | Promise<Session>;
  /** Opens a session for one lock alone; without terms, with the TTL of the client's sessions. */
  readonly openLease: (terms: SessionTerms | undefined, lock: LockId) => Promise<Session>;
  /** Goes on with a session of an earlier process. */
  readonly resumeSession: (ref: SessionRef) => Promise<Session>;
  /** Numbers the acquires of this client. */
  readonly nextAttempt: () => number;
  /** Of an owner that no other acquire shares unless its caller says so. */
  readonly newToken: () => string;
  readonly requestTimeoutMs: number;
  readonly grants: GrantWatches;
  readonly tracing: Tracing;
}

/** A lock by name. Making one costs nothing and asks nobody. */
export class Lock {
  readonly id: LockId;
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    this.#deps = deps;
    this.id = id;
  }

  /**
   * Acquires the lock, queueing first come, first served.
   *
   * A lock holds others off by itself only while everybody's clocks and processes behave: pass `version`, the fencing
   * token, to whatever the lock protects, and `signal` to the work done under it.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`; LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted;
   *   SESSION_EXPIRED when the session was lost meanwhile; LOCK_KIND_MISMATCH when the name is in use as a semaphore; LOCK_CANCELED when the lock was granted, and taken away by
   *   force before the grant could arrive; LOCK_DEPTH_EXCEEDED when its `token` has entered as deep as it may; INVALID_ARGUMENT
   *   for options that are none; RESOURCE_EXHAUSTED when there is no room for one more, or the cluster lets nothing in;
   *   UNAVAILABLE, DEADLINE_EXCEEDED or UNKNOWN_OUTCOME when the cluster did not answer. In each case nothing is left behind: a
   *   grant that comes too late is given back.
   */
  acquire(options: AcquireOptions = {}): Promise<HeldLock> {
    return acquireLock(this.#deps, this.id, options);
  }

  /** Acquires the lock if it is free; undefined when it is taken. */
  tryAcquire(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return tryAcquireLock(this.#deps, this.id, options);
  }

  /**
   * Runs `work` while holding the lock, and gives what it gives or throws what it throws. `options` say how to acquire.
   *
   * ```ts
   * await remora.lock('orders/42').run({ wait: '5s' }, ({ version, signal }) => ship(order, { fence: version, signal }));
   * ```
   *
   * A lock that is lost meanwhile aborts `signal`, and ends nothing else: work that must not count then ends by
   * `signal.throwIfAborted()`.
   *
   * @throws ServiceError as `acquire` does; then nothing was run.
   */
  run<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: AcquireOptions) => this.acquire(options), args, this.#deps.requester.ports.logger);
  }

  /**
   * Asks all who hold the lock to let go of it, and waits for what they do: nobody is forced. Who holds it hears of it by
   * `onRevoke`. @throws ServiceError CANCELED when `signal` aborted; INVALID_ARGUMENT.
   */
  async revoke(options: RevokeOptions = {}): Promise<RevocationOutcome> {
    checkOptions('revoke', options);
    const { requester, requestTimeoutMs: timeoutMs } = this.#deps;
    return revokeLock(requester, this.id, { ...options, timeoutMs });
  }

  /** How it is now and what happens to it, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }
}
