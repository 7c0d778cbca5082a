import type { LockId } from '@remora/lock';
import { acquireLock, tryAcquireLock } from '../lock/acquire-lock.ts';
import type { AcquireOptions } from '../lock/acquire-options.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import type { LockDeps } from '../lock/lock-deps.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from '../lock/lock-events.ts';
import { NamedLock } from '../lock/named-lock.ts';
import { alone, type RunArguments, runWithLock } from '../lock/run-with-lock.ts';

const READ = { as: { type: 'shared' } } as const;

/**
 * A lock that any number of readers share, or one writer holds exclusively. They are granted it in the order in which
 * they asked: a reader that comes after a waiting writer waits behind it. A writer holds the same lock as
 * `client.lock(name)`.
 */
export class RwLock extends NamedLock {
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    super(id);
    this.#deps = deps;
  }

  /** Acquires the lock shared, together with other readers. @throws ServiceError as `Lock.acquire`. */
  read(options: AcquireOptions = {}): Promise<HeldLock> {
    return acquireLock(this.#deps, this.id, options, READ);
  }

  /** Acquires the lock exclusively. @throws ServiceError as `Lock.acquire`. */
  write(options: AcquireOptions = {}): Promise<HeldLock> {
    return acquireLock(this.#deps, this.id, options);
  }

  /** As `read`, without waiting: returns undefined when a writer holds the lock or waits for it. */
  tryRead(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return tryAcquireLock(this.#deps, this.id, options, READ);
  }

  /** As `write`, without waiting: returns undefined when somebody holds the lock. */
  tryWrite(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return tryAcquireLock(this.#deps, this.id, options);
  }

  /** Acquires the lock shared, runs `work`, and releases it, as `Lock.run`. */
  runRead<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: AcquireOptions) => this.read(options), args, this.#deps.requester, alone);
  }

  /** Acquires the lock exclusively, runs `work`, and releases it, as `Lock.run`. */
  runWrite<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: AcquireOptions) => this.write(options), args, this.#deps.requester, alone);
  }

  /** The state of the lock and then its changes, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }
}
