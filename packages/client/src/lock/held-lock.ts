import { copyBytes, EMPTY_BYTES, ServiceError } from '@remora/base';
import type { HoldMode, LockId, LockResult, Owner } from '@remora/lock';
import type { Command } from '@remora/protocol';
import { type BytesLike, toBytes } from '../kv/keys.ts';
import type { Duration } from '../options/duration.ts';
import { requireFunction } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { DedicatedLease, LockCondition } from '../session/dedicated-lease.ts';
import type { HeldGrant, Owner as OwnerTurns } from '../session/owner.ts';
import type { Session } from '../session/session.ts';
import { onAbort } from '../transport/abort.ts';
import { clientClosed } from '../transport/request-errors.ts';
import { retryUntilAnswered } from '../transport/retry-until-answered.ts';
import { AcquireOperation, type AcquireRequest, type AcquireStats, lockAnswer, lockResult } from './acquire.ts';
import { ACQUIRE_CHECKS, type AcquireOptions } from './acquire-options.ts';
import { type Convertible, downgradeHold, UPGRADE_OPTIONS, type UpgradeOptions, upgradeHold } from './conversion.ts';
import { type HeldLockState, type Hold, HoldLiveness } from './hold-liveness.ts';
import type { LockDeps } from './lock-deps.ts';
import { noOwnLease, refusalOf, takenAway } from './lock-errors.ts';
import type { RevokeListener } from './revoke.ts';

