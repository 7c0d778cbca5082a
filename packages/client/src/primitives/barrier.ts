import { ServiceError } from '@remora/base';
import type { LockId } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import { acquireLock } from '../lock/acquire-lock.ts';
import { ACQUIRE_OPTIONS, type AcquireOptions, WAIT_CHECKS } from '../lock/acquire-options.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import type { HeldLockState } from '../lock/hold-liveness.ts';
import type { LockDeps } from '../lock/lock-deps.ts';
import { lockIdOf, NAMESPACE_CHECKS, type NamespaceOptions } from '../lock/lock-name.ts';
import { FORCED_CHECKS, type ForceReleaseOptions, type Locks } from '../lock/locks.ts';
import { NamedLock } from '../lock/named-lock.ts';
import { bytes, parties } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import { lookingSignal } from '../transport/abort.ts';
import { settledWithin } from '../transport/in-time.ts';
import { ANSWER_GRACE_MS } from '../transport/operation.ts';
import { Printable } from '../values/printable.ts';

/** `wait`: how long to wait, by default as long as it takes. `signal`: gives up when it aborts. */
export type BarrierOptions = Pick<AcquireOptions, 'wait' | 'signal'>;

export const BARRIER_OPTIONS = optionSet<BarrierOptions>('waiting at a barrier', WAIT_CHECKS);

/** Who lifts a barrier, and why. */
export type LiftOptions = Pick<ForceReleaseOptions, 'by' | 'reason'>;

export const LIFT_OPTIONS = optionSet<LiftOptions>('lifting a barrier', FORCED_CHECKS);

export interface DoubleBarrierOptions extends NamespaceOptions {
  /** How many parties wait for one another, 1 to 100,000. */
  readonly parties: number;
}

export const DOUBLE_BARRIER_OPTIONS = optionSet<DoubleBarrierOptions>('doubleBarrier', {
  ...{ ...NAMESPACE_CHECKS, parties },
});

/** As `BarrierOptions`; `data` are shown with this party, at most 4 KiB. */
export type EnterOptions = BarrierOptions & Pick<AcquireOptions, 'data'>;

export const ENTER_OPTIONS = optionSet<EnterOptions>('entering a double barrier', { ...WAIT_CHECKS, data: bytes });

const PASS = { as: { type: 'pass' } } as const;

/**
 * A barrier: while somebody holds it, waiters wait; once nobody holds it, all of them pass at the same time. It is the
 * same lock as `client.lock(name)`, so the end of the holder's session lifts it too.
 */
export class Barrier extends NamedLock {
  readonly #deps: LockDeps;
  readonly #locks: Locks;

  constructor(deps: LockDeps, id: LockId, locks: Locks) {
    super(id);
    this.#deps = deps;
    this.#locks = locks;
  }

