import { type Clock, ServiceError, type Timer } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { pipeQuery } from '@remora/protocol';
import type { RenewedInBackground } from '../ports.ts';
import type { Requester } from '../transport/requester.ts';
import type { SentAt, SessionValidity } from './session-validity.ts';

/** The session that heartbeats keep alive. */
export interface BeatingSession {
  readonly ref: SessionRef;
  readonly lossReason: ServiceError | undefined;
  /** Loses the session if its time is over. */
  check(): void;
  /** The server has ended the session. */
  expired(): void;
  /** Heartbeats are not answered (true), or are answered again. */
  suspended(on: boolean): void;
}

const RETRY_MIN_MS = 50;
/** S8. A healthy gateway answers sooner. */
const PATIENCE_MIN_MS = 100;
/** How long a renewal that a caller waits for waits for one gateway. */
const RENEW_ATTEMPT_MS = 1_000;

/**
 * The heartbeats of a session, and those of its background renewer: each acknowledged one prolongs its validity. The
 * rules are those of the session (`session.ts`), in particular S6 and S8. A heartbeat that is due is repeated until one
 * is acknowledged.
 */
export class Heartbeats {
  readonly #session: BeatingSession;
  readonly #validity: SessionValidity;
  readonly #requester: Requester;
  readonly #clock: Clock;
  readonly #backgroundRenewer: RenewedInBackground | undefined;
  #stopped = false;
  #unanswered = false;
  /**
   * The number of the last heartbeat that was due. It is increased when one is acknowledged, which makes those in
   * flight obsolete.
   */
  #number = 0;
  /** How many heartbeats were acknowledged. */
  #acknowledged = 0;
  #timer: Timer | undefined;
  #besidesTimer: Timer | undefined;

