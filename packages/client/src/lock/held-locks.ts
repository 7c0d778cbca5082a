import { ServiceError } from '@remora/base';
import { lookingSignal, onAbort } from '../transport/abort.ts';
import type { HeldLock } from './held-lock.ts';
import type { HeldLockState } from './hold-liveness.ts';
import type { Locks } from './locks.ts';

/** Several locks that this client holds together. Give them back by `release`, or by `await using`. */
export class HeldLocks implements AsyncDisposable {
  /** One for each that was asked for, in that order; for a lock that was asked for twice the same one twice. */
  readonly locks: readonly HeldLock[];
  /** Each once, in the order of acquiring. */
  readonly #held: readonly HeldLock[];
  readonly #checks: Pick<Locks, 'check'>;
  #controller: AbortController | undefined;
  #forget: readonly (() => void)[] = [];
  #released = false;

  constructor(
    held: readonly HeldLock[],
    options: { readonly places: readonly number[]; readonly checks: Pick<Locks, 'check'> },
  ) {
    this.#held = held;
    this.#checks = options.checks;
    this.locks = options.places.flatMap((place) => held[place] ?? []);
  }

  /** The fencing versions, one for each lock that was asked for, in that order. */
  get versions(): readonly number[] {
    return this.locks.map(({ version }) => version);
  }

  /** `lost` when any of them is, `suspended` when none is lost and heartbeats are not answered at the moment. */
  get state(): HeldLockState {
    if (this.#released) return 'released';
    const states = this.#held.map(({ state }) => state);
    const worst = (['lost', 'released', 'suspended'] as const).find((state) => states.includes(state));
    return worst ?? 'active';
  }

  /** How long all of them are certain to be held, in ms, if no further heartbeat is answered. */
  get remainingMs(): number {
    return Math.min(...this.#held.map(({ remainingMs }) => remainingMs));
  }

  /** Aborts when any of them is lost, as `HeldLock.signal` does, with the reason of the first. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#forget = this.#held.map(({ signal }) => onAbort(signal, () => controller.abort(signal.reason)));
      lookingSignal(controller.signal, () => {
        if (!this.#released) this.#look(controller);
      });
    }
    this.#look(this.#controller);
    return this.#controller.signal;
  }

  /** Looking at each checks its deadline; one that was lost before anybody looked tells no listener. */
  #look(controller: AbortController): void {
    const lost = this.#held.map(({ signal }) => signal).find(({ aborted }) => aborted);
    if (lost !== undefined) controller.abort(lost.reason);
  }

  /** Throws the reason when any of them is lost, or LOCK_NOT_HELD after its release. Asks nobody. */
  throwIfLost(): void {
    for (const lock of this.#held) lock.throwIfLost();
  }

  /** Asks the cluster whether all of these grants are still the current ones, with one question. */
  async check(): Promise<boolean> {
    if (this.#isOver()) return false;
    const current = await this.#checks.check(this.#held.map(({ id, version }) => ({ ...id, version })));
    // What was asked about may have been upgraded or downgraded by then, or taken away: the lock itself knows.
    const unsure = this.#held.filter((_, at) => current[at] !== true);
    const answers = await Promise.all(unsure.map((lock) => lock.check()));
    // An answer is about the moment before it: by now they may be lost, or given back.
    return answers.every((held) => held) && !this.#isOver();
  }

  #isOver(): boolean {
    const { state } = this;
    return state === 'lost' || state === 'released';
  }

  /**
   * Gives all of them back, the last one first. Once they are lost or released, it does nothing.
   *
   * @throws ServiceError as `HeldLock.release` of the first that failed; the others are released all the same.
   */
  async release(): Promise<void> {
    await this.#giveBack((lock) => lock.release());
  }

  /** As `release`; a lock that was taken away needs no release. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#giveBack((lock) => lock[Symbol.asyncDispose]());
  }

  async #giveBack(release: (lock: HeldLock) => Promise<void>): Promise<void> {
    this.#released = true;
    for (const forget of this.#forget) forget();
    this.#forget = [];
    await inReverse(this.#held, release);
  }
}

/** Begins with the last one and waits for all together: a cluster that does not answer costs one time-out, not one each. */
export async function inReverse(held: readonly HeldLock[], release: (lock: HeldLock) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled([...held].reverse().map(release));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** Of a lock in a set that was not granted: says which one. */
export function ofLock(error: unknown, name: Uint8Array): unknown {
  if (!(error instanceof ServiceError)) return error;
  const details = { ...error.details, lock: Buffer.from(name).toString() };
  return new ServiceError(error.code, `${error.message} (lock ${JSON.stringify(details.lock)})`, {
    details,
    cause: error,
  });
}
