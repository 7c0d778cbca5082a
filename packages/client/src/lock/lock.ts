import type { LockId } from '@remora/lock';
import { checkOptions } from '../options/options.ts';
import { acquireLock, tryAcquireLock } from './acquire-lock.ts';
import type { AcquireOptions } from './acquire-options.ts';
import type { HeldLock } from './held-lock.ts';
import type { LockDeps } from './lock-deps.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from './lock-events.ts';
import { REVOKE_OPTIONS, type RevocationOutcome, type RevokeOptions, revokeLock } from './revoke.ts';
import { type RunArguments, runWithLock } from './run-with-lock.ts';

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
    checkOptions(REVOKE_OPTIONS, options);
    const { requester, requestTimeoutMs: timeoutMs } = this.#deps;
    return revokeLock(requester, this.id, { ...options, timeoutMs });
  }

  /** How it is now and what happens to it, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }
}
