/**
 * How a holder gives a lock back: level by level, or all levels at once.
 *
 * RL1. A release takes its owner's turn, and keeps it until it is answered or can no longer be applied (W1 of
 *      `owner.ts`): it would otherwise release what the owner is granted next.
 * RL2. A release of all levels that is not answered is retried until it is, or until the session ends. It can be
 *      applied twice without harm. A release of one level cannot, and is sent under one request id only.
 * RL3. A lock with a lease of its own is released by the end of that lease. With a lock-delay the release comes first:
 *      others would wait for the delay if the lock ended with its session.
 */
import { ServiceError } from '@remora/base';
import type { LockResult } from '@remora/lock';
import type { Command } from '@remora/protocol';
import type { DedicatedLease } from '../session/dedicated-lease.ts';
import type { HeldGrant, OwnerTurns } from '../session/owner.ts';
import type { Session } from '../session/session.ts';
import { clientClosed } from '../transport/request-errors.ts';
import { retryUntilAnswered } from '../transport/retry-until-answered.ts';
import { lockAnswer } from './acquire.ts';
import type { Hold, HoldLiveness } from './hold-liveness.ts';
import type { LockDeps } from './lock-deps.ts';
import { refusalOf, takenAway } from './lock-errors.ts';

/** Any time but 0 in a release: the gateway leaves a mark, which stops an acquire that is still in flight (M3). */
const LEAVE_MARK = 1;

export interface ReleasedHold extends Hold {
  readonly liveness: HoldLiveness;
  /** Called before the release of the last level waits for its turn. */
  readonly beforeLast: () => void;
}

export class LockRelease {
  readonly #deps: LockDeps;
  readonly #session: Session;
  readonly #turns: OwnerTurns;
  readonly #grant: HeldGrant;
  readonly #own: DedicatedLease | undefined;
  readonly #delayMs: number;
  readonly #liveness: HoldLiveness;
  readonly #beforeLast: () => void;
  #depth = 1;
  /** Levels whose release waits for its turn. */
  #leaving = 0;

  constructor(deps: LockDeps, session: Session, { request, grant, own, liveness, beforeLast }: ReleasedHold) {
    this.#deps = deps;
    this.#session = session;
    this.#turns = grant.turns;
    this.#grant = grant.held;
    this.#own = own;
    this.#delayMs = request.delayMs;
    this.#liveness = liveness;
    this.#beforeLast = beforeLast;
    if (this.#delayMs > 0) liveness.beforeClose(() => this.#releaseAsClosed()); // RL3
  }

  /** Levels that were entered through the handle and not left. */
  get depth(): number {
    return this.#depth;
  }

  entered(): void {
    this.#depth++;
  }

  /** The lock stays with its lease, and the handle is done with it. */
  leaveBehind(): void {
    this.#depth = 0;
    this.#liveness.release();
    this.#liveness.givenBack();
  }

  /** Releases one level. @throws ServiceError as `HeldLock.release`. */
  release(): Promise<void> {
    if (this.#depth <= ++this.#leaving) this.#beforeLast();
    return new Promise((resolve, reject) => {
      const { liveness } = this.#deps.requester.ports;
      liveness.hold(); // Also until its turn comes.
      const done = (error: ServiceError | undefined): void => {
        liveness.release();
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#turns.enter(() => this.#takeTurn(done));
    });
  }

  /** RL1. Returns whether it keeps the turn. */
  #takeTurn(done: (error: ServiceError | undefined) => void): boolean {
    this.#leaving--;
    this.#session.check();
    if (this.#liveness.isOver) {
      // It may be lost for this client, and still be held at the server.
      this.#own?.end();
      done(undefined);
      return false;
    }
    if (this.#turns.grant !== this.#grant) {
      this.#liveness.lose(takenAway());
      done(this.#liveness.lossReason);
      return false;
    }
    this.#leaveLevel(done);
    return true;
  }

  #leaveLevel(done: (error: ServiceError | undefined) => void): void {
    const { requester, requestTimeoutMs: timeoutMs } = this.#deps;
    const turns = this.#turns;
    this.#depth--;
    turns.levels--;
    const isLast = this.#depth === 0;
    if (isLast) this.#liveness.release();
    const leave = (): void => {
      if (isLast) this.#liveness.givenBack();
      turns.leave();
    };
    const all = turns.levels <= 0;
    const command = this.#command(all, turns.askedAgain ? LEAVE_MARK : 0);
    requester.sendCommand(command, { timeoutMs }, (error, reply) => {
      const answer = error ?? lockAnswer(reply);
      const end = (): void => {
        leave();
        if (all) this.#own?.end();
      };
      const again = answer instanceof ServiceError && all && this.#needsRelease && !requester.closed; // RL2
      if (again) retryUntilAnswered({ requester, session: this.#session }, command, end);
      else end();
      done(answer instanceof ServiceError ? answer : this.#refusedRelease(answer));
    });
  }

  #refusedRelease(result: LockResult): ServiceError | undefined {
    if (result.type !== 'refused') return undefined;
    // Another owner has it by now: this grant is over.
    const error = result.code === 'LOCK_WRONG_OWNER' ? takenAway() : refusalOf(result);
    this.#liveness.lose(error);
    return error;
  }

  /** In which mode the lock is held is not known any more: it counts as lost, and is released (RL1). */
  abandon(done: () => void): void {
    const { requester } = this.#deps;
    this.#liveness.lose(
      new ServiceError('UNKNOWN_OUTCOME', 'it is unknown how the lock is held, so it counts as lost'),
    );
    const end = (): void => {
      this.#own?.end();
      done();
    };
    if (!this.#needsRelease || requester.closed) return end();
    retryUntilAnswered({ requester, session: this.#session }, this.#command(true, LEAVE_MARK), end);
  }

  /** RL3. */
  get #needsRelease(): boolean {
    return this.#own === undefined || this.#delayMs > 0;
  }

  #command(all: boolean, deadlineMs: number): Command {
    const { lock, token, attempt } = this.#turns;
    const owner = { session: this.#session.ref, token };
    const release = { type: 'release', lock, owner, all, deadlineMs, attempt } as const;
    return { type: 'lock', command: release };
  }

  /** S9 of `session.ts`: the release is on its way, with those of other locks, before the holder hears of it. */
  async #releaseAsClosed(): Promise<void> {
    if (this.#depth > 0) this.#liveness.takeBack(clientClosed());
    const released = this.#releaseLevels();
    await undefined; // Those of the others.
    this.#deps.requester.gateways.flush();
    this.#liveness.tellTakenBack();
    await released;
  }

  async #releaseLevels(): Promise<void> {
    this.#session.check();
    while (this.#depth > 0 && !this.#liveness.isOver) await this.release();
    await this.#turns.idle(); // A release that began before may still wait for its answer.
  }
}
