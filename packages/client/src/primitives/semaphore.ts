import { ServiceError } from '@remora/base';
import { PERMITS_MAX } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import { lockResult } from '../lock/acquire.ts';
import { type AcquireWhat, acquireLock, tryAcquireLock } from '../lock/acquire-lock.ts';
import { ACQUIRE_CHECKS, type AcquireOptions } from '../lock/acquire-options.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import type { LockDeps } from '../lock/lock-deps.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from '../lock/lock-events.ts';
import { lockIdOf, NAMESPACE_CHECKS, type NamespaceOptions } from '../lock/lock-name.ts';
import { NamedLock } from '../lock/named-lock.ts';
import { alone, type RunArguments, runWithLock } from '../lock/run-with-lock.ts';
import { capacity, permits } from '../options/option-kinds.ts';
import { checkOptions, optionSet, requireCount } from '../options/options.ts';

export interface SemaphoreOptions extends NamespaceOptions {
  /**
   * How many permits there are, 1 to 1,000,000. This applies when nobody uses the semaphore and nobody has called
   * `setPermits`; otherwise the number that the cluster knows applies.
   */
  readonly permits: number;
}

export const SEMAPHORE_OPTIONS = optionSet<SemaphoreOptions>('semaphore', {
  ...{ ...NAMESPACE_CHECKS, permits: capacity },
});

export interface PermitOptions extends AcquireOptions {
  /** How many permits to acquire, all at once. Default 1. */
  readonly permits?: number | undefined;
}

export const PERMIT_OPTIONS = optionSet<PermitOptions>('acquire of permits', { ...ACQUIRE_CHECKS, permits });

/**
 * A semaphore: its holders together have at most a given number of permits. Waiters are granted permits in the order in
 * which they joined the queue, however many each wants.
 */
export class Semaphore extends NamedLock {
  readonly #deps: LockDeps;
  readonly #capacity: number;

  /** @throws ServiceError INVALID_ARGUMENT for invalid options. */
  constructor(deps: LockDeps, name: BytesLike, options: SemaphoreOptions) {
    checkOptions(SEMAPHORE_OPTIONS, options);
    capacity(options.permits, 'permits');
    super(lockIdOf(name, { namespace: options.namespace }));
    this.#deps = deps;
    this.#capacity = options.permits;
  }

  /**
   * Acquires permits, all at once or none. `release` of the returned handle gives them back, as does the end of the
   * session.
   *
   * `version` identifies a holder (`check`), and later holders have higher ones. It is not a fencing version: holders
   * work at the same time, so one with a lower version is not stale.
   *
   * @throws ServiceError LOCK_PERMITS_EXCEEDED when the semaphore does not have that many permits in all;
   *   INVALID_ARGUMENT for less than one; LOCK_KIND_MISMATCH when the name is in use as a lock; the others of
   *   `Lock.acquire`.
   */
  async acquire(options: PermitOptions = {}): Promise<HeldLock> {
    checkOptions(PERMIT_OPTIONS, options);
    const { permits: wanted, ...rest } = options;
    return acquireLock(this.#deps, this.id, rest, this.#permits(wanted));
  }

  /** Acquires permits if they are free and nobody waits; returns undefined otherwise. */
  async tryAcquire(options: Omit<PermitOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    checkOptions(PERMIT_OPTIONS, options);
    const { permits: wanted, ...rest } = options;
    return tryAcquireLock(this.#deps, this.id, rest, this.#permits(wanted));
  }

  /** Acquires permits, runs `work`, and releases them, as `Lock.run`. */
  run<Result>(...args: RunArguments<PermitOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: PermitOptions) => this.acquire(options), args, this.#deps.requester, alone);
  }

  /**
   * Changes how many permits there are, for all clients, until it is changed again. Additional permits go to waiters at
   * once. When there are fewer, no holder loses a permit, and waiters that want more than there are in all fail with
   * LOCK_PERMITS_EXCEEDED.
   *
   * @throws ServiceError INVALID_ARGUMENT; LOCK_KIND_MISMATCH when the name is in use as a lock; UNAVAILABLE,
   *   DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer.
   */
  async setPermits(permits: number): Promise<void> {
    await this.#setCapacity(requireCount(permits, 'the permits of a semaphore', { min: 1, max: PERMITS_MAX }));
  }

  /** Undoes `setPermits`: the `permits` of the first client that uses the semaphore after it was unused apply again. */
  async resetPermits(): Promise<void> {
    await this.#setCapacity(0);
  }

  /** The state of the semaphore and then its changes, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }

  #permits(wanted = 1): AcquireWhat {
    return { as: { type: 'permits', permits: wanted, capacity: this.#capacity } };
  }

  async #setCapacity(permitsMax: number): Promise<void> {
    const { requester, requestTimeoutMs } = this.#deps;
    const command = { type: 'setCapacity', lock: this.id, capacity: permitsMax } as const;
    const result = lockResult(await requester.command({ type: 'lock', command }, { timeoutMs: requestTimeoutMs }));
    if (result.type === 'refused') throw new ServiceError(result.code, result.message);
  }
}
