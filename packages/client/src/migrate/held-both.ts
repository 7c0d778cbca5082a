import { joinSignals, type ServiceError, safeSpanMs, type Timer } from '@remora/base';
import type { HeldLock } from '../lock/held-lock.ts';
import type { ClientPorts } from '../ports.ts';
import { inTime } from './in-time.ts';
import { lostThere, unanswered } from './migrate-errors.ts';
import type { OtherLock } from './other-locks.ts';

const RENEWALS_PER_TTL = 3;

/**
 * A lock that is held in both systems.
 *
 * HB1. The other system is renewed every third of the TTL. It counts as held until the TTL, less the drift of clocks,
 *      has passed since the last renewal was sent that succeeded.
 * HB2. `signal` aborts when the lock is lost in either system.
 * HB3. The other system is released first: Remora's queue is where services of both kinds wait. If it does not answer
 *      within the TTL, Remora is released all the same.
 */
export class HeldBoth implements AsyncDisposable {
  readonly #held: HeldLock;
  readonly #other: OtherLock;
  readonly #ttlMs: number;
  readonly #ports: ClientPorts;
  readonly #lost = new AbortController();
  readonly #joined: ReturnType<typeof joinSignals>;
  #heldUntilMs: number;
  #renewal: Timer | undefined;
  #deadline: Timer | undefined;
  #releasing: Promise<void> | undefined;

  /** `sentMs`: when the other system was asked, on the monotonic clock. */
  constructor(
    held: HeldLock,
    other: OtherLock,
    terms: { readonly ttlMs: number; readonly sentMs: number; readonly ports: ClientPorts },
  ) {
    this.#held = held;
    this.#other = other;
    this.#ttlMs = terms.ttlMs;
    this.#ports = terms.ports;
    this.#heldUntilMs = terms.sentMs + safeSpanMs(terms.ttlMs);
    this.#joined = joinSignals([held.signal, this.#lost.signal]);
    this.#watchDeadline();
    this.#planRenewal();
  }

  /** @internal */
  get inRemora(): HeldLock {
    return this.#held;
  }

  /**
   * The fencing version, of Remora. It grows with every holder that uses Remora. Holders that use the other system
   * alone have none.
   */
  get version(): number {
    return this.#held.version;
  }

  /** HB2. With the reason. */
  get signal(): AbortSignal {
    return this.#joined.signal;
  }

  /** Throws the reason if the lock is lost in either system. Sends no request. */
  throwIfLost(): void {
    this.#look();
    if (this.#lost.signal.aborted) throw this.#lost.signal.reason;
    this.#held.throwIfLost();
  }

  /**
   * Releases both.
   *
   * @throws ServiceError as `HeldLock.release`, or the error of the other system, where the lock then ends by its TTL.
   */
  release(): Promise<void> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** HB3. */
  async #release(): Promise<void> {
    this.#renewal?.cancel();
    this.#deadline?.cancel();
    this.#joined.letGo();
    const answer = inTime(this.#other.release(), { clock: this.#ports.clock, withinMs: this.#ttlMs, late: unanswered });
    const [there] = await Promise.allSettled([answer]);
    await this.#held[Symbol.asyncDispose]();
    if (there.status === 'rejected') throw there.reason;
  }

  #planRenewal(): void {
    this.#renewal = this.#ports.clock.setTimer(this.#ttlMs / RENEWALS_PER_TTL, () => void this.#renew());
  }

  /** HB1. */
  async #renew(): Promise<void> {
    const sentMs = this.#ports.clock.monotonicMs();
    try {
      const isHeld = await this.#other.renew();
      if (this.#isOver()) return;
      if (!isHeld) return this.#lose('it is held by somebody else, or by nobody');
      this.#heldUntilMs = Math.max(this.#heldUntilMs, sentMs + safeSpanMs(this.#ttlMs));
      this.#watchDeadline();
    } catch (error) {
      if (this.#isOver()) return;
      this.#ports.logger.warn(
        { error: String(error) },
        'a lock could not be renewed in the other system; it is retried',
      );
    }
    this.#planRenewal();
  }

  #watchDeadline(): void {
    this.#deadline?.cancel();
    this.#deadline = this.#ports.clock.setTimer(this.#heldUntilMs - this.#ports.clock.monotonicMs(), () =>
      this.#look(),
    );
  }

  #look(): void {
    if (!this.#isOver() && this.#ports.clock.monotonicMs() >= this.#heldUntilMs)
      this.#lose('no renewal succeeded in time');
  }

  #isOver(): boolean {
    return this.#releasing !== undefined || this.#lost.signal.aborted;
  }

  #lose(why: string): void {
    this.#renewal?.cancel();
    this.#deadline?.cancel();
    const reason: ServiceError = lostThere(why);
    this.#lost.abort(reason);
  }
}