  /**
   * Holds the barrier, until the returned handle is released. Does not wait for another holder by default: LOCK_BUSY.
   *
   * @throws ServiceError as `Lock.acquire`.
   */
  async hold(options: AcquireOptions = {}): Promise<HeldLock> {
    checkOptions(ACQUIRE_OPTIONS, options);
    return acquireLock(this.#deps, this.id, { ...options, wait: options.wait ?? 0 });
  }

  /**
   * Waits until nobody holds the barrier; returns at once if nobody does. A waiter that has passed returns, even if the
   * barrier is held again before its answer arrives.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`; LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted;
   *   SESSION_EXPIRED when the session was lost; UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME
   *   when the cluster did not answer.
   */
  async wait(options: BarrierOptions = {}): Promise<void> {
    checkOptions(BARRIER_OPTIONS, options);
    const passed = await acquireLock(this.#deps, this.id, options, PASS);
    // The cluster remembers that this owner has passed until the owner confirms it, or until its session ends (B4).
    await settledWithin(passed.release(), this.#deps.requester.ports.clock, ANSWER_GRACE_MS);
  }

  /**
   * Takes the barrier from its holder by force, without asking (`Locks.forceRelease`). Returns false if nobody held it.
   */
  async lift(options: LiftOptions = {}): Promise<boolean> {
    checkOptions(LIFT_OPTIONS, options);
    const { namespace, name } = this.id;
    try {
      await this.#locks.forceRelease(name, { namespace, ...options });
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'LOCK_NOT_HELD') return false;
      throw error;
    }
  }
}

/** A double barrier: parties begin together, once enough of them have entered, and end together, once all have left. */
export class DoubleBarrier extends NamedLock {
  readonly #deps: LockDeps;
  readonly #parties: number;

  /** @throws ServiceError INVALID_ARGUMENT for invalid options. */
  constructor(deps: LockDeps, name: BytesLike, options: DoubleBarrierOptions) {
    checkOptions(DOUBLE_BARRIER_OPTIONS, options);
    parties(options.parties, 'parties');
    super(lockIdOf(name, { namespace: options.namespace }));
    this.#deps = deps;
    this.#parties = options.parties;
  }

  /**
   * Enters, and waits until enough parties have entered. Further parties may enter after that, and return at once.
   *
   * A party counts from the moment it enters, until it leaves, gives up, or its session ends.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`; CANCELED when `signal` aborted; INVALID_ARGUMENT for less than one
   *   party; LOCK_KIND_MISMATCH when the name is in use as a lock or a semaphore; the others of `Lock.acquire`.
   */
  async enter(options: EnterOptions = {}): Promise<BarrierStay> {
    const as = { type: 'enter', parties: this.#parties } as const;
    checkOptions(ENTER_OPTIONS, options);
    const held = await acquireLock(this.#deps, this.id, options, { as });
    return new BarrierStay(this.#deps, held);
  }
}

/** A party's stay in a double barrier, from entering to leaving. Leave it with `leave`, `release` or `await using`. */
export class BarrierStay extends Printable implements AsyncDisposable {
  readonly #deps: LockDeps;
  readonly #held: HeldLock;
  readonly #left = new AbortController();
  readonly #signal: AbortSignal;
  #leaving: Promise<void> | undefined;

  constructor(deps: LockDeps, held: HeldLock) {
    super();
    this.#deps = deps;
    this.#held = held;
    const { signal } = held;
    // Reading the signal of the hold checks the deadline.
    this.#signal = lookingSignal(AbortSignal.any([signal, this.#left.signal]), () => void signal.aborted);
  }

  /** The name of the barrier, as text. */
  get name(): string {
    return this.#held.name;
  }

  /** Grows with each entry. It is not a fencing version: the parties work at the same time. */
  get version(): number {
    return this.#held.version;
  }

  /** As `HeldLock.state`; `released` once the party leaves. */
  get state(): HeldLockState {
    return this.#leaving === undefined ? this.#held.state : 'released';
  }

  /** Aborts when this party no longer counts: its session was lost, it was removed by force, or it has left. */
  get signal(): AbortSignal {
    void this.#held.signal; // Reading it checks the deadline.
    return this.#signal;
  }

  /**
   * Leaves, and waits until all parties have left. The party has left even if the call fails, at the latest when its
   * session ends.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`, or LOCK_BUSY with `wait: 0`, while other parties are still there;
   *   CANCELED when `signal` aborted; the reason when the party was lost; UNAVAILABLE, DEADLINE_EXCEEDED,
   *   RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer.
   */
  async leave(options: BarrierOptions = {}): Promise<void> {
    checkOptions(BARRIER_OPTIONS, options);
    this.#leaving ??= this.#leave(options);
    return this.#leaving;
  }

  async #leave(options: BarrierOptions): Promise<void> {
    const held = this.#held;
    held.throwIfLost();
    try {
      const passed = await acquireLock(this.#deps, held.id, { ...options, token: held.token }, PASS);
      await this.#inTime(passed.release());
    } finally {
      await this.#inTime(held[Symbol.asyncDispose]());
      this.#left.abort(hasLeft());
    }
  }

  /** The wait is over: a release that is not answered soon is retried in the background. */
  #inTime(given: Promise<void>): Promise<void> {
    return settledWithin(given, this.#deps.requester.ports.clock, ANSWER_GRACE_MS);
  }

  /** Its name, its version and its state. */
  toJSON(): object {
    const { name, version, state } = this;
    return { namespace: this.#held.id.namespace, name, version, state };
  }

  /** Leaves, without waiting for the others. Does nothing once the party has left or is lost. */
  async release(): Promise<void> {
    if (this.#leaving !== undefined || this.#held.state === 'lost') return;
    this.#leaving = this.#held[Symbol.asyncDispose]().finally(() => this.#left.abort(hasLeft()));
    await this.#leaving;
  }

  /** As `release`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

function hasLeft(): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', 'this party has left the double barrier');
}
