import { type Clock, ServiceError, type Timer, TransientMap } from '@remora/base';
import { type SessionRef, TTL_NEVER_MS } from '@remora/lock';
import type { CommandOptions } from '../transport/operation.ts';
import { clientClosed, isLeaseGone } from '../transport/request-errors.ts';
import { Heartbeats } from './heartbeats.ts';
import { Owners } from './owner.ts';
import type { SessionDeps } from './session-deps.ts';
import { type Pace, paceOf, type SessionTerms, shorterOf } from './session-pace.ts';
import { type BegunSession, grantSession, type NewSession, takeUpSession } from './session-start.ts';
import { SessionValidity } from './session-validity.ts';

export type SessionState = 'active' | 'suspended' | 'lost' | 'closed';

export interface LossListener {
  onSessionLost(reason: ServiceError): void;
}

type RevokeOptions = Pick<CommandOptions, 'timeoutMs' | 'untilAnswered'>;

const TIMER_MIN_MS = 1;
/** Of the time to close a session, for what is released before. */
const BEFORE_CLOSE_FRACTION = 1 / 3;
/** Then it is asked for with longer pauses (`lease-endings.ts`). */
const GIVE_UP_TIMEOUT_MS = 30_000;

/**
 * A session: a lease that the client keeps alive, to which its locks belong. A lock may have one of its own.
 *
 * S1. The client counts the session as alive until (send time of the last acknowledged heartbeat + `validityMs`) on
 *     its own monotonic clock; the server ends it a full TTL after it received that heartbeat, or later. So the client
 *     knows first (design §9), while both clocks keep within the drift that is assumed of any.
 * S2. Monotonic time stands still while a machine is suspended; wall time does not. A session is lost as well when
 *     as much wall time has passed: stepping the clock may cost a session, but never exclusion. (But for a wall clock
 *     that is set back by as long as the machine was suspended: against that there is only the fence.)
 * S3. Lost means lost: a session is never revived (traps 24).
 * S4. A heartbeat counts for no longer than the TTL that its own acknowledgement names.
 * S5. From asking for a shorter TTL on, the client counts on no more than that, for heartbeats that were acknowledged
 *     before as well: a new leader gives every session one TTL, and may know the shorter one already. A longer TTL counts
 *     from the first heartbeat that was acknowledged with it. Changes are asked for one at a time, with growing numbers, so
 *     that one whose outcome is not known cannot take effect after the next.
 * S6. A heartbeat of the stand-in, sent while this thread was busy, counts like one of its own: from its sending, which is
 *     told in time that both threads share. It is asked for whenever an own one is overdue, before the session is given up.
 * S7. From asking for no expiry on, until another TTL is known to be set, no time ends the session at the server: when it is
 *     over here, its client ends it there, however long that takes (`lease-endings.ts`).
 * S8. A heartbeat that is not answered soon is sent through the next gateway besides, so that each of them is asked while the
 *     session is alive. Whichever is answered counts, the first one too.
 * S9. What ends it at the server is on its way when those who use it hear that it is closed: they may end the process. Nobody
 *     else can be granted what it holds before, as they hear of it in the same turn.
 */
export class Session {
  readonly ref: SessionRef;
  readonly owners = new Owners();
  readonly #deps: SessionDeps;
  readonly #clock: Clock;
  readonly #onLoss = new TransientMap<LossListener>();
  readonly #children = new Set<Session>();
  readonly #beforeClose = new Set<() => Promise<void>>();
  #nextListener = 1;
  /** How it has ended here, if it has. */
  #ended: 'lost' | 'closed' | undefined;
  #lossReason: ServiceError | undefined;
  readonly #validity: SessionValidity;
  #changes = 0;
  #changing: Promise<void> = Promise.resolve();
  /** S7. */
  #endless: boolean;
  /** Whoever closes it waits for that, also when somebody else had begun to: a lock of its own, released before. */
  #revoking: Promise<void> | undefined;
  /** What is done before it is closed. */
  #preparing: Promise<void> | undefined;
  /** What asks for its end as it is closed. */
  #closing: Promise<void> | undefined;
  readonly #heartbeats: Heartbeats;
  #deadlineTimer: Timer | undefined;

