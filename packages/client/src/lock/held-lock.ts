import { copyBytes, EMPTY_BYTES, ServiceError } from '@remora/base';
import type { HoldMode, LockId, Owner } from '@remora/lock';
import { type BytesLike, toBytes } from '../kv/keys.ts';
import type { Duration } from '../options/duration.ts';
import { requireFunction } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { DedicatedLease, LockCondition } from '../session/dedicated-lease.ts';
import type { HeldGrant, OwnerTurns } from '../session/owner.ts';
import type { Session } from '../session/session.ts';
import { onAbort } from '../transport/abort.ts';
import { AcquireOperation, type AcquireRequest, type AcquireStats, lockResult } from './acquire.ts';
import { ACQUIRE_CHECKS, type AcquireOptions } from './acquire-options.ts';
import { type Convertible, downgradeHold, UPGRADE_OPTIONS, type UpgradeOptions, upgradeHold } from './conversion.ts';
import { type HeldLockState, type Hold, HoldLiveness } from './hold-liveness.ts';
import type { LockDeps } from './lock-deps.ts';
import { noDedicatedLease, refusalOf, takenAway } from './lock-errors.ts';
import { LockRelease } from './lock-release.ts';
import type { RevokeListener } from './revoke.ts';

/** A re-entry through the handle of a lock that is held. */
export type ReentryOptions = Pick<AcquireOptions, 'depthMax' | 'signal'>;

export const REENTRY_OPTIONS = optionSet<ReentryOptions>('re-entry', {
  ...{ depthMax: ACQUIRE_CHECKS.depthMax, signal: ACQUIRE_CHECKS.signal },
});

/** A lock that this client holds. Give it back by `release`, or by `await using`. */
export class HeldLock implements AsyncDisposable {
  readonly id: LockId;
  /** Identifies the holder among those of its session. */
  readonly token: string;
  /** The wall time of the server at the grant, in ms; for display. */
  readonly lockTimeMs: number;
  /** How the acquire went. */
  readonly stats: AcquireStats;
  /** What an earlier holder left with the lock (`keepData`), as it was at the grant; undefined: nothing. */
  readonly previousData: Uint8Array | undefined;
  readonly #deps: LockDeps;
  readonly #session: Session;
  readonly #owner: Owner;
  readonly #request: AcquireRequest;
  readonly #turns: OwnerTurns;
  readonly #grant: HeldGrant;
  readonly #own: DedicatedLease | undefined;
  readonly #liveness: HoldLiveness;
  readonly #release: LockRelease;
  /** Aborts the upgrades of this handle that wait; made by the first. */
  #upgrades: Set<AbortController> | undefined;

  /** `own`: the session is of this lock alone. */
  constructor(deps: LockDeps, session: Session, hold: Hold) {
    const { request, grant, own } = hold;
    this.#deps = deps;
    this.#session = session;
    this.#request = request;
    this.id = request.lock;
    this.token = request.token;
    this.lockTimeMs = grant.lockTimeMs;
    this.stats = grant.stats;
    this.previousData = grant.keptData && copyBytes(grant.keptData);
    this.#owner = { session: session.ref, token: request.token };
    this.#turns = grant.turns;
    this.#grant = grant.held;
    this.#own = own;
    this.#liveness = new HoldLiveness(deps, session, hold);
    // Field by field: an object put together of others costs several times as much.
    const liveness = this.#liveness;
    const beforeLast = (): void => this.#giveUpUpgrades();
    this.#release = new LockRelease(deps, session, { request, grant, own, liveness, beforeLast });
  }

  /**
   * The fencing version: it grows with every grant of this lock, and with each upgrade and downgrade. Whatever the lock
   * protects should refuse a version below the highest it has seen.
   */
  get version(): number {
    return this.#grant.version;
  }

  /** Alone, together with others who read, or with some of a semaphore's permits. */
  get mode(): HoldMode {
    return this.#grant.mode;
  }

  get state(): HeldLockState {
    return this.#liveness.state;
  }

  /** How often it was acquired through this handle and not released yet. */
  get depth(): number {
    return this.#release.depth;
  }

  /** How long the lock is certain to be held, in ms, if no further heartbeat is answered; `Infinity` if it never expires. */
  get remainingMs(): number {
    return this.#liveness.remainingMs;
  }

  /**
   * Aborts when the lock is lost, with the reason: before another can hold it when the session ends, and as soon as the
   * cluster can tell when somebody took the lock away by force, which nobody waits for. Looking at it checks the
   * deadline too, so that a process that was frozen sees the loss at once.
   */
  get signal(): AbortSignal {
    return this.#liveness.signal;
  }

