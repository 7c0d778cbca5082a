/**
 * Whether a lock that was granted is still held, and who hears of it when it is not, or when somebody asks for it. What its
 * holder does with it is in `held-lock.ts`.
 */
import { ServiceError } from '@remora/base';
import type { LockId, Owner, Revocation } from '@remora/lock';
import type { DedicatedLease } from '../session/dedicated-lease.ts';
import {
  type GrantHandle,
  type HeldGrant,
  handlesOf,
  joinGrant,
  leaveGrant,
  type OwnerTurns,
} from '../session/owner.ts';
import type { LossListener, Session } from '../session/session.ts';
import { lookingSignal } from '../transport/abort.ts';
import { retryUntilAnswered } from '../transport/retry-until-answered.ts';
import type { AcquireRequest, Grant } from './acquire.ts';
import type { LockDeps } from './lock-deps.ts';
import { takenAway } from './lock-errors.ts';
import type { RevokeListener } from './revoke.ts';

/**
 * `active`: held. `suspended`: held, but heartbeats are not answered at the moment; it will be lost unless they are
 * again. `lost`: no longer held, or no longer certain to be. `released`: given back by its holder.
 */
export type HeldLockState = 'active' | 'suspended' | 'lost' | 'released';

/** What was asked for, and what was granted. */
export interface Hold {
  readonly request: AcquireRequest;
  readonly grant: Grant;
  /** Absent: the lock belongs to a session together with others. */
  readonly own: DedicatedLease | undefined;
}

export class HoldLiveness implements LossListener, GrantHandle {
  readonly #deps: LockDeps;
  readonly #session: Session;
  readonly #lock: LockId;
  readonly #owner: Owner;
  readonly #turns: OwnerTurns;
  readonly #grant: HeldGrant;
  readonly #own: DedicatedLease | undefined;
  readonly #endSpan: (lost?: ServiceError) => void;
  readonly #lossListener: number;
  #forgetClose: (() => void) | undefined;
  #forgetGrant: (() => void) | undefined;
  #released = false;
  #lossReason: ServiceError | undefined;
  /** Why it is given back, by others than its holder. */
  #takenBack: ServiceError | undefined;
  #controller: AbortController | undefined;
  /** With the latest request that each was told of. */
  #onRevoke: Map<RevokeListener, number> | undefined;

