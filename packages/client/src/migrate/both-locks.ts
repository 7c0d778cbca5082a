import { randomGuid } from '@remora/base';
import type { RemoraClient } from '../client.ts';
import { requesterOf } from '../client-requester.ts';
import { aborted } from '../lock/acquire.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import { type RunArguments, runWithLock } from '../lock/run-with-lock.ts';
import { type Duration, durationMs, ttlMsOf } from '../options/duration.ts';
import { callback, duration, signal, ttl } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { ClientPorts } from '../ports.ts';
import type { Requester } from '../transport/requester.ts';
import { HeldBoth } from './held-both.ts';
import { inTime } from './in-time.ts';
import { notAClient, notAtOnce, notInTime, requireCalls, unanswered } from './migrate-errors.ts';
import type { OtherLock, OtherLocks } from './other-locks.ts';

export interface BothLocksOptions {
  /** How long a lock of the other system outlives its last renewal. Default 10 s. */
  readonly ttl?: Duration | undefined;
  /** How often the other system is asked while the lock is taken there. Default 100 ms. */
  readonly poll?: Duration | undefined;
  /** What a lock is called in the other system. Default: as in Remora. */
  readonly otherName?: ((name: string) => string) | undefined;
}

export const BOTH_LOCKS_OPTIONS = optionSet<BothLocksOptions>('locks in both systems', {
  ...{ ttl, poll: duration, otherName: callback },
});

export interface BothOptions {
  /** How long to wait for both. 0 does not wait. Default: as long as it takes. */
  readonly wait?: Duration | undefined;
  /** Gives up the acquire when it aborts (CANCELED). */
  readonly signal?: AbortSignal | undefined;
}

export const BOTH_OPTIONS = optionSet<BothOptions>('acquire in both systems', { wait: duration, signal });

const TTL_MS = 10_000;
const POLL_MS = 100;

/**
 * Locks that are held in Remora and in another system at once. Services that hold both exclude services that use either
 * one alone.
 *
 * BL1. Remora comes first: its queue orders the services that hold both, so that only one of them asks the other
 *      system.
 * BL2. All that hold both take them in this order, and all others take one: nobody waits in a circle.
 * BL3. An answer of the other system is of no use after the TTL. A call that it does not answer until then rejects, and
 *      a lock that it grants later is released.
 */
export class BothLocks {
  readonly #remora: RemoraClient;
  readonly #other: OtherLocks;
  readonly #requester: Requester;
  readonly #ports: ClientPorts;
  readonly #ttlMs: number;
  readonly #pollMs: number;
  readonly #otherName: (name: string) => string;

  constructor(remora: RemoraClient, other: OtherLocks, options: BothLocksOptions = {}) {
    checkOptions(BOTH_LOCKS_OPTIONS, options);
    const requester = requesterOf(remora);
    if (requester === undefined) throw notAClient('new BothLocks');
    requireCalls('new BothLocks', 'locks of another system', other, ['tryAcquire']);
    this.#remora = remora;
    this.#other = other;
    this.#requester = requester;
    this.#ports = requester.ports;
    this.#ttlMs = ttlMsOf(options.ttl ?? TTL_MS, 'ttl');
    this.#pollMs = Math.max(1, durationMs(options.poll ?? POLL_MS, 'poll'));
    this.#otherName = options.otherName ?? ((name) => name);
  }

  /**
   * Acquires the lock in both systems. If the call fails, it is held in neither.
   *
   * @throws ServiceError as `Lock.acquire`; the error of the other system, if that fails.
   */
  async acquire(name: string, options: BothOptions = {}): Promise<HeldBoth> {
    checkOptions(BOTH_OPTIONS, options);
    const { clock } = this.#ports;
    const waitMs = options.wait === undefined ? undefined : durationMs(options.wait, 'wait');
    const endsMs = waitMs === undefined ? undefined : clock.monotonicMs() + waitMs;
    const held = await this.#remora.lock(name, { reentrant: false }).acquire(options);
    try {
      return await this.#acquireOther(held, this.#otherName(name), { waitMs, endsMs, signal: options.signal });
    } catch (error) {
      await held[Symbol.asyncDispose]().catch(() => {}); // The client goes on trying.
      throw error;
    }
  }

  /** Acquires both, runs `work`, and releases both, as `Lock.run`. @throws ServiceError as `acquire`. */
  run<Result>(name: string, ...args: RunArguments<BothOptions, HeldBoth, Result>): Promise<Result> {
    const acquire = (options: BothOptions) => this.acquire(name, options);
    const locksOf = (both: HeldBoth) => [both.inRemora];
    return runWithLock(acquire, args, this.#requester, locksOf);
  }

  async #acquireOther(held: HeldLock, name: string, until: Until): Promise<HeldBoth> {
    const { clock } = this.#ports;
    for (;;) {
      if (until.signal?.aborted) throw aborted(until.signal);
      held.throwIfLost();
      const sentMs = clock.monotonicMs();
      const other = await this.#askOther(name, until);
      if (other !== undefined) return this.#both(held, other, sentMs);
      if (until.waitMs === 0) throw notAtOnce(name);
      if (until.endsMs !== undefined && clock.monotonicMs() >= until.endsMs) throw notInTime(name);
      await this.#pause(until.endsMs);
    }
  }

  /** BL3. */
  async #askOther(name: string, { waitMs, endsMs, signal }: Until): Promise<OtherLock | undefined> {
    const { clock, random } = this.#ports;
    const waitsMs = waitMs === 0 || endsMs === undefined ? this.#ttlMs : endsMs - clock.monotonicMs();
    const asked = this.#other.tryAcquire(name, { ttlMs: this.#ttlMs, owner: randomGuid(random) });
    try {
      if (waitsMs >= this.#ttlMs)
        return await inTime(asked, { clock, withinMs: this.#ttlMs, signal, late: unanswered });
      return await inTime(asked, { clock, withinMs: waitsMs, signal, late: () => notInTime(name) });
    } catch (error) {
      asked.then((late) => late?.release()).catch(() => {}); // It ends by its TTL otherwise.
      throw error;
    }
  }

  async #both(held: HeldLock, other: OtherLock, sentMs: number): Promise<HeldBoth> {
    const both = new HeldBoth(held, other, { ttlMs: this.#ttlMs, sentMs, ports: this.#ports });
    try {
      both.throwIfLost(); // The answer of the other system may have taken long.
      return both;
    } catch (error) {
      await both.release().catch(() => {});
      throw error;
    }
  }

  #pause(endsMs = Number.POSITIVE_INFINITY): Promise<void> {
    const { clock } = this.#ports;
    return new Promise((resolve) => {
      clock.setTimer(Math.min(this.#pollMs, Math.max(0, endsMs - clock.monotonicMs())), resolve);
    });
  }
}

interface Until {
  readonly waitMs: number | undefined;
  readonly endsMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}
