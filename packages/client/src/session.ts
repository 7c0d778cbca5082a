import { type Clock, ServiceError, safeSpanMs, type Timer, TransientMap } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { pipeQuery } from '@remora/protocol';
import { Owners } from './owner.ts';
import { clientClosed, type Requester } from './requester.ts';

/**
 * A session: a lease that the client keeps alive, to which its locks belong.
 *
 * S1. The client counts the session as alive until (send time of the last acknowledged heartbeat + `validityMs`) on
 *     its own monotonic clock; the server ends it a full TTL after it received that heartbeat, or later. So the client
 *     knows first (design §9), while both clocks keep within the drift that is assumed of any.
 * S2. Monotonic time stands still while a machine is suspended; wall time does not. A session is lost as well when
 *     as much wall time has passed: stepping the clock may cost a session, but never exclusion.
 * S3. Lost means lost: a session is never revived (traps 24).
 */
export type SessionState = 'active' | 'suspended' | 'lost' | 'closed';

/** For what drift does not cover: rounding of times, timers that fire late, the way from the check to the use. */
const REACTION_MS_MAX = 50;
/** The same as a part of the TTL, where that is less: sessions of tests and experiments live for a moment only. */
const REACTION_FRACTION = 0.1;
const HEARTBEATS_PER_TTL = 3;
const RETRY_MIN_MS = 50;
const TIMER_MIN_MS = 1;

/** How long after sending a heartbeat that was acknowledged a session is certainly alive, on the client's clock (S1). */
export function validityMs(ttlMs: number): number {
  return safeSpanMs(ttlMs) - Math.min(REACTION_MS_MAX, ttlMs * REACTION_FRACTION);
}

export class Session {
  readonly ref: SessionRef;
  readonly ttlMs: number;
  readonly owners = new Owners();
  readonly #requester: Requester;
  readonly #clock: Clock;
  readonly #validityMs: number;
  readonly #intervalMs: number;
  readonly #onLoss = new TransientMap<(reason: ServiceError) => void>();
  #nextListener = 1;
  #state: SessionState = 'active';
  #lossReason: ServiceError | undefined;
  #ackedMs: number;
  #ackedWallMs: number;
  #beatTimer: Timer | undefined;
  #deadlineTimer: Timer | undefined;

  private constructor(
    requester: Requester,
    lease: { readonly ref: SessionRef; readonly ttlMs: number; readonly sentMs: number; readonly sentWallMs: number },
  ) {
    this.#requester = requester;
    this.#clock = requester.ports.clock;
    this.ref = lease.ref;
    this.ttlMs = lease.ttlMs;
    this.#validityMs = validityMs(lease.ttlMs);
    this.#intervalMs = lease.ttlMs / HEARTBEATS_PER_TTL;
    this.#ackedMs = lease.sentMs;
    this.#ackedWallMs = lease.sentWallMs;
    this.#watchDeadline();
    this.#scheduleBeat();
  }

  static async open(
    requester: Requester,
    options: {
      readonly ttlMs: number;
      readonly timeoutMs: number;
      readonly attributes: Readonly<Record<string, string>>;
    },
  ): Promise<Session> {
    const { clock, random } = requester.ports;
    const id = BigInt.asUintN(63, random.bytes(8).readBigUInt64BE()) | 1n;
    const { ttlMs, attributes, timeoutMs } = options;
    await requester.journal?.add(id);
    // The lease cannot begin before the first attempt is sent.
    const sentMs = clock.monotonicMs();
    const sentWallMs = clock.wallMs();
    const command = { type: 'leaseGrant', id, ttlMs, attributes } as const;
    const { result } = await requester.command(command, { timeoutMs }).catch(async (error) => {
      // If it was granted after all, it ends by its TTL, with nothing that belongs to it.
      await requester.journal?.remove(id);
      throw error;
    });
    if (result.type !== 'leaseGrant')
      throw new ServiceError('INTERNAL', `a lease grant was answered by ${result.type}`);
    const ref = { lease: result.id, incarnation: result.incarnation };
    return new Session(requester, { ref, ttlMs: result.ttlMs, sentMs, sentWallMs });
  }

  /** `suspended`: heartbeats are not answered at the moment; what the session holds is still its own. */
  get state(): SessionState {
    this.check();
    return this.#state;
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
    return this.#ackedMs + this.#validityMs;
  }