/** Any time but 0 in a release: the gateway leaves a mark that stops an asking that is still under way. */
const LEAVE_MARK = 1;

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
  readonly #life: HoldLiveness;
  #depth = 1;
  /** Levels of it that are about to be left, and wait for their turn. */
  #leaving = 0;
  /** What gives up an upgrade of this handle that waits. */
  readonly #upgrades = new Set<AbortController>();

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
    this.#life = new HoldLiveness(deps, session, hold);
    // Others would wait for the lock-delay if it ended with its session.
    if (request.delayMs > 0) this.#life.beforeClose(() => this.#releaseAsClosed());
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
    return this.#life.state;
  }

  /** How often it was acquired through this handle and not released yet. */
  get depth(): number {
    return this.#depth;
  }

  /** How long the lock is certain to be held, in ms, if no further heartbeat is answered; `Infinity` if it never expires. */
  get remainingMs(): number {
    return this.#life.remainingMs;
  }

  /**
   * Aborts when the lock is lost, with the reason: before another can hold it when the session ends, and as soon as the
   * cluster can tell when somebody took the lock away by force, which nobody waits for. Looking at it checks the
   * deadline too, so that a process that was frozen sees the loss at once.
   */
  get signal(): AbortSignal {
    return this.#life.signal;
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
    return this.#life.onRevoke(listener);
  }

  /** Throws the reason when the lock is lost, or LOCK_NOT_HELD after its release. Asks nobody. */
  throwIfLost(): void {
    const refusal = this.#life.refusal();
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Asks the cluster whether this grant is still the current one. An answer is about the moment before it: what must
   * happen only under the lock needs the version checked where it happens.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED when the cluster did not answer.
   */
  async check(): Promise<boolean> {
    if (this.#life.released || this.state === 'lost') return false;
    const { version } = this;
    const query = { type: 'check', checks: [{ lock: this.id, version }] } as const;
    const { requester, requestTimeoutMs } = this.#deps;
    const { result } = await requester.query({ type: 'lock', query }, { timeoutMs: requestTimeoutMs });
    if (result.type !== 'lock' || result.result.type !== 'check') {
      throw new ServiceError('INTERNAL', `a check was answered by ${result.type}`);
    }
    const current = result.result.current[0] === true;
    // What was asked about may have been held in another way by then.
    if (!current && this.#life.isConverted(version)) {
      await this.#untilIdle();
      return this.check();
    }
    if (!current) this.#life.lose(takenAway());
    return current && this.#life.refusal() === undefined;
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
    else if (ttl !== undefined) throw noOwnLease('a ttl');
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
    if (this.#own === undefined) throw noOwnLease('a condition');
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
    if (this.#own === undefined) throw noOwnLease('a ttl to be left to');
    this.#depth = 0;
    this.#life.release();
    this.#life.givenBack();
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
        const refusal = this.#life.refusal();
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
    if (error.code === 'LOCK_NOT_HELD') this.#life.lose(error);
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
        refusal: () => this.#life.refusal(),
        onGrant: () => {
          this.#depth++;
        },
      },
    };
    const taken = takenAway();
    const { liveness } = this.#deps.requester.ports;
    liveness.hold();
    try {
      const grant = await new AcquireOperation(this.#deps.requester, this.#session, request).run();
      if (grant === undefined) throw taken;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'LOCK_NOT_HELD' && !this.#life.released)
        this.#life.lose(error);
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
    this.#upgrades.add(stop);
    try {
      await upgradeHold(this.#convertible(), { ...options, signal: stop.signal });
    } catch (error) {
      const { reason } = stop.signal;
      throw reason instanceof ServiceError && reason.code === 'LOCK_CANCELED' ? reason : error;
    } finally {
      forget?.();
      this.#upgrades.delete(stop);
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
      refusal: () => this.#life.refusal(),
      isAlone: () => this.#turns.grant === this.#grant && this.mode === 'exclusive',
      lose: (reason) => {
        if (!this.#life.released) this.#life.lose(reason);
      },
      abandon: (done) => this.#abandon(done),
    };
  }

  /**
   * How it is held cannot be told any more: it is used no longer, and given back. That takes its owner's turn, as any release
   * (owner.ts, W1): what the owner acquires next would be taken from it otherwise.
   */
  #abandon(done: () => void): void {
    const { requester } = this.#deps;
    this.#life.lose(new ServiceError('UNKNOWN_OUTCOME', 'how the lock is held is not known, so it is used no longer'));
    const end = (): void => {
      this.#own?.end();
      done();
    };
    if (!this.#needsRelease || requester.closed) return end();
    retryUntilAnswered({ requester, session: this.#session }, this.#releaseAll(), end);
  }

  /** The end of a lease of its own gives it back as well; but others would wait for its lock-delay then. */
  get #needsRelease(): boolean {
    return this.#own === undefined || this.#request.delayMs > 0;
  }

  #releaseAll(): Command {
    const { attempt } = this.#turns;
    const release = { lock: this.id, owner: this.#owner, all: true, deadlineMs: LEAVE_MARK, attempt };
    return { type: 'lock', command: { type: 'release', ...release } };
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
    if (this.#depth <= ++this.#leaving) this.#giveUpUpgrades();
    return new Promise((resolve, reject) => {
      const { liveness } = this.#deps.requester.ports;
      liveness.hold(); // Also until its turn comes.
      const done = (error: ServiceError | undefined): void => {
        liveness.release();
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#turns.enter(() => {
        this.#leaving--;
        if (this.#life.isOver) {
          // It may be lost here, and nobody else's yet.
          this.#own?.end();
          done(undefined);
          return false;
        }
        if (this.#turns.grant !== this.#grant) {
          this.#life.lose(takenAway());
          done(this.#life.lossReason);
          return false;
        }
        this.#leaveLevel(done);
        return true;
      });
    });
  }

  /** They have the owner's turn while they wait, and whoever lets go would wait for them. */
  #giveUpUpgrades(): void {
    for (const upgrade of this.#upgrades) {
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

  /** S9 of `session.ts`: what gives it back, and others that end with it, is on its way when its holder hears of that. */
  async #releaseAsClosed(): Promise<void> {
    if (this.#depth > 0) this.#life.takeBack(clientClosed());
    const released = this.#releaseLevels();
    await undefined; // Those others.
    this.#deps.requester.gateways.flush();
    this.#life.tellTakenBack();
    await released;
  }

  async #releaseLevels(): Promise<void> {
    while (this.#depth > 0 && !this.#life.isOver) await this.release();
    await this.#untilIdle(); // Whoever released it before may still wait for the answer.
  }

  /** Until whatever is under way in its owner's name is answered. */
  #untilIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#turns.enter(() => {
        resolve();
        return false;
      });
    });
  }

  /** Keeps the owner's turn until the release is answered or can no longer be applied (owner.ts, W1). */
  #leaveLevel(done: (error: ServiceError | undefined) => void): void {
    const { requester, requestTimeoutMs: timeoutMs } = this.#deps;
    const turns = this.#turns;
    this.#depth--;
    turns.levels--;
    const isLast = this.#depth === 0;
    if (isLast) this.#life.release();
    const leave = (): void => {
      if (isLast) this.#life.givenBack();
      turns.leave();
    };
    const all = turns.levels <= 0;
    const deadlineMs = turns.askedAgain ? LEAVE_MARK : 0;
    const { id: lock } = this;
    const release = { type: 'release', lock, owner: this.#owner, all, deadlineMs, attempt: turns.attempt } as const;
    const command: Command = { type: 'lock', command: release };
    requester.sendCommand(command, { timeoutMs }, (error, reply) => {
      const answer = error ?? lockAnswer(reply);
      const end = (): void => {
        leave();
        if (all) this.#own?.end();
      };
      // All levels may be released again without harm; so that others need not wait for the session's end.
      const again = answer instanceof ServiceError && all && this.#needsRelease && !requester.closed;
      if (again) retryUntilAnswered({ requester, session: this.#session }, command, end);
      else end();
      done(answer instanceof ServiceError ? answer : this.#refusedRelease(answer));
    });
  }

  #refusedRelease(result: LockResult): ServiceError | undefined {
    if (result.type !== 'refused') return undefined;
    // That another owner has it by now says the same of this grant.
    const error = result.code === 'LOCK_WRONG_OWNER' ? takenAway() : refusalOf(result);
    this.#life.lose(error);
    return error;
  }
}