  /** What another process needs to go on with it, in the same session, when this one has died. */
  get handle(): { lease: string; incarnation: number; token: string; attempt: number } {
    const { lease, incarnation } = this.#session.ref;
    return { lease: lease.toString(16), incarnation, token: this.token, attempt: this.#request.attempt };
  }

  /**
   * Calls `listener` when somebody asks for the lock (`Lock.revoke`). Whoever agrees releases it, at once or when its work
   * allows; to do nothing is to decline. Returns a function that takes the listener off.
   */
  onRevoke(listener: RevokeListener): () => void {
    requireFunction(listener, 'onRevoke');
    return this.#liveness.onRevoke(listener);
  }

  /** Throws the reason when the lock is lost, or LOCK_NOT_HELD after its release. Asks nobody. */
  throwIfLost(): void {
    const refusal = this.#liveness.refusal();
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Asks the cluster whether this grant is still the current one. An answer is about the moment before it: what must
   * happen only under the lock needs the version checked where it happens.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED when the cluster did not answer.
   */
  async check(): Promise<boolean> {
    if (this.#liveness.released || this.state === 'lost') return false;
    const { version } = this;
    const query = { type: 'check', checks: [{ lock: this.id, version }] } as const;
    const { requester, requestTimeoutMs } = this.#deps;
    const { result } = await requester.query({ type: 'lock', query }, { timeoutMs: requestTimeoutMs });
    if (result.type !== 'lock' || result.result.type !== 'check') {
      throw new ServiceError('INTERNAL', `a check was answered by ${result.type}`);
    }
    const current = result.result.current[0] === true;
    // What was asked about may have been held in another way by then.
    if (!current && this.#liveness.isConverted(version)) {
      await this.#turns.idle();
      return this.check();
    }
    if (!current) this.#liveness.lose(takenAway());
    return current && this.#liveness.refusal() === undefined;
  }

  /**
   * Renews now, rather than when it is due; `remainingMs` begins anew. `ttl` changes how long the lock outlives its last
   * renewal from now on, if it has a lease of its own.
   *
   * @throws ServiceError INVALID_ARGUMENT for a `ttl` of a lock that was not acquired with one; SESSION_EXPIRED or
   *   LOCK_NOT_HELD when it is lost; others when the cluster did not answer: `remainingMs` says what is certain.
   */
  async extend(ttl?: Duration): Promise<void> {
    this.throwIfLost();
    if (this.#own !== undefined) await this.#own.extend(ttl);
    else if (ttl !== undefined) throw noDedicatedLease('extend with a ttl');
    else await this.#session.renew(this.#deps.requestTimeoutMs);
    this.throwIfLost();
  }

  /**
   * Changes when the lock is lost that its holder does not renew any more.
   *
   * @throws ServiceError INVALID_ARGUMENT for a condition that leaves no margin, or of a lock that was not acquired with a
   *   `ttl` or `condition`; others as `extend`. Until it is known to be changed, the shorter times count.
   */
  async setCondition(condition: LockCondition): Promise<void> {
    this.throwIfLost();
    if (this.#own === undefined) throw noDedicatedLease('setCondition');
    await this.#own.setCondition(condition);
    this.throwIfLost();
  }

  /**
   * Leaves the lock to its TTL: it is renewed no longer, nobody else has it until then, and this handle is done with it, as
   * after a release. A lock that never expires stays until somebody releases it by force.
   *
   * @throws ServiceError INVALID_ARGUMENT for a lock that was not acquired with a `ttl`: others live by the same session;
   *   INTERNAL when the journal could not be written: the next process may end it then.
   */
  async orphan(): Promise<void> {
    this.throwIfLost();
    if (this.#own === undefined) throw noDedicatedLease('orphan');
    this.#release.leaveBehind();
    await this.#own.leave();
  }

  /**
   * Changes what is shown with the lock, at most 4 KiB; of a lock that is shared, and of permits, what is shown with this
   * holder. With `keepData` it stays with the lock when it is held no longer; no data: nothing stays.
   *
   * @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED when it is lost; INVALID_ARGUMENT when it is too large;
   *   UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer.
   */
  setData(data: BytesLike): Promise<void> {
    return new Promise((resolve, reject) => {
      const bytes = toBytes(data); // Before its turn comes: they are the caller's.
      const { liveness } = this.#deps.requester.ports;
      liveness.hold();
      this.#turns.enter(() => {
        liveness.release(); // The request holds it from here on.
        const refusal = this.#liveness.refusal();
        if (refusal !== undefined) {
          reject(refusal);
          return false;
        }
        this.#say(bytes)
          .finally(() => this.#turns.leave())
          .then(resolve, reject);
        return true;
      });
    });
  }

  async #say(data: Uint8Array): Promise<void> {
    const { requester, requestTimeoutMs } = this.#deps;
    const command = { type: 'setData', lock: this.id, owner: this.#owner, version: this.version, data } as const;
    // What it says must not be said again by it later, after the next one has said something else (W1).
    const options = { timeoutMs: requestTimeoutMs, untilAnswered: true };
    const result = lockResult(await requester.command({ type: 'lock', command }, options));
    if (result.type === 'granted') return;
    const error = refusalOf(result);
    if (error.code === 'LOCK_NOT_HELD') this.#liveness.lose(error);
    throw error;
  }

  /**
   * Enters once more; each entry needs its release. At most as deep as the `depthMax` of this call says, else that of the
   * acquire that returned this handle, else 1,000.
   *
   * @throws ServiceError LOCK_DEPTH_EXCEEDED; CANCELED when `signal` aborted; LOCK_NOT_HELD or SESSION_EXPIRED when it is lost;
   *   UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer: the level is given
   *   back then.
   */
  async acquire(options: ReentryOptions = {}): Promise<this> {
    checkOptions(REENTRY_OPTIONS, options);
    this.throwIfLost();
    const request: AcquireRequest = {
      ...this.#request,
      attempt: this.#deps.nextAttempt(),
      startedMs: this.#deps.requester.ports.clock.monotonicMs(),
      depthMax: options.depthMax ?? this.#request.levelsMax,
      // A level has none of these. Where the lock was taken away, and is free, it is granted anew before that is found out and
      // undone: nothing of that may stay in the place of what was kept since.
      ...{ data: EMPTY_BYTES, keepData: false, delayMs: 0 },
      waitMs: 0,
      signal: options.signal,
      ...(this.mode === 'shared' ? { as: { type: 'shared' } } : {}),
      reentry: {
        grant: this.#grant,
        refusal: () => this.#liveness.refusal(),
        onGrant: () => this.#release.entered(),
      },
    };
    const taken = takenAway();
    const { liveness } = this.#deps.requester.ports;
    liveness.hold();
    try {
      const grant = await new AcquireOperation(this.#deps.requester, this.#session, request).run();
      if (grant === undefined) throw taken;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'LOCK_NOT_HELD' && !this.#liveness.released)
        this.#liveness.lose(error);
      throw error;
    } finally {
      liveness.release();
    }
    return this;
  }

  /**
   * Of a lock that is held shared: has it alone, without letting go in between, once all others who share it are gone.
   * Nobody else is granted it meanwhile. `version` is another one then.
   *
   * @throws ServiceError LOCK_UPGRADE_CONFLICT when another one who shares it waits for its upgrade: one of the two must
   *   release; LOCK_TIMEOUT after `wait`; LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted; LOCK_NOT_HELD or
   *   SESSION_EXPIRED when it is lost; LOCK_KIND_MISMATCH for permits. Unless it is lost it is held shared, as before: that
   *   is asked for when the wait is over, which takes up to `requestTimeout` more while the cluster does not answer.
   */
  async upgrade(options: UpgradeOptions = {}): Promise<this> {
    checkOptions(UPGRADE_OPTIONS, options);
    this.throwIfLost();
    const { signal } = options;
    const stop = new AbortController();
    if (signal?.aborted) stop.abort(signal.reason);
    const forget = signal && onAbort(signal, () => stop.abort(signal.reason));
    this.#upgrades ??= new Set();
    this.#upgrades.add(stop);
    try {
      await upgradeHold(this.#convertible(), { ...options, signal: stop.signal });
    } catch (error) {
      const { reason } = stop.signal;
      throw reason instanceof ServiceError && reason.code === 'LOCK_CANCELED' ? reason : error;
    } finally {
      forget?.();
      this.#upgrades?.delete(stop);
    }
    return this;
  }

  /**
   * Shares the lock with others who read from now on, without letting go in between. `version` is another one then; those
   * who are let in by it have the same.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer:
   *   how it is held is unknown then, so it is lost, and released in the background; LOCK_KIND_MISMATCH for permits;
   *   LOCK_NOT_HELD or SESSION_EXPIRED when it is lost.
   */
  async downgrade(): Promise<this> {
    await downgradeHold(this.#convertible());
    return this;
  }

  #convertible(): Convertible {
    return {
      ...{ deps: this.#deps, session: this.#session, owner: this.#owner, lock: this.id, turns: this.#turns },
      refusal: () => this.#liveness.refusal(),
      isAlone: () => this.#turns.grant === this.#grant && this.mode === 'exclusive',
      lose: (reason) => {
        if (!this.#liveness.released) this.#liveness.lose(reason);
      },
      abandon: (done) => this.#release.abandon(done),
    };
  }

  /**
   * Gives the lock back, or one level of it. Afterwards the next in the queue has it. Once it is lost or released, it
   * does nothing.
   *
   * @throws ServiceError LOCK_NOT_HELD when it had been taken away by force; UNAVAILABLE, DEADLINE_EXCEEDED,
   *   RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer: the release is then tried further in the
   *   background, until it is answered, or the session ends. An upgrade that waits is given up with LOCK_CANCELED by the release of the last level.
   */
  release(): Promise<void> {
    return this.#release.release();
  }

  /** They have the owner's turn while they wait, and whoever lets go would wait for them. */
  #giveUpUpgrades(): void {
    for (const upgrade of this.#upgrades ?? []) {
      upgrade.abort(new ServiceError('LOCK_CANCELED', 'the lock was released while its upgrade waited'));
    }
  }

  /** As `release`; a lock that was taken away needs no release. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      const gone =
        error instanceof ServiceError && (error.code === 'LOCK_NOT_HELD' || error.code === 'SESSION_EXPIRED');
      if (!gone) throw error;
    }
  }
}
