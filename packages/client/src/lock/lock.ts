import type { LockId } from '@remora/lock';
import { checkOptions } from '../options/options.ts';
import { acquireLock, tryAcquireLock } from './acquire-lock.ts';
import type { AcquireOptions } from './acquire-options.ts';
import type { HeldLock } from './held-lock.ts';
import type { LockDeps } from './lock-deps.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from './lock-events.ts';
import { NamedLock } from './named-lock.ts';
import { REVOKE_OPTIONS, type RevocationOutcome, type RevokeOptions, revokeLock } from './revoke.ts';
import { alone, type RunArguments, runWithLock } from './run-with-lock.ts';

/** A lock by name, made by `RemoraClient.lock`. Making one sends no request. */
export class Lock extends NamedLock {
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    super(id);
    this.#deps = deps;
  }

  /**
   * Acquires the lock exclusively. Waiters are granted the lock in the order in which they joined the queue.
   *
   * A lock alone excludes others only while clocks and processes behave. Pass `version`, the fencing version, to
   * whatever the lock protects, and pass `signal` to the work that is done under the lock.
   *
   * If the call fails, nothing is left behind: a grant that arrives too late is released.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`; LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted or the
   *   client is closed; SESSION_EXPIRED when the session was lost meanwhile; LOCK_KIND_MISMATCH when the name is in use
   *   as a semaphore; LOCK_CANCELED when the granted lock was taken away by force before the grant arrived;
   *   LOCK_DEPTH_EXCEEDED when the owner of `token` has entered as many levels as it may; INVALID_ARGUMENT for invalid
   *   options; RESOURCE_EXHAUSTED when the queue or the cluster is at a limit; UNAVAILABLE, DEADLINE_EXCEEDED or
   *   UNKNOWN_OUTCOME when the cluster did not answer.
   */
  acquire(options: AcquireOptions = {}): Promise<HeldLock> {
    return acquireLock(this.#deps, this.id, options);
  }

  /** Acquires the lock if it is free; returns undefined if it is taken. @throws ServiceError as `acquire`. */
  tryAcquire(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return tryAcquireLock(this.#deps, this.id, options);
  }

  /**
   * Acquires the lock, runs `work`, and releases the lock. Returns the result of `work`, or throws its error.
   *
   * ```ts
   * await remora.lock('orders/42').run({ wait: '5s' }, ({ version, signal }) =>
   *   ship(order, { fence: version, signal }),
   * );
   * ```
   *
   * If the lock is lost meanwhile, `signal` aborts, and `work` goes on: call `signal.throwIfAborted()` where it has to
   * stop.
   *
   * A release that fails does not fail the call: it is logged, retried in the background, and attached as `suppressed`
   * to an error of `work`.
   *
   * @throws ServiceError as `acquire`; `work` was not run then.
   */
  run<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: AcquireOptions) => this.acquire(options), args, this.#deps.requester, alone);
  }

  /**
   * Asks all holders to release the lock (`HeldLock.onRevoke`), and waits for what they do. Nobody is forced: see
   * `Locks.forceRelease` for that.
   *
   * @throws ServiceError CANCELED when `signal` aborted; INVALID_ARGUMENT; UNAVAILABLE, DEADLINE_EXCEEDED,
   *   RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer.
   */
  async revoke(options: RevokeOptions = {}): Promise<RevocationOutcome> {
    checkOptions(REVOKE_OPTIONS, options);
    const { requester, requestTimeoutMs: timeoutMs } = this.#deps;
    return revokeLock(requester, this.id, { ...options, timeoutMs });
  }

  /** The state of the lock and then its changes, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }
}