  /** `sentMs`: when the request for the session was sent, which counts as the first heartbeat. */
  constructor(session: BeatingSession, validity: SessionValidity, requester: Requester, sentMs: number) {
    this.#session = session;
    this.#validity = validity;
    this.#requester = requester;
    this.#clock = requester.ports.clock;
    this.#backgroundRenewer = requester.ports.backgroundRenewer?.renew(session.ref, {
      intervalMs: validity.pace.intervalMs,
      sentMs,
    });
    this.#schedule();
  }

  /** Whether a heartbeat that was due has no answer, and no other was acknowledged since it was sent. */
  get unanswered(): boolean {
    return this.#unanswered;
  }

  /** S6. */
  hearBackgroundRenewer(): void {
    const beat = this.#stopped ? undefined : this.#backgroundRenewer?.take();
    if (beat !== undefined) this.#count(beat, beat.ttlMs);
  }

  /** Adopts the session's pace, which has changed. */
  keepPace(): void {
    this.#backgroundRenewer?.pace(this.#validity.pace.intervalMs);
    this.#schedule();
  }

  /** The background renewer stops at this moment of the monotonic clock. */
  limitTo(atMs: number): void {
    this.#backgroundRenewer?.until(atMs);
  }

  /** Stops the periodic heartbeats; `renew` still sends some. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#besidesTimer?.cancel();
    this.#backgroundRenewer?.end();
  }

  /**
   * Sends heartbeats until one is acknowledged.
   *
   * @throws ServiceError SESSION_EXPIRED when the session is lost; DEADLINE_EXCEEDED when none was acknowledged in
   *   time.
   */
  renew(timeoutMs: number): Promise<void> {
    const endsMs = this.#clock.monotonicMs() + timeoutMs;
    const { liveness } = this.#requester.ports;
    liveness.hold();
    return new Promise<void>((resolve, reject) => {
      const attempt = (cause?: ServiceError): void => {
        this.#session.check();
        const { lossReason } = this.#session;
        if (lossReason !== undefined) return reject(lossReason);
        const leftMs = endsMs - this.#clock.monotonicMs();
        if (leftMs <= 0) {
          return reject(
            new ServiceError('DEADLINE_EXCEEDED', `no heartbeat was acknowledged within ${timeoutMs} ms`, { cause }),
          );
        }
        this.#send(Math.min(leftMs, RENEW_ATTEMPT_MS), (error) => {
          if (error === undefined) return resolve();
          this.#clock.setTimer(Math.min(leftMs, this.#pauseMs()), () => attempt(error));
        });
      };
      attempt();
    }).finally(() => liveness.release());
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (this.#stopped) return;
    const leftMs = Math.max(0, this.#validity.dueMs - this.#clock.monotonicMs());
    this.#timer = this.#clock.setTimer(leftMs, () => this.#beat());
  }

  #beat(): void {
    this.#session.check();
    if (this.#stopped) return;
    const number = ++this.#number;
    const acknowledged = this.#acknowledged;
    const isDue = (): boolean => !this.#stopped && number === this.#number;
    this.#askBesides(isDue);
    this.#send(this.#validity.pace.intervalMs, (error) => {
      if (error === undefined || this.#stopped || acknowledged !== this.#acknowledged) return;
      this.#suspend(true); // Also while another gateway is tried.
      if (!isDue()) return;
      this.#besidesTimer?.cancel();
      this.#timer?.cancel();
      this.#timer = this.#clock.setTimer(this.#pauseMs(), () => this.#beat());
    });
  }

  /** S8. */
  #askBesides(isDue: () => boolean): void {
    const { gateways } = this.#requester;
    this.#besidesTimer?.cancel();
    if (gateways.count === 1) return;
    const { channel } = gateways;
    this.#besidesTimer = this.#clock.setTimer(this.#patienceMs(), () => {
      if (!isDue()) return;
      gateways.failed(channel, true);
      this.#beat();
    });
  }

  /** S8. */
  #patienceMs(): number {
    const { count } = this.#requester.gateways;
    return Math.max(PATIENCE_MIN_MS, (this.#validity.deadlineMs - this.#clock.monotonicMs()) / (count + 1));
  }

  #pauseMs(): number {
    return Math.min(RETRY_MIN_MS, this.#validity.pace.intervalMs / 4) + this.#requester.ports.random.int(RETRY_MIN_MS);
  }

  /**
   * Sends one heartbeat. It counts from its own send time, so the layer below does not retry it. `done` gets no error
   * if it was acknowledged, and the reason of the loss if the session is over by then.
   */
  #send(timeoutMs: number, done: (error: ServiceError | undefined) => void): void {
    const sent = { sentMs: this.#clock.monotonicMs(), sentWallMs: this.#clock.wallMs() };
    const { lease: id, incarnation } = this.#session.ref;
    const request = { query: { type: 'leaseKeepAlive', id, incarnation }, timeoutMs } as const;
    this.#requester.attempt(pipeQuery, request, timeoutMs, (error, reply) => {
      this.#session.check();
      const result = reply?.result;
      const renewed = result?.type === 'leaseKeepAlive' && result.ttlMs > 0;
      const gone = error?.code === 'LEASE_NOT_FOUND' || error?.code === 'SESSION_EXPIRED';
      if (gone || (error === undefined && !renewed)) this.#session.expired();
      const { lossReason } = this.#session;
      if (lossReason !== undefined) return done(lossReason);
      if (renewed) {
        this.#count(sent, result.ttlMs);
        this.#backgroundRenewer?.acknowledged(sent.sentMs);
      }
      done(error);
    });
  }

  #suspend(on: boolean): void {
    if (this.#unanswered === on) return;
    this.#unanswered = on;
    this.#session.suspended(on);
  }

  #count(sent: SentAt, ttlMs: number): void {
    if (!this.#validity.count(sent, ttlMs)) return;
    this.#suspend(false);
    this.#acknowledged++;
    this.#number++; // Those in flight are obsolete.
    this.#besidesTimer?.cancel();
    this.#schedule();
  }
}
