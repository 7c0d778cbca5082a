import type { LockId } from '@remora/lock';
import { acquireLock, tryAcquireLock } from '../lock/acquire-lock.ts';
import type { AcquireOptions } from '../lock/acquire-options.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import type { LockDeps } from '../lock/lock-deps.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from '../lock/lock-events.ts';
import { type RunArguments, runWithLock } from '../lock/run-with-lock.ts';

const READ = { as: { type: 'shared' } } as const;

/**
 * A lock that readers share and a writer has alone, in the order in which they ask: a reader that comes after a writer
 * waits behind it. It is the lock of that name: who writes has it as by `client.lock(name)`.
 */
export class RwLock {
  readonly id: LockId;
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    this.#deps = deps;
    this.id = id;
  }

  /** Acquires it together with others who read. Errors are those of `Lock.acquire`. */
  read(options: AcquireOptions = {}): Promise<HeldLock> {
    return acquireLock(this.#deps, this.id, options, READ);
  }

  /** Acquires it alone. Errors are those of `Lock.acquire`. */
  write(options: AcquireOptions = {}): Promise<HeldLock> {
    return acquireLock(this.#deps, this.id, options);
  }

  /** Undefined when somebody writes, or waits to. */
  tryRead(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return tryAcquireLock(this.#deps, this.id, options, READ);
  }

  /** Undefined when somebody reads or writes. */
  tryWrite(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return tryAcquireLock(this.#deps, this.id, options);
  }

  /** Runs `work` while reading, as `Lock.run` does. */
  runRead<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: AcquireOptions) => this.read(options), args, this.#deps.requester.ports.logger);
  }

  /** Runs `work` while writing, as `Lock.run` does. */
  runWrite<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runWithLock((options: AcquireOptions) => this.write(options), args, this.#deps.requester.ports.logger);
  }

  /** How it is now and what happens to it, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }
}
