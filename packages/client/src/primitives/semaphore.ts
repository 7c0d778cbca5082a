import { ServiceError } from '@remora/base';
import { type LockId, PERMITS_MAX } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import { lockResult } from '../lock/acquire.ts';
import { type AcquireWhat, acquireLock, tryAcquireLock } from '../lock/acquire-lock.ts';
import { ACQUIRE_CHECKS, type AcquireOptions } from '../lock/acquire-options.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import type { LockDeps } from '../lock/lock-deps.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from '../lock/lock-events.ts';
import { lockIdOf, NAMESPACE_CHECKS, type NamespaceOptions } from '../lock/lock-name.ts';
import { type RunArguments, runWithLock } from '../lock/run-with-lock.ts';
import { capacity, permits } from '../options/option-kinds.ts';
import { checkOptions, optionSet, requireCount } from '../options/options.ts';

export interface SemaphoreOptions extends NamespaceOptions {
  /**
   * How many permits there are, 1 to 1,000,000. It counts when nobody uses the semaphore and nobody has set its permits
   * (`setPermits`); otherwise what the cluster knows does.
   */
  readonly permits: number;
}

export const SEMAPHORE_OPTIONS = optionSet<SemaphoreOptions>('semaphore', {
  ...{ ...NAMESPACE_CHECKS, permits: capacity },
});

export interface PermitOptions extends AcquireOptions {
  /** How many; 1 unless given. */
  readonly permits?: number | undefined;
}

export const PERMIT_OPTIONS = optionSet<PermitOptions>('acquire of permits', { ...ACQUIRE_CHECKS, permits });

/** A number of permits that holders have between them. First come, first served, however many each wants. */
export class Semaphore {
  readonly id: LockId;
  readonly #deps: LockDeps;
  readonly #capacity: number;

  /** @throws ServiceError INVALID_ARGUMENT for invalid options. */
  constructor(deps: LockDeps, name: BytesLike, options: SemaphoreOptions) {
    checkOptions(SEMAPHORE_OPTIONS, options);
    capacity(options.permits, 'permits');
    this.#deps = deps;
    this.id = lockIdOf(name, { namespace: options.namespace });
    this.#capacity = options.permits;
  }

  /**
   * Acquires permits, all at once or none. They come back by `release` of what this returns, and with the session.
   *
   * Versions tell holders apart (`check`), and say who came later. They are no fence: holders work side by side, and the
   * version of one may be below that of another.
   *
   * @throws ServiceError LOCK_PERMITS_EXCEEDED when there are not that many in all, or not any more; INVALID_ARGUMENT for
   *   less than one; LOCK_KIND_MISMATCH when the name is in use as a lock; others as `Lock.acquire`.
   */
  async acquire(options: PermitOptions = {}): Promise<HeldLock> {
    checkOptions(PERMIT_OPTIONS, options);
    const { permits: wanted, ...rest } = options;
    return acquireLock(this.#deps, this.id, rest, this.#permits(wanted));
  }

  /** Acquires permits if they are free and nobody waits; otherwise undefined. */
  async tryAcquire(options: Omit<PermitOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    checkOptions(PERMIT_OPTIONS, options);
    const { permits: wanted, ...rest } = options;
    return tryAcquireLock(this.#deps, this.id, rest, this.#permits(wanted));
  }

  /** Runs `work` while holding permits, as `Lock.run` does. */
  run<Result>(...args: RunArguments<PermitOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: PermitOptions) => this.acquire(options), args, this.#deps.requester.ports.logger);
  }

  /**
   * Changes how many permits there are, for all clients, until it is changed again. More permits go to who waits at once;
   * when there are fewer, nobody loses what it holds, and waiters that want more than there are fail with
   * LOCK_PERMITS_EXCEEDED.
   */
  async setPermits(permits: number): Promise<void> {
    await this.#setCapacity(requireCount(permits, 'the permits of a semaphore', { min: 1, max: PERMITS_MAX }));
  }

  /** Forgets what `setPermits` said: who acquires next when nobody uses the semaphore says how many permits there are. */
  async resetPermits(): Promise<void> {
    await this.#setCapacity(0);
  }

  /** How it is now and what happens to it, as an async iterator: see `LockEvents`. */
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
