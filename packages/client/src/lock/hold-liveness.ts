/**
 * Tracks whether a granted lock is still held, and tells its listeners when it is not, or when somebody asks for the
 * lock. What the holder does with the lock is in `held-lock.ts`.
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
 * `active`: held. `suspended`: held, but heartbeats are not answered at the moment; the lock will be lost if that
 * lasts. `lost`: no longer held, or no longer certain to be held. `released`: released by its holder.
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
  /** Why the client releases it although its holder did not. */
  #takenBack: ServiceError | undefined;
  #controller: AbortController | undefined;
  /** The listeners, with the revision of the latest revocation that each has seen. */
  #onRevoke: Map<RevokeListener, number> | undefined;

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

  /** Why the lock can no longer be used; undefined while it is held. */
  refusal(): ServiceError | undefined {
    this.#session.check();
    const reason = this.#lossReason ?? (this.#released ? undefined : this.#takenBack);
    if (reason !== undefined) return reason;
    return this.#released ? new ServiceError('LOCK_NOT_HELD', 'the lock was released') : undefined;
  }

  /** Whether the version may differ from `version` because an upgrade or downgrade has changed it. */
  isConverted(version: number): boolean {
    return this.#turns.grant === this.#grant && (this.#turns.converting || this.#grant.version !== version);
  }

  /** Calls `release` before the client closes the session, unless the lock is lost or released by then. */
  beforeClose(release: () => Promise<void>): void {
    this.#forgetClose = this.#session.beforeClose(release);
  }

  onRevoke(listener: RevokeListener): () => void {
    this.#onRevoke ??= new Map();
    this.#onRevoke.set(listener, 0);
    this.#watchGrant();
    return () => this.#onRevoke?.delete(listener);
  }

  /** The holder releases it. */
  release(): void {
    this.#released = true;
    this.#forget();
  }

  /** The client is about to release it without its holder: from now on the holder sees it as lost. */
  takeBack(reason: ServiceError): void {
    if (!this.#released && this.#lossReason === undefined) this.#takenBack = reason;
  }

  /** Notifies the holder of `takeBack`. */
  tellTakenBack(): void {
    if (this.#takenBack !== undefined) this.#controller?.abort(this.#takenBack);
  }

  /** The release was answered, or is no longer retried. */
  givenBack(): void {
    this.#forgetClose?.();
  }

  onSessionLost(reason: ServiceError): void {
    this.#lose(reason);
  }

  onGrantLost(reason: ServiceError): void {
    this.#lose(reason);
  }

  /** The other handles of the same owner lose the grant too. */
  lose(reason: ServiceError): void {
    this.#lose(reason);
    for (const handle of handlesOf(this.#grant)) handle.onGrantLost(reason);
  }

  #lose(reason: ServiceError): void {
    if (this.#lossReason !== undefined || (this.#released && reason.code !== 'LOCK_NOT_HELD')) return;
    this.#lossReason = reason;
    if (this.#turns.grant === this.#grant) {
      this.#turns.levels = 0;
      this.#turns.enter(() => false); // The owner may be idle now, and is then forgotten.
    }
    if (!this.#released) this.#forget(reason);
    if (reason.code === 'LOCK_NOT_HELD') this.#own?.end();
    this.#controller?.abort(reason);
    // A release has left a mark itself.
    if (reason.code === 'LOCK_NOT_HELD' && !this.#released) this.#cancelAcquiresInFlight();
  }

  /**
   * A2 of `acquire.ts`. Nobody releases a lock that was taken away. But an acquire whose answer was lost may still be
   * in flight, and nobody would use what it is granted.
   */
  #cancelAcquiresInFlight(): void {
    const { requester } = this.#deps;
    const turns = this.#turns;
    const isNeeded = (): boolean => turns.askedAgain && turns.grant === this.#grant;
    if (!isNeeded() || this.#own !== undefined) return;
    turns.enter(() => {
      // If the owner was granted the lock again since, that release leaves a mark.
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
    // Closing the session waits for a release that is in progress.
    if (lost !== undefined) this.#forgetClose?.();
    this.#forgetGrant?.();
  }

  /** Only for holders that use the signal or a listener: the others need not know at once. */
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
      // A watch that was opened again reports requests that were seen before.
      if (told >= revision) continue;
      listeners.set(listener, revision);
      // A listener that fails counts as declining; nobody else could catch its error.
      tell(listener).catch((error: unknown) => {
        this.#deps.requester.ports.logger.warn(
          { error: String(error) },
          'an onRevoke listener threw an error; that counts as declining',
        );
      });
    }
  }
}
