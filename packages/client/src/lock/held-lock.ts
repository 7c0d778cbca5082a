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
import { Printable } from '../values/printable.ts';
import { AcquireOperation, type AcquireRequest, type AcquireStats, lockResult } from './acquire.ts';
import { ACQUIRE_CHECKS, type AcquireOptions } from './acquire-options.ts';
import { type Convertible, downgradeHold, UPGRADE_OPTIONS, type UpgradeOptions, upgradeHold } from './conversion.ts';
import { type HeldLockState, type Hold, HoldLiveness } from './hold-liveness.ts';
import type { LockDeps } from './lock-deps.ts';
import { noDedicatedLease, refusalOf, takenAway } from './lock-errors.ts';
import { LockRelease } from './lock-release.ts';
import { nameText } from './named-lock.ts';
import type { RevokeListener } from './revoke.ts';

/** How to re-enter a lock through its handle: `depthMax` limits the levels, `signal` gives up. */
export type ReentryOptions = Pick<AcquireOptions, 'depthMax' | 'signal'>;

export const REENTRY_OPTIONS = optionSet<ReentryOptions>('re-entry', {
  ...{ depthMax: ACQUIRE_CHECKS.depthMax, signal: ACQUIRE_CHECKS.signal },
});

/** A lock, a share of one, or permits that this client holds. Release it with `release`, or with `await using`. */
export class HeldLock extends Printable implements AsyncDisposable {
  /** The namespace and the name of the lock. */
  readonly id: LockId;
  /** Identifies the owner within its session. Keep it secret: it lets others release the lock. */
  readonly token: string;
  /** The wall time of the server at the grant, in ms since 1970; for display only. */
  readonly lockTimeMs: number;
  /** How the acquire went. */
  readonly stats: AcquireStats;
  /**
   * The data that an earlier holder left with the lock (`keepData`), as of the grant; undefined when there were none.
   */
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

  constructor(deps: LockDeps, session: Session, hold: Hold) {
    super();
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
    // Field by field: spreading objects costs several times as much.
    const liveness = this.#liveness;
    const beforeLast = (): void => this.#giveUpUpgrades();
    this.#release = new LockRelease(deps, session, { request, grant, own, liveness, beforeLast });
  }

  /** The name of the lock, as text; `id.name` has its bytes. */
  get name(): string {
    return nameText(this.id);
  }

  /**
   * The fencing version. It grows with every grant of this lock, and with each upgrade and downgrade. Pass it to
   * whatever the lock protects, which should refuse a version below the highest one that it has seen.
   */
  get version(): number {
    return this.#grant.version;
  }

  /** `exclusive`, `shared` (with other readers), or `permits` (of a semaphore). */
  get mode(): HoldMode {
    return this.#grant.mode;
  }

  /**
   * `active`: held. `suspended`: held, but heartbeats are not answered at the moment. `lost`: no longer held, or no
   * longer certain to be held. `released`: released through this handle.
   */
  get state(): HeldLockState {
    return this.#liveness.state;
  }

  /** How many levels this handle has entered and not released. */
  get depth(): number {
    return this.#release.depth;
  }

  /**
   * How long the lock is certain to be held if no further heartbeat is answered, in ms; `Infinity` if it never expires.
   */
  get remainingMs(): number {
    return this.#liveness.remainingMs;
  }

  /**
   * Aborts when the lock is lost, with the reason. When the session expires, it aborts before anybody else can hold the
   * lock. When somebody takes the lock by force, it aborts as soon as this client hears of that, which may be later
   * than the next grant. Reading the signal checks the deadline too, so a process that was frozen sees the loss at
   * once.
   */
  get signal(): AbortSignal {
    return this.#liveness.signal;
  }

