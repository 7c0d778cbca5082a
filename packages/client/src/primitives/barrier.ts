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
import { bytes, parties } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import { lookingSignal } from '../transport/abort.ts';
import { settledWithin } from '../transport/in-time.ts';
import { ANSWER_GRACE_MS } from '../transport/operation.ts';

/** How long to wait, and when to give up. */
export type BarrierOptions = Pick<AcquireOptions, 'wait' | 'signal'>;

export const BARRIER_OPTIONS = optionSet<BarrierOptions>('waiting at a barrier', WAIT_CHECKS);

/** Who lifts a barrier, and why. */
export type LiftOptions = Pick<ForceReleaseOptions, 'by' | 'reason'>;

export const LIFT_OPTIONS = optionSet<LiftOptions>('lifting a barrier', FORCED_CHECKS);

export interface DoubleBarrierOptions extends NamespaceOptions {
  /** How many wait for one another, 1 to 100,000. */
  readonly parties: number;
}

export const DOUBLE_BARRIER_OPTIONS = optionSet<DoubleBarrierOptions>('doubleBarrier', {
  ...{ ...NAMESPACE_CHECKS, parties },
});

/** How long to wait for the others, when to give up, and what to show with this party meanwhile. */
export type EnterOptions = BarrierOptions & Pick<AcquireOptions, 'data'>;

export const ENTER_OPTIONS = optionSet<EnterOptions>('entering a double barrier', { ...WAIT_CHECKS, data: bytes });

const PASS = { as: { type: 'pass' } } as const;

/**
 * Holds up all who wait at it while somebody holds it, and lets all of them go at once when nobody does any more. It is the
 * lock of that name: whoever holds it has it as by `client.lock(name)`, and it is lifted when its session ends, too.
 */
export class Barrier {
  readonly id: LockId;
  readonly #deps: LockDeps;
  readonly #locks: Locks;

  constructor(deps: LockDeps, id: LockId, locks: Locks) {
    this.#deps = deps;
    this.id = id;
    this.#locks = locks;
  }

  /**
   * Puts the barrier up; it is lifted by the release of what this returns. Without `wait` it does not wait for another one
   * who holds it, but throws LOCK_BUSY; other errors are those of `Lock.acquire`.
   */
  async hold(options: AcquireOptions = {}): Promise<HeldLock> {
    checkOptions(ACQUIRE_OPTIONS, options);
    return acquireLock(this.#deps, this.id, { ...options, wait: options.wait ?? 0 });
  }

  /**
   * Waits until nobody holds the barrier; not at all if nobody does. Whoever waits goes on even if it is put up again before
   * it hears of that.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`, LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted; SESSION_EXPIRED
   *   when the session was lost; others when the cluster did not answer.
   */
  async wait(options: BarrierOptions = {}): Promise<void> {
    checkOptions(BARRIER_OPTIONS, options);
    const passed = await acquireLock(this.#deps, this.id, options, PASS);
    // The cluster remembers that somebody has passed until it says that it knows; if that fails, until its session ends.
    await settledWithin(passed.release(), this.#deps.requester.ports.clock, ANSWER_GRACE_MS);
  }

  /** Lifts it, whoever holds it, who is not asked (`Locks.forceRelease`). False when nobody did. */
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

/** Lets parties begin together, once so many are there, and end together, once all have left. */
export class DoubleBarrier {
  readonly id: LockId;
  readonly #deps: LockDeps;
  readonly #parties: number;

  /** @throws ServiceError INVALID_ARGUMENT for invalid options. */
  constructor(deps: LockDeps, name: BytesLike, options: DoubleBarrierOptions) {
    checkOptions(DOUBLE_BARRIER_OPTIONS, options);
    parties(options.parties, 'parties');
    this.#deps = deps;
    this.id = lockIdOf(name, { namespace: options.namespace });
    this.#parties = options.parties;
  }

  /**
   * Waits until so many have entered, and goes on together with them. More than that may enter, and go on at once.
   *
   * Whoever waits is counted while it does; when it gives up, or its session ends, it is not any more.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`; CANCELED when `signal` aborted; INVALID_ARGUMENT for less than one party;
   *   LOCK_KIND_MISMATCH when the name is in use as a lock or semaphore; others as `Lock.acquire`.
   */
  async enter(options: EnterOptions = {}): Promise<BarrierStay> {
    const as = { type: 'enter', parties: this.#parties } as const;
    checkOptions(ENTER_OPTIONS, options);
    const held = await acquireLock(this.#deps, this.id, options, { as });
    return new BarrierStay(this.#deps, held);
  }
}

/** From entering a double barrier to leaving it. */
export class BarrierStay implements AsyncDisposable {
  readonly #deps: LockDeps;
  readonly #held: HeldLock;
  readonly #left = new AbortController();
  readonly #signal: AbortSignal;
  #leaving: Promise<void> | undefined;

  constructor(deps: LockDeps, held: HeldLock) {
    this.#deps = deps;
    this.#held = held;
    const { signal } = held;
    // Looked at, the one that it is made of checks the deadline.
    this.#signal = lookingSignal(AbortSignal.any([signal, this.#left.signal]), () => void signal.aborted);
  }

  /** Grows with each entry; a number for those who work side by side, and no fence. */
  get version(): number {
    return this.#held.version;
  }

  get state(): HeldLockState {
    return this.#leaving === undefined ? this.#held.state : 'released';
  }

  /** Aborts when this party is not counted any more: its session was lost, it was taken out by force, or it has left. */
  get signal(): AbortSignal {
    void this.#held.signal; // looked at, it checks the deadline
    return this.#signal;
  }

  /**
   * Leaves, and waits until all have left. It has left in any case, also when it does not wait for the others any more.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`, LOCK_BUSY with `wait: 0`: others are still there; CANCELED when `signal`
   *   aborted; the reason when it was lost; others when the cluster did not answer: it leaves with its session at the latest.
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

  /** The wait ends when it says: what is not answered by then is tried further in the background. */
  #inTime(given: Promise<void>): Promise<void> {
    return settledWithin(given, this.#deps.requester.ports.clock, ANSWER_GRACE_MS);
  }

  /** Leaves, and waits for nobody. Who was taken out by force has left. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#leaving !== undefined || this.#held.state === 'lost') return;
    this.#leaving = this.#held[Symbol.asyncDispose]().finally(() => this.#left.abort(hasLeft()));
    await this.#leaving;
  }
}

function hasLeft(): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', 'this party has left the double barrier');
}