  private constructor(deps: SessionDeps, lease: BegunSession) {
    const { requester } = deps;
    this.#deps = deps;
    this.#clock = requester.ports.clock;
    this.ref = lease.ref;
    this.#validity = new SessionValidity(this.#clock, lease, lease);
    this.#endless = lease.ttlMs >= TTL_NEVER_MS;
    this.#heartbeats = new Heartbeats(this, this.#validity, requester, lease.sentMs);
    this.#watchDeadline();
  }

  static async open(deps: SessionDeps, options: NewSession): Promise<Session> {
    return new Session(deps, await grantSession(deps, options));
  }

  /** Goes on with a session that another process has left. @throws ServiceError SESSION_EXPIRED when it has ended. */
  static async resume(deps: SessionDeps, ref: SessionRef, timeoutMs: number): Promise<Session> {
    return new Session(deps, await takeUpSession(deps, ref, timeoutMs));
  }

  get ttlMs(): number {
    return this.#validity.pace.ttlMs;
  }

  /** `suspended`: heartbeats are not answered at the moment; what the session holds is still its own. */
  get state(): SessionState {
    this.check();
    return this.#ended ?? (this.#heartbeats.unanswered ? 'suspended' : 'active');
  }

  get alive(): boolean {
    this.check();
    return this.#lossReason === undefined;
  }

  get lossReason(): ServiceError | undefined {
    return this.#lossReason;
  }

  /** Until when, on the monotonic clock, the session is certainly alive unless its deadline is moved on (S1). */
  get deadlineMs(): number {
    return this.#validity.deadlineMs;
  }

  /** How long it is certainly alive, if it is; without end when nothing has to be renewed. */
  get remainingMs(): number {
    return this.#validity.remainingMs;
  }

  /** Since the last heartbeat that was acknowledged was sent. */
  get spentMs(): number {
    return this.#validity.spentMs;
  }

  /** Runs `fn` when the session is lost or closed, at once if it is. */
  onLoss(fn: (reason: ServiceError) => void): void {
    this.addLossListener({ onSessionLost: fn });
  }

