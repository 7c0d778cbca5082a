import { ServiceError } from '@remora/base';
import { lookingSignal, onAbort } from '../transport/abort.ts';
import { Printable } from '../values/printable.ts';
import type { HeldLock } from './held-lock.ts';
import type { HeldLockState } from './hold-liveness.ts';
import type { Locks } from './locks.ts';

/** Several locks that this client holds together. Release them with `release`, or with `await using`. */
export class HeldLocks extends Printable implements AsyncDisposable {
  /**
   * One handle for each choice, in the order of the choices. A lock that was chosen twice has one handle, which appears
   * twice.
   */
  readonly locks: readonly HeldLock[];
  /** Each lock once, in the order in which they were acquired. */
  readonly #held: readonly HeldLock[];
  readonly #checks: Pick<Locks, 'check'>;
  #controller: AbortController | undefined;
  #forget: readonly (() => void)[] = [];
  #released = false;

  constructor(
    held: readonly HeldLock[],
    options: { readonly places: readonly number[]; readonly checks: Pick<Locks, 'check'> },
  ) {
    super();
    this.#held = held;
    this.#checks = options.checks;
    this.locks = options.places.flatMap((place) => held[place] ?? []);
  }

  /** The fencing versions, one for each choice, in the order of the choices. */
  get versions(): readonly number[] {
    return this.locks.map(({ version }) => version);
  }

  /**
   * `lost` if any of them is lost, otherwise `released` or `suspended` if any is, otherwise `active`; see
   * `HeldLock.state`.
   */
  get state(): HeldLockState {
    if (this.#released) return 'released';
    const states = this.#held.map(({ state }) => state);
    const worst = (['lost', 'released', 'suspended'] as const).find((state) => states.includes(state));
    return worst ?? 'active';
  }

  /** Their names, versions and states. */
  toJSON(): object {
    return { locks: this.locks.map((lock) => lock.toJSON()), state: this.state };
  }

  /** How long all of them are certain to be held if no further heartbeat is answered, in ms. */
  get remainingMs(): number {
    return Math.min(...this.#held.map(({ remainingMs }) => remainingMs));
  }

  /** Aborts when any of them is lost, with the reason of the first one; see `HeldLock.signal`. */
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

  /** Reading each signal checks its deadline. A lock that was lost before that calls no listener. */
  #look(controller: AbortController): void {
    const lost = this.#held.map(({ signal }) => signal).find(({ aborted }) => aborted);
    if (lost !== undefined) controller.abort(lost.reason);
  }

  /** Throws the reason if any of them is lost, or LOCK_NOT_HELD after a release. Sends no request. */
  throwIfLost(): void {
    for (const lock of this.#held) lock.throwIfLost();
  }

  /** Asks the cluster, in one request, whether all of these grants still hold their locks; see `HeldLock.check`. */
  async check(): Promise<boolean> {
    if (this.#isOver()) return false;
    const current = await this.#checks.check(this.#held.map(({ id, version }) => ({ ...id, version })));
    // A lock may have been converted meanwhile, which changes its version: its own check tells that from a loss.
    const unsure = this.#held.filter((_, at) => current[at] !== true);
    const answers = await Promise.all(unsure.map((lock) => lock.check()));
    // They may have been lost or released since the answer was given.
    return answers.every((held) => held) && !this.#isOver();
  }

  #isOver(): boolean {
    const { state } = this;
    return state === 'lost' || state === 'released';
  }

  /**
   * Releases all of them, the last one first. Does nothing once they are released or lost.
   *
   * @throws ServiceError the error of the first release that failed, see `HeldLock.release`; the others are released
   *   all the same.
   */
  async release(): Promise<void> {
    await this.#giveBack((lock) => lock.release());
  }

  /** As `release`, but does not throw for locks that were already taken away or whose session has ended. */
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

/**
 * Starts with the last one and waits for all at once: a cluster that does not answer costs one time-out, not one for
 * each.
 */
export async function inReverse(held: readonly HeldLock[], release: (lock: HeldLock) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled([...held].reverse().map(release));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** Adds to an error which lock of a set was not granted. */
export function ofLock(error: unknown, name: Uint8Array): unknown {
  if (!(error instanceof ServiceError)) return error;
  const details = { ...error.details, lock: Buffer.from(name).toString() };
  return new ServiceError(error.code, `${error.message} (lock ${JSON.stringify(details.lock)})`, {
    details,
    cause: error,
  });
}