  /** Runs `fn` when the session is lost or closed, at once if it is; returns a function that forgets it. */
  onLoss(fn: (reason: ServiceError) => void): () => void {
    if (this.#lossReason !== undefined) {
      fn(this.#lossReason);
      return () => {};
    }
    const id = this.#nextListener++;
    this.#onLoss.add(id, fn);
    return () => this.#onLoss.delete(id);
  }

  /** S1, S2. Cheap: called on each look at a lock. */
  check(): void {
    if (this.#lossReason !== undefined) return;
    if (this.#clock.monotonicMs() - this.#ackedMs >= this.#validityMs)
      this.#lose('no heartbeat was acknowledged in time');
    else if (this.#clock.wallMs() - this.#ackedWallMs >= this.#validityMs)
      this.#lose('the machine was suspended, or its clock was set');
  }

  /** The server said so. */
  expired(): void {
    this.#lose('the server has ended the session');
  }

  /** Ends the session at the server, which releases all that belongs to it at once. */
  async close(timeoutMs: number): Promise<void> {
    if (this.#lossReason !== undefined) return;
    this.#end('closed', clientClosed());
    const { lease: id, incarnation } = this.ref;
    try {
      await this.#requester.command({ type: 'leaseRevoke', id, incarnation }, { timeoutMs });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'LEASE_NOT_FOUND') throw error;
    }
    await this.#requester.journal?.remove(id);
  }

  #lose(why: string): void {
    if (this.#lossReason !== undefined) return;
    this.#end('lost', new ServiceError('SESSION_EXPIRED', `the session is lost: ${why}`));
    void this.#requester.journal?.remove(this.ref.lease);
    this.#requester.ports.logger.warn({ lease: this.ref.lease.toString(16), why }, 'session lost');
  }

  #end(state: 'lost' | 'closed', reason: ServiceError): void {
    this.#state = state;
    this.#lossReason = reason;
    this.#beatTimer?.cancel();
    this.#deadlineTimer?.cancel();
    const listeners = this.#onLoss.values();
    this.#onLoss.clear();
    for (const listener of listeners) listener(reason);
  }

  #watchDeadline(): void {
    // A timer may fire a moment early; what is left then is waited for whole, not in ever smaller parts.
    const leftMs = Math.max(TIMER_MIN_MS, this.deadlineMs - this.#clock.monotonicMs());
    this.#deadlineTimer = this.#clock.setTimer(leftMs, () => {
      this.check();
      if (this.#lossReason === undefined) this.#watchDeadline();
    });
  }

  #scheduleBeat(): void {
    const dueMs = this.#ackedMs + this.#intervalMs;
    this.#beatTimer = this.#clock.setTimer(Math.max(0, dueMs - this.#clock.monotonicMs()), () => this.#beat());
  }

  /** Each attempt counts from its own sending; so none is repeated by the layer below. */
  #beat(): void {
    this.check();
    if (this.#lossReason !== undefined) return;
    const sentMs = this.#clock.monotonicMs();
    const sentWallMs = this.#clock.wallMs();
    const { lease: id, incarnation } = this.ref;
    const timeoutMs = this.#intervalMs;
    const request = { query: { type: 'leaseKeepAlive', id, incarnation }, timeoutMs } as const;
    this.#requester.attempt(pipeQuery, request, timeoutMs, (error, reply) => {
      this.check();
      if (this.#lossReason !== undefined) return;
      if (error !== undefined) return this.#missed(error);
      const result = reply?.result;
      if (result?.type !== 'leaseKeepAlive' || result.ttlMs <= 0) return this.expired();
      this.#ackedMs = sentMs;
      this.#ackedWallMs = sentWallMs;
      this.#state = 'active';
      this.#scheduleBeat();
    });
  }

  #missed(error: ServiceError): void {
    if (error.code === 'LEASE_NOT_FOUND' || error.code === 'SESSION_EXPIRED') return this.expired();
    this.#state = 'suspended';
    const pauseMs = Math.min(RETRY_MIN_MS, this.#intervalMs / 4) + this.#requester.ports.random.int(RETRY_MIN_MS);
    this.#beatTimer = this.#clock.setTimer(pauseMs, () => this.#beat());
  }
}