  /**
   * The same for those that may be done with the session before; returns what `removeLossListener` needs. Every lock has
   * two of them, one after the other: an object that is there anyway costs less than functions.
   */
  addLossListener(listener: LossListener): number {
    const id = this.#nextListener++;
    if (this.#lossReason !== undefined) listener.onSessionLost(this.#lossReason);
    else this.#onLoss.add(id, listener);
    return id;
  }

  /** Of one that was told already, or removed, it does nothing. */
  removeLossListener(id: number): void {
    this.#onLoss.delete(id);
  }

  /**
   * Runs `fn`, and waits for it, before the session is closed by its client; returns a function that forgets it. In the step in
   * which it is called nobody hears of the closing yet: what it sends then is on its way before (S9).
   */
  beforeClose(fn: () => Promise<void>): () => void {
    this.#beforeClose.add(fn);
    return () => this.#beforeClose.delete(fn);
  }

  /** S1, S2. Cheap: called on each look at a lock. */
  check(): void {
    if (this.#lossReason !== undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.wallMs();
    if (nowMs > this.#validity.dueMs) this.#heartbeats.hearBackgroundRenewer();
    const why = this.#validity.whyOver(nowMs, wallMs);
    if (why !== undefined) this.#lose(why);
  }

  /** The server said so. */
  expired(): void {
    this.#endless = false;
    this.#lose('the server has ended the session');
  }

  /**
   * Ends another one together with this one when this one is closed; not when it is lost, as they live apart. One that was
   * just being opened ends at once: nobody would close it any more. @throws ServiceError when this one was closed, or left.
   */
  adopt(child: Session): Session {
    if (this.#ended === 'closed' && this.#lossReason !== undefined) {
      child.end(GIVE_UP_TIMEOUT_MS).catch(() => {});
      throw this.#lossReason;
    }
    this.#children.add(child);
    child.onLoss(() => this.#children.delete(child));
    return child;
  }

  /** No more heartbeats but those that somebody asks for: it ends by its TTL. */
  stopRenewing(): void {
    this.#heartbeats.stop();
  }

  /** From now on it lasts for so long at most, whatever is renewed. */
  limitTo(spanMs: number): void {
    this.#validity.limitTo(spanMs);
    this.#heartbeats.limitTo(this.#clock.monotonicMs() + spanMs);
    this.#watchDeadline();
  }

  /**
   * Sends a heartbeat, again and again until one is acknowledged.
   *
   * @throws ServiceError SESSION_EXPIRED when it is lost; DEADLINE_EXCEEDED when none was acknowledged in time.
   */
  renew(timeoutMs: number): Promise<void> {
    return this.#heartbeats.renew(timeoutMs);
  }

  /** S5. @throws ServiceError SESSION_EXPIRED when it is lost; others when the cluster did not say whether it is changed. */
  change(terms: SessionTerms, timeoutMs: number): Promise<void> {
    const changed = this.#changing.then(() => this.#change(terms, timeoutMs));
    this.#changing = changed.catch(() => {});
    return changed;
  }

  async #change(terms: SessionTerms, timeoutMs: number): Promise<void> {
    const shorter = shorterOf(this.#validity.pace, paceOf(terms));
    // What is left by the present terms may be more than the whole of the new ones.
    if (this.#validity.isCutBy(shorter)) await this.renew(timeoutMs);
    this.check();
    if (this.#lossReason !== undefined) throw this.#lossReason;
    this.#keepTo(shorter);
    if (terms.ttlMs >= TTL_NEVER_MS) this.#endless = true;
    const { lease: id, incarnation } = this.ref;
    const command = { type: 'leaseChange', id, incarnation, number: ++this.#changes, ...terms } as const;
    try {
      const { result } = await this.#deps.requester.command(command, { timeoutMs });
      if (result.type !== 'leaseChange')
        throw new ServiceError('INTERNAL', `a lease change was answered by ${result.type}`);
      this.#endless = result.ttlMs >= TTL_NEVER_MS;
      this.#keepTo(paceOf({ ...terms, ttlMs: result.ttlMs }));
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      this.expired();
      throw this.#lossReason ?? error;
    }
  }

  #keepTo(pace: Pace): void {
    this.#validity.keepTo(pace);
    this.check();
    if (this.#lossReason !== undefined) return;
    this.#heartbeats.keepPace();
    this.#watchDeadline();
  }

  /** Ends the session at the server, which releases all that belongs to it at once; of a lost one, those adopted by it. */
  close(timeoutMs: number): Promise<void> {
    return this.#close({ timeoutMs });
  }

  async #close(options: RevokeOptions): Promise<void> {
    const { timeoutMs } = options;
    for (const session of [this, ...this.#children]) session.#prepareToClose(timeoutMs); // S9, of all of them
    if (this.#preparing !== undefined) await this.#preparing;
    this.#beginToClose(options);
    const children = [...this.#children];
    for (const child of children) child.beginToClose(timeoutMs);
    this.#deps.requester.gateways.flush(); // S9
    this.#end('closed', clientClosed());
    this.#ended = 'closed';
    await Promise.all([this.#closing ?? this.#revoking, ...children.map((child) => child.close(timeoutMs))]);
  }

  /** Asks for its end already, which `close` is to wait for; or for what is to be done before, as it is closed. */
  beginToClose(timeoutMs: number): void {
    this.#prepareToClose(timeoutMs);
    if (this.#preparing === undefined) this.#beginToClose({ timeoutMs });
  }

  #beginToClose(options: RevokeOptions): void {
    if (this.#lossReason !== undefined || this.#closing !== undefined) return;
    this.#closing = this.#revoke(options);
    this.#closing.catch(() => {}); // Whoever closes it is told.
  }

  #prepareToClose(timeoutMs: number): void {
    if (this.#beforeClose.size > 0) this.#preparing ??= this.#prepareClose(timeoutMs * BEFORE_CLOSE_FRACTION);
  }

  /** As far as that is done in time: whatever a lock waits for, the session ends, and the lock with it. */
  async #prepareClose(timeoutMs: number): Promise<void> {
    const prepared = Promise.allSettled([...this.#beforeClose].map((fn) => fn()));
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimer(timeoutMs, resolve);
      void prepared.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** The same of one that may be lost here, and may not have ended there yet. Nobody waits for one that is lost, or without expiry (S7). */
  async end(timeoutMs: number): Promise<void> {
    if (this.#endless || this.#ended === 'lost') {
      this.#end('closed', clientClosed());
      this.#deps.endings.add(this.ref); // Closing the client waits for it.
      return;
    }
    await this.#close({ timeoutMs, untilAnswered: true }); // Nobody would ask again.
  }

  /** Uses it no longer, nor those of its locks, and ends them at the server, as far as that can be reached. */
  giveUp(why: string): void {
    this.#lose(why);
    for (const child of this.#children) child.giveUp(why);
    this.end(GIVE_UP_TIMEOUT_MS).catch(() => {});
  }

  #revoke(options: RevokeOptions): Promise<void> {
    this.#revoking = this.#askToRevoke(options);
    return this.#revoking;
  }

  async #askToRevoke(options: RevokeOptions): Promise<void> {
    const { lease: id, incarnation } = this.ref;
    try {
      await this.#deps.requester.command({ type: 'leaseRevoke', id, incarnation }, options);
    } catch (error) {
      if (!isLeaseGone(error)) {
        this.#deps.endings.add(this.ref); // Its TTL may be long, and others wait for what it holds.
        throw error;
      }
    }
    await this.#deps.journal?.remove(id);
  }

  /**
   * Leaves it to its TTL: what belongs to it stays until then, and this client has nothing to do with it any more.
   *
   * @throws ServiceError INTERNAL when the journal still names it, so that the next process may end it (J5 of `journal.ts`).
   */
  async leave(): Promise<void> {
    const children = [...this.#children];
    if (this.#lossReason === undefined) this.#endless = false; // S7 is for those that are to end.
    this.#end('closed', new ServiceError('SESSION_EXPIRED', 'the session was orphaned: it ends by its TTL'));
    this.#ended = 'closed';
    await Promise.all([this.#deps.journal?.leave(this.ref.lease), ...children.map((child) => child.leave())]);
  }

  #lose(why: string): void {
    if (this.#lossReason !== undefined) return;
    this.#end('lost', new ServiceError('SESSION_EXPIRED', `the session is lost: ${why}`));
    if (this.#endless) this.#deps.endings.add(this.ref);
    else void this.#deps.journal?.remove(this.ref.lease);
    this.#deps.requester.ports.logger.warn({ lease: this.ref.lease.toString(16), why }, 'session lost');
  }

  #end(state: 'lost' | 'closed', reason: ServiceError): void {
    if (this.#lossReason !== undefined) return;
    this.#ended = state;
    this.#lossReason = reason;
    this.#heartbeats.stop();
    this.#deadlineTimer?.cancel();
    const listeners = this.#onLoss.values();
    this.#onLoss.clear();
    for (const listener of listeners) listener.onSessionLost(reason);
  }

  #watchDeadline(): void {
    this.#deadlineTimer?.cancel();
    // A timer may fire a moment early; what is left then is waited for whole, not in ever smaller parts.
    const leftMs = Math.max(TIMER_MIN_MS, this.deadlineMs - this.#clock.monotonicMs());
    this.#deadlineTimer = this.#clock.setTimer(leftMs, () => {
      this.check();
      if (this.#lossReason === undefined) this.#watchDeadline();
    });
  }
}