  /**
   * What another process needs to continue holding the lock, in the same session, after this process has died. Plain
   * JSON.
   */
  get handle(): { lease: string; incarnation: number; token: string; attempt: number } {
    const { lease, incarnation } = this.#session.ref;
    return { lease: lease.toString(16), incarnation, token: this.token, attempt: this.#request.attempt };
  }

  /** Its name, its version, how it is held and its state. The token, a secret, is not in it. */
  toJSON(): object {
    const { name, version, mode, state } = this;
    return { namespace: this.id.namespace, name, version, mode, state };
  }

  /**
   * Calls `listener` when somebody asks the holder to release the lock (`Lock.revoke`). To agree, release the lock, at
   * once or when the work allows it; to decline, do nothing. An error of the listener is logged and counts as
   * declining. Returns a function that removes the listener.
   */
  onRevoke(listener: RevokeListener): () => void {
    requireFunction(listener, 'onRevoke');
    return this.#liveness.onRevoke(listener);
  }

  /** Throws the reason if the lock is lost, or LOCK_NOT_HELD after its release. Sends no request. */
  throwIfLost(): void {
    const refusal = this.#liveness.refusal();
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Asks the cluster whether this grant still holds the lock. The answer is about a moment before it arrives: to be
   * safe, let whatever the lock protects check `version`.
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
    // An upgrade or downgrade may have changed the version meanwhile.
    if (!current && this.#liveness.isConverted(version)) {
      await this.#turns.idle();
      return this.check();
    }
    if (!current) this.#liveness.lose(takenAway());
    return current && this.#liveness.refusal() === undefined;
  }

  /**
   * Renews the lock now, before a renewal is due, so that `remainingMs` starts again. `ttl` changes how long the lock
   * outlives its last renewal from now on; it needs a lock with a lease of its own.
   *
   * @throws ServiceError INVALID_ARGUMENT for a `ttl` if the lock has a condition, or was not acquired with `ttl` or
   *   `maxHold`; SESSION_EXPIRED or LOCK_NOT_HELD when it is lost; DEADLINE_EXCEEDED, UNAVAILABLE, RESOURCE_EXHAUSTED
   *   or UNKNOWN_OUTCOME when the cluster did not answer: `remainingMs` then says how long the lock is certain to be
   *   held.
   */
  async extend(ttl?: Duration): Promise<void> {
    this.throwIfLost();
    if (this.#own !== undefined) await this.#own.extend(ttl);
    else if (ttl !== undefined) throw noDedicatedLease('extend with a ttl');
    else await this.#session.renew(this.#deps.requestTimeoutMs);
    this.throwIfLost();
  }

  /**
   * Changes the condition under which the cluster frees the lock when heartbeats stay away. Until the cluster has
   * confirmed the change, the shorter of the old and the new times apply.
   *
   * @throws ServiceError INVALID_ARGUMENT for a condition that leaves no margin, or if the lock was not acquired with
   *   `ttl`, `maxHold` or `condition`; the others of `extend`.
   */
  async setCondition(condition: LockCondition): Promise<void> {
    this.throwIfLost();
    if (this.#own === undefined) throw noDedicatedLease('setCondition');
    await this.#own.setCondition(condition);
    this.throwIfLost();
  }

  /**
   * Leaves the lock to its TTL: it is no longer renewed, nobody else gets it until the TTL has passed, and this handle
   * is done with it as after a release. A lock that never expires stays held until it is released by force.
   *
   * @throws ServiceError INVALID_ARGUMENT if the lock shares its session with others (acquire it with a `ttl`);
   *   INTERNAL when the journal could not be written: the next process may then release the lock.
   */
  async orphan(): Promise<void> {
    this.throwIfLost();
    if (this.#own === undefined) throw noDedicatedLease('orphan');
    this.#release.leaveBehind();
    await this.#own.leave();
  }

  /**
   * Changes the data that are shown with this holder, at most 4 KiB. With `keepData` they stay with the lock when it is
   * no longer held; empty data then leave nothing behind.
   *
   * @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED when the lock is lost; INVALID_ARGUMENT when the data are too
   *   large; UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer.
   */
  setData(data: BytesLike): Promise<void> {
    return new Promise((resolve, reject) => {
      const bytes = toBytes(data); // Copied before its turn comes: the bytes belong to the caller.
      const { liveness } = this.#deps.requester.ports;
      liveness.hold();
      this.#turns.enter(() => {
        liveness.release(); // The request keeps the process alive from here on.
        const refusal = this.#liveness.refusal();
        if (refusal !== undefined) {
          reject(refusal);
          return false;
        }
        this.#sendData(bytes)
          .finally(() => this.#turns.leave())
          .then(resolve, reject);
        return true;
      });
    });
  }

  async #sendData(data: Uint8Array): Promise<void> {
    const { requester, requestTimeoutMs } = this.#deps;
    const command = { type: 'setData', lock: this.id, owner: this.#owner, version: this.version, data } as const;
    // A late copy of this command must not overwrite the data of the next one (W1).
    const options = { timeoutMs: requestTimeoutMs, untilAnswered: true };
    const result = lockResult(await requester.command({ type: 'lock', command }, options));
    if (result.type === 'granted') return;
    const error = refusalOf(result);
    if (error.code === 'LOCK_NOT_HELD') this.#liveness.lose(error);
    throw error;
  }

  /**
   * Enters the lock once more; each entry needs a release of its own. The number of levels is limited by `depthMax` of
   * this call, otherwise by that of the acquire that returned this handle, otherwise by 1,000.
   *
   * @throws ServiceError LOCK_DEPTH_EXCEEDED; CANCELED when `signal` aborted; LOCK_NOT_HELD or SESSION_EXPIRED when the
   *   lock is lost; UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not
   *   answer: the level is released in the background then.
   */
  async acquire(options: ReentryOptions = {}): Promise<this> {
    checkOptions(REENTRY_OPTIONS, options);
    this.throwIfLost();
    const request: AcquireRequest = {
      ...this.#request,
      attempt: this.#deps.nextAttempt(),
      startedMs: this.#deps.requester.ports.clock.monotonicMs(),
      depthMax: options.depthMax ?? this.#request.levelsMax,
      // A level has no data and no delay of its own. If the lock was taken away and is free, this grants it again,
      // until that is noticed and undone: that grant must not replace data that were kept meanwhile.
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
   * Turns a shared hold into an exclusive one, without releasing the lock in between. Waits until all other readers
   * have released it; nobody else is granted the lock meanwhile. `version` changes.
   *
   * @throws ServiceError LOCK_UPGRADE_CONFLICT when another reader waits for its upgrade: one of the two has to
   *   release; LOCK_TIMEOUT after `wait`; LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted; LOCK_CANCELED when
   *   the lock was released meanwhile; LOCK_NOT_HELD or SESSION_EXPIRED when it is lost; LOCK_KIND_MISMATCH for
   *   permits. Unless the lock is lost, it is still held shared: confirming that takes up to `requestTimeout` longer
   *   while the cluster does not answer.
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
   * Turns an exclusive hold into a shared one, without releasing the lock in between. `version` changes; readers that
   * this lets in have the same version.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not
   *   answer: it is then unknown how the lock is held, so it counts as lost and is released in the background;
   *   LOCK_KIND_MISMATCH for permits; LOCK_NOT_HELD or SESSION_EXPIRED when the lock is lost.
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
   * Releases the lock, or one level of it. After the last level the next waiter gets the lock, and an upgrade of this
   * handle that still waits ends with LOCK_CANCELED. Does nothing once the lock is released or lost.
   *
   * @throws ServiceError LOCK_NOT_HELD when the lock had been taken away by force; UNAVAILABLE, DEADLINE_EXCEEDED,
   *   RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer: the client then retries the release of the
   *   last level in the background until it is answered or the session ends.
   */
  release(): Promise<void> {
    return this.#release.release();
  }

  /** An upgrade that waits has the owner's turn: the release would wait for it. */
  #giveUpUpgrades(): void {
    for (const upgrade of this.#upgrades ?? []) {
      upgrade.abort(new ServiceError('LOCK_CANCELED', 'the lock was released while its upgrade waited'));
    }
  }

  /** As `release`, but does not throw when the lock was already taken away or its session has ended. */
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
