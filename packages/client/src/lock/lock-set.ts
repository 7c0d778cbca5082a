import { ServiceError } from '@remora/base';
import { durationMs } from '../options/duration.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import { inTime, settledWithin } from '../transport/in-time.ts';
import { ANSWER_GRACE_MS } from '../transport/operation.ts';
import { acquireLock } from './acquire-lock.ts';
import { ACQUIRE_CHECKS, type AcquireOptions } from './acquire-options.ts';
import type { HeldLock } from './held-lock.ts';
import { HeldLocks, inReverse, ofLock } from './held-locks.ts';
import { type LockChoice, type LockPlan, planLocks, type WantedLock } from './lock-choice.ts';
import type { LockDeps } from './lock-deps.ts';
import { Locks } from './locks.ts';
import { type RunArguments, runWithLock } from './run-with-lock.ts';

/** The options of `Lock.acquire`, without those of re-entry: each lock of a set has a token of its own. */
export type AcquireAllOptions = Omit<AcquireOptions, 'token' | 'depthMax'>;

const { token: _, depthMax: __, ...ACQUIRE_ALL_CHECKS } = ACQUIRE_CHECKS;
export const ACQUIRE_ALL_OPTIONS = optionSet<AcquireAllOptions>('acquire of a set', ACQUIRE_ALL_CHECKS);

/**
 * Several locks, all or none, wherever in the cluster they are. Made by `lockAll`, without a request.
 *
 * LS1. All clients acquire in the order of (namespace, name), so two sets cannot wait for each other. A caller that
 *      holds other locks besides is outside of that order, and should limit its `wait`.
 * LS2. One deadline covers all locks. If one of them fails, those that were acquired before are released.
 * LS3. After the last grant the versions of all locks are checked. So there was a moment at which all were held, even
 *      if one had been taken away by force while the acquire waited for others.
 */
export class LockSet {
  readonly #deps: LockDeps;
  readonly #plan: LockPlan;
  readonly #locks: Locks;

  constructor(deps: LockDeps, choices: readonly LockChoice[]) {
    this.#deps = deps;
    this.#plan = planLocks(choices);
    this.#locks = new Locks(deps.requester, deps.requestTimeoutMs);
  }

  /**
   * Acquires all of them. If the call fails, none of them is held afterwards.
   *
   * @throws ServiceError as `Lock.acquire`, for the first lock that was not granted (`details.lock` names it):
   *   LOCK_TIMEOUT when not all were granted within `wait`; LOCK_BUSY with `wait: 0`; LOCK_NOT_HELD when one was taken
   *   away by force before all were held.
   */
  async acquire(options: AcquireAllOptions = {}): Promise<HeldLocks> {
    checkOptions(ACQUIRE_ALL_OPTIONS, options);
    const held: HeldLock[] = [];
    try {
      const waitLeft = this.#countdown(options);
      for (const wanted of this.#plan.wanted) held.push(await this.#acquireOne(wanted, options, waitLeft));
      const all = new HeldLocks(held, { places: this.#plan.places, checks: this.#locks });
      await this.#requireAll(all, waitLeft());
      return all;
    } catch (error) {
      // The wait is over: releases that are not answered soon are retried in the background.
      await settledWithin(this.#releaseAll(held), this.#deps.requester.ports.clock, ANSWER_GRACE_MS);
      throw error;
    }
  }

  /** Acquires them if all are free; returns undefined if any is taken. */
  async tryAcquire(options: Omit<AcquireAllOptions, 'wait'> = {}): Promise<HeldLocks | undefined> {
    checkOptions(ACQUIRE_ALL_OPTIONS, options);
    try {
      return await this.acquire({ ...options, wait: 0 });
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'LOCK_BUSY') return undefined;
      throw error;
    }
  }

  /** Acquires all, runs `work`, and releases them, as `Lock.run`; the handle has `versions` in place of `version`. */
  run<Result>(...args: RunArguments<AcquireAllOptions, HeldLocks, Result>): Promise<Result> {
    return runWithLock(
      (options: AcquireAllOptions) => this.acquire(options),
      args,
      this.#deps.requester,
      ({ locks }) => locks,
    );
  }

  /** LS2. Returns a function that returns the remaining wait. */
  #countdown({ wait }: AcquireAllOptions): () => number | undefined {
    if (wait === undefined) return () => undefined;
    const waitMs = durationMs(wait, 'wait');
    const { clock } = this.#deps.requester.ports;
    const endsMs = clock.monotonicMs() + waitMs;
    return () => {
      const leftMs = Math.max(0, endsMs - clock.monotonicMs());
      if (leftMs === 0 && waitMs > 0) throw notInTime();
      return leftMs;
    };
  }

  async #acquireOne(
    { id, as }: WantedLock,
    options: AcquireAllOptions,
    waitLeft: () => number | undefined,
  ): Promise<HeldLock> {
    try {
      const wait = waitLeft();
      return await acquireLock(this.#deps, id, { ...options, wait }, as && { as });
    } catch (error) {
      throw ofLock(error, id.name);
    }
  }

  /** LS3. */
  async #requireAll(all: HeldLocks, leftMs: number | undefined): Promise<void> {
    const { clock } = this.#deps.requester.ports;
    const reason = (): ServiceError => notInTime();
    if (await inTime(all.check(), { clock, ms: leftMs || undefined, reason })) return;
    all.throwIfLost();
    throw new ServiceError('LOCK_NOT_HELD', 'one of the locks was taken away before all were held');
  }

  /** LS2. A release that is not answered is retried in the background until it is, or the session ends. */
  async #releaseAll(held: readonly HeldLock[]): Promise<void> {
    try {
      await inReverse(held, (lock) => lock[Symbol.asyncDispose]());
    } catch (error) {
      const { logger } = this.#deps.requester.ports;
      logger.warn(
        { error: String(error) },
        'not all locks of a set were granted, and one of them could not be released yet; the client retries',
      );
    }
  }
}

function notInTime(): ServiceError {
  return new ServiceError('LOCK_TIMEOUT', 'not all locks were granted within the wait');
}