  /** `own`: the session is of this lock alone. */
  constructor(deps: LockDeps, session: Session, { request, grant, own }: Hold) {
    this.#deps = deps;
    this.#session = session;
    this.#lock = request.lock;
    this.#owner = { session: session.ref, token: request.token };
    this.#turns = grant.turns;
    this.#grant = grant.held;
    this.#own = own;
    this.#endSpan = deps.tracing.hold(this.#lock, grant.held.mode, grant.version);
    joinGrant(this.#grant, this);
    this.#lossListener = session.addLossListener(this);
  }

  get released(): boolean {
    return this.#released;
  }

  get lossReason(): ServiceError | undefined {
    return this.#lossReason;
  }

  /** Whether there is nothing left to release, as far as is known. */
  get isOver(): boolean {
    return this.#released || this.#lossReason !== undefined;
  }

  get state(): HeldLockState {
    if (this.#released) return 'released';
    const session = this.#session.state;
    if ((this.#lossReason ?? this.#takenBack) !== undefined) return 'lost';
    return session === 'suspended' ? 'suspended' : 'active';
  }

  get remainingMs(): number {
    if (this.state === 'lost' || this.#released) return 0;
    return this.#session.remainingMs;
  }

  get signal(): AbortSignal {
    this.#session.check();
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      lookingSignal(this.#controller.signal, () => this.#session.check());
      this.#watchGrant();
    }
    const reason = this.#lossReason ?? this.#takenBack;
    if (reason !== undefined) this.#controller.abort(reason);
    return this.#controller.signal;
  }

  /** Why nothing can be done with it; undefined while it is held. */
  refusal(): ServiceError | undefined {
    this.#session.check();
    const reason = this.#lossReason ?? (this.#released ? undefined : this.#takenBack);
    if (reason !== undefined) return reason;
    return this.#released ? new ServiceError('LOCK_NOT_HELD', 'the lock was released') : undefined;
  }

  /** Whether the version may be another one because the same grant is held in another way. */
  isConverted(version: number): boolean {
    return this.#turns.grant === this.#grant && (this.#turns.converting || this.#grant.version !== version);
  }

  /** Calls `release` before the session is closed by its client, unless the lock is lost, or was given back, by then. */
  beforeClose(release: () => Promise<void>): void {
    this.#forgetClose = this.#session.beforeClose(release);
  }

  onRevoke(listener: RevokeListener): () => void {
    this.#onRevoke ??= new Map();
    this.#onRevoke.set(listener, 0);
    this.#watchGrant();
    return () => this.#onRevoke?.delete(listener);
  }

  /** Its holder has no use for it any more. */
  release(): void {
    this.#released = true;
    this.#forget();
  }

  /** It is about to be given back though its holder did not say so: to that one it is lost from now on, and is to be told so. */
  takeBack(reason: ServiceError): void {
    if (!this.#released && this.#lossReason === undefined) this.#takenBack = reason;
  }

  /** Its holder hears of that. */
  tellTakenBack(): void {
    if (this.#takenBack !== undefined) this.#controller?.abort(this.#takenBack);
  }

  /** It was given back, or nobody tries to any more. */
  givenBack(): void {
    this.#forgetClose?.();
  }

  onSessionLost(reason: ServiceError): void {
    this.#lose(reason);
  }

  onGrantLost(reason: ServiceError): void {
    this.#lose(reason);
  }

  /** Its owner's other handles have no more of this grant than this one. */
  lose(reason: ServiceError): void {
    this.#lose(reason);
    for (const handle of handlesOf(this.#grant)) handle.onGrantLost(reason);
  }

  #lose(reason: ServiceError): void {
    if (this.#lossReason !== undefined || (this.#released && reason.code !== 'LOCK_NOT_HELD')) return;
    this.#lossReason = reason;
    if (this.#turns.grant === this.#grant) {
      this.#turns.levels = 0;
      this.#turns.enter(() => false); // It may be idle now, and forgotten.
    }
    if (!this.#released) this.#forget(reason);
    if (reason.code === 'LOCK_NOT_HELD') this.#own?.end();
    this.#controller?.abort(reason);
    // What was released before has said so itself.
    if (reason.code === 'LOCK_NOT_HELD' && !this.#released) this.#stopAskings();
  }

  /**
   * A2 of `acquire.ts`. Nobody releases what was taken away; but an asking whose answer was lost may be under way still, and
   * would be granted to nobody.
   */
  #stopAskings(): void {
    const { requester } = this.#deps;
    const turns = this.#turns;
    const isNeeded = (): boolean => turns.askedAgain && turns.grant === this.#grant;
    if (!isNeeded() || this.#own !== undefined) return;
    turns.enter(() => {
      // What the owner was granted since leaves a mark when it is released.
      if (!isNeeded() || !this.#session.alive || requester.closed) return false;
      const { attempt } = turns;
      const cancel = { type: 'cancel', lock: this.#lock, owner: this.#owner, deadlineMs: 0, attempt } as const;
      const command = { type: 'lock', command: cancel } as const;
      retryUntilAnswered({ requester, session: this.#session }, command, () => turns.leave());
      return true;
    });
  }

  #forget(lost?: ServiceError): void {
    this.#endSpan(lost);
    leaveGrant(this.#grant, this);
    this.#session.removeLossListener(this.#lossListener);
    // One that is being given back is waited for.
    if (lost !== undefined) this.#forgetClose?.();
    this.#forgetGrant?.();
  }

  /** Only for those who look at the signal: the others need not know at once. */
  #watchGrant(): void {
    this.#forgetGrant?.();
    if (this.#released || this.#lossReason !== undefined) return;
    const { version } = this.#grant;
    const grant = { lock: this.#lock, version, session: this.#session.ref };
    const listens = this.#onRevoke !== undefined && this.#onRevoke.size > 0;
    this.#forgetGrant = this.#deps.grants.watch(grant, {
      onEnd: (sessionAlive) => {
        if (!sessionAlive) this.#session.expired();
        else if (this.isConverted(version)) this.#watchGrant();
        else this.lose(takenAway());
      },
      onAsked: listens ? (revocation) => this.#asked(revocation) : undefined,
    });
  }

  #asked({ revision, by, reason, sinceMs }: Revocation): void {
    const listeners = this.#onRevoke;
    if (listeners === undefined) return;
    const tell = async (listener: RevokeListener): Promise<void> => listener({ by, reason, sinceMs });
    for (const [listener, told] of [...listeners]) {
      // A watch that began anew brings what is known.
      if (told >= revision) continue;
      listeners.set(listener, revision);
      // What goes wrong in a listener is nobody's to catch; and it has not agreed.
      tell(listener).catch((error: unknown) => {
        this.#deps.requester.ports.logger.warn(
          { error: String(error) },
          'an onRevoke listener threw an error; that counts as declining',
        );
      });
    }
  }
}
