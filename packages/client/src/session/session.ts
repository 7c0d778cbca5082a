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
/** The fraction of the time for closing a session that the releases before it may take. */
const BEFORE_CLOSE_FRACTION = 1 / 3;
/** After that, `lease-endings.ts` retries with longer pauses. */
const GIVE_UP_TIMEOUT_MS = 30_000;

/**
 * A session: a lease that the client keeps alive, and to which its locks belong. A lock may have a session of its own.
 *
 * S1. The client treats the session as alive until (send time of the last acknowledged heartbeat + `validityMs`) on its
 *     own monotonic clock. The server ends it a full TTL after it received that heartbeat, or later. So the client
 *     knows first (design §9), as long as both clocks stay within the drift that is assumed of any clock.
 * S2. Monotonic time stops while a machine is suspended; wall time does not. The session is also lost when as much wall
 *     time has passed: setting the clock may cost a session, but never exclusion. (The exception is a wall clock that
 *     is set back by as long as the machine was suspended: only the fencing version protects against that.)
 * S3. Lost means lost: a session is never revived (trap 24).
 * S4. A heartbeat counts for no longer than the TTL that its own acknowledgement names.
 * S5. From the moment it requests a shorter TTL, the client counts on no more than that, also for heartbeats that were
 *     acknowledged before: a new leader gives every session one TTL, and may know the shorter one already. A longer TTL
 *     counts from the first heartbeat that was acknowledged with it. Changes are requested one at a time, with growing
 *     numbers, so that one whose outcome is unknown cannot take effect after the next.
 * S6. A heartbeat of the background renewer, sent while this thread was blocked, counts like one of the session's own,
 *     from its send time, which is in a time that both threads share. The session asks for it whenever an own heartbeat
 *     is overdue, and before it counts as lost.
 * S7. From the moment it requests no expiry, until another TTL is known to be set, no time ends the session at the
 *     server. When the client loses such a session, it ends it at the server, however long that takes
 *     (`lease-endings.ts`).
 * S8. A heartbeat that is not answered soon is also sent through the next gateway, so that every gateway is tried while
 *     the session is alive. Whichever answer arrives counts, also that to the first heartbeat.
 * S9. The request that ends the session at the server is on its way before the users of the session hear that it is
 *     closed, as they may exit the process then. Nobody else can be granted its locks before that, as they hear of it
 *     in the same turn of the loop.
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
  /** How the session has ended for this client, if it has. */
  #ended: 'lost' | 'closed' | undefined;
  #lossReason: ServiceError | undefined;
  readonly #validity: SessionValidity;
  #changes = 0;
  #changing: Promise<void> = Promise.resolve();
  /** S7. */
  #endless: boolean;
  /** The request to end it. `close` waits for it, also if the release of a lock with its own lease has begun it. */
  #revoking: Promise<void> | undefined;
  /** The releases before it is closed. */
  #preparing: Promise<void> | undefined;
  /** The request to end it that closing it has begun. */
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

  /** Takes up the session of an earlier process. @throws ServiceError SESSION_EXPIRED when it has ended. */
  static async resume(deps: SessionDeps, ref: SessionRef, timeoutMs: number): Promise<Session> {
    return new Session(deps, await takeUpSession(deps, ref, timeoutMs));
  }

  get ttlMs(): number {
    return this.#validity.pace.ttlMs;
  }

  /** `suspended`: heartbeats are not answered at the moment; the session still holds its locks. */
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

  /** When the session is lost unless a further heartbeat is acknowledged, on the monotonic clock (S1). */
  get deadlineMs(): number {
    return this.#validity.deadlineMs;
  }

  /** How long the session is certainly alive, in ms; infinite when it needs no renewal. */
  get remainingMs(): number {
    return this.#validity.remainingMs;
  }

  /** How long ago the last acknowledged heartbeat was sent, in ms. */
  get spentMs(): number {
    return this.#validity.spentMs;
  }

  /** Runs `fn` when the session is lost or closed; at once if it is already. */
  onLoss(fn: (reason: ServiceError) => void): void {
    this.addLossListener({ onSessionLost: fn });
  }

  /**
   * The same for listeners that may be removed: returns the id for `removeLossListener`. Every lock adds two of them,
   * one after the other, so a listener is an object that exists anyway, which costs less than a function.
   */
  addLossListener(listener: LossListener): number {
    const id = this.#nextListener++;
    if (this.#lossReason !== undefined) listener.onSessionLost(this.#lossReason);
    else this.#onLoss.add(id, listener);
    return id;
  }

  /** Does nothing for a listener that was called or removed already. */
  removeLossListener(id: number): void {
    this.#onLoss.delete(id);
  }

  /**
   * Runs `fn`, and waits for it, before the client closes the session. Returns a function that removes it. Nobody hears
   * of the closing in the turn in which `fn` is called: a request that it sends at once is on its way before that (S9).
   */
  beforeClose(fn: () => Promise<void>): () => void {
    this.#beforeClose.add(fn);
    return () => this.#beforeClose.delete(fn);
  }

  /** S1, S2. Loses the session if its time is over. Cheap, as every read of a lock's state calls it. */
  check(): void {
    if (this.#lossReason !== undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.wallMs();
    if (nowMs > this.#validity.dueMs) this.#heartbeats.hearBackgroundRenewer();
    const why = this.#validity.whyOver(nowMs, wallMs);
    if (why !== undefined) this.#lose(why);
  }

  /** CE1. */
  suspended(on: boolean): void {
    if (this.#ended === undefined) this.#deps.events?.emit(on ? 'suspended' : 'resumed', this.ref);
  }

  /** The server has ended the session. */
  expired(): void {
    this.#endless = false;
    this.#lose('the server has ended the session');
  }

  /**
   * Closes `child` together with this session. A loss of this session does not affect it. If this session is closed
   * already, `child` is ended at once, as nobody else would. @throws ServiceError when this session was closed or
   * orphaned.
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

  /** Stops the periodic heartbeats: unless `renew` is called, the session ends by its TTL. */
  stopRenewing(): void {
    this.#heartbeats.stop();
  }

  /** Limits the rest of the session to this time, whatever is renewed. */
  limitTo(spanMs: number): void {
    this.#validity.limitTo(spanMs);
    this.#heartbeats.limitTo(this.#clock.monotonicMs() + spanMs);
    this.#watchDeadline();
  }

  /**
   * Sends heartbeats until one is acknowledged.
   *
   * @throws ServiceError SESSION_EXPIRED when the session is lost; DEADLINE_EXCEEDED when none was acknowledged in
   *   time.
   */
  renew(timeoutMs: number): Promise<void> {
    return this.#heartbeats.renew(timeoutMs);
  }

  /**
   * S5.
   *
   * @throws ServiceError SESSION_EXPIRED when the session is lost; others when it is unknown whether the terms have
   *   changed.
   */
  change(terms: SessionTerms, timeoutMs: number): Promise<void> {
    const changed = this.#changing.then(() => this.#change(terms, timeoutMs));
    this.#changing = changed.catch(() => {});
    return changed;
  }

  async #change(terms: SessionTerms, timeoutMs: number): Promise<void> {
    const shorter = shorterOf(this.#validity.pace, paceOf(terms));
    // The rest of the present terms may be longer than the whole of the new ones.
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

  /**
   * Ends the session and its adopted ones at the server, which releases their locks at once. Of a lost session, ends
   * the adopted ones.
   */
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

  /** Sends the request to end it, or the releases before that, without waiting: `close` then waits for them. */
  beginToClose(timeoutMs: number): void {
    this.#prepareToClose(timeoutMs);
    if (this.#preparing === undefined) this.#beginToClose({ timeoutMs });
  }

  #beginToClose(options: RevokeOptions): void {
    if (this.#lossReason !== undefined || this.#closing !== undefined) return;
    this.#closing = this.#revoke(options);
    this.#closing.catch(() => {}); // `close` reports it.
  }

  #prepareToClose(timeoutMs: number): void {
    if (this.#beforeClose.size > 0) this.#preparing ??= this.#prepareClose(timeoutMs * BEFORE_CLOSE_FRACTION);
  }

  /** Waits for the releases, for a limited time: the end of the session releases the other locks. */
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

  /**
   * As `close`, for a session that may be lost, and may still exist at the server. Does not wait for a lost one, or one
   * without expiry (S7).
   */
  async end(timeoutMs: number): Promise<void> {
    if (this.#endless || this.#ended === 'lost') {
      this.#end('closed', clientClosed());
      this.#deps.endings.add(this.ref); // Closing the client waits for it.
      return;
    }
    await this.#close({ timeoutMs, untilAnswered: true }); // Nobody else would retry.
  }

  /** Loses the session and its adopted ones, and then ends them at the server. */
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
        this.#deps.endings.add(this.ref); // Its TTL may be long, and others wait for its locks.
        throw error;
      }
    }
    await this.#deps.journal?.remove(id);
  }

  /**
   * Leaves the session to its TTL: its locks stay held until then, and this client no longer renews or ends it.
   *
   * @throws ServiceError INTERNAL when it could not be removed from the journal: the next process may end it (J5 of
   *   `journal.ts`).
   */
  async leave(): Promise<void> {
    const children = [...this.#children];
    if (this.#lossReason === undefined) this.#endless = false; // S7 applies to sessions that have to end.
    this.#end('closed', new ServiceError('SESSION_EXPIRED', 'the session was orphaned: it ends by its TTL'));
    this.#ended = 'closed';
    await Promise.all([this.#deps.journal?.leave(this.ref.lease), ...children.map((child) => child.leave())]);
  }

  #lose(why: string): void {
    if (this.#lossReason !== undefined) return;
    this.#end('lost', new ServiceError('SESSION_EXPIRED', `the session is lost: ${why}`));
    if (this.#endless) this.#deps.endings.add(this.ref);
    else void this.#deps.journal?.remove(this.ref.lease);
    if (this.#lossReason !== undefined) this.#deps.events?.emit('lost', this.ref, this.#lossReason);
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
    // A timer may fire slightly early: the rest is then waited for at once, and not in ever smaller parts.
    const leftMs = Math.max(TIMER_MIN_MS, this.deadlineMs - this.#clock.monotonicMs());
    this.#deadlineTimer = this.#clock.setTimer(leftMs, () => {
      this.check();
      if (this.#lossReason === undefined) this.#watchDeadline();
    });
  }
}
