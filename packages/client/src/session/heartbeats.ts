import { type Clock, ServiceError, type Timer } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { pipeQuery } from '@remora/protocol';
import type { RenewedInBackground } from '../ports.ts';
import type { Requester } from '../transport/requester.ts';
import type { SentAt, SessionValidity } from './session-validity.ts';

/** The session that is kept alive. */
export interface BeatingSession {
  readonly ref: SessionRef;
  readonly lossReason: ServiceError | undefined;
  /** Looks whether it is over by now. */
  check(): void;
  /** The server said that it is. */
  expired(): void;
}

const RETRY_MIN_MS = 50;
/** S8. A gateway that is well has answered by then. */
const PATIENCE_MIN_MS = 100;
/** Of a renewal that somebody waits for: so long is one gateway waited for. */
const RENEW_ATTEMPT_MS = 1_000;

/**
 * The heartbeats of a session, and those of its stand-in: each that is acknowledged moves its validity on. The rules are
 * those of the session (`session.ts`), S6 and S8 above all. One that is due is repeated until one is acknowledged.
 */
export class Heartbeats {
  readonly #session: BeatingSession;
  readonly #validity: SessionValidity;
  readonly #requester: Requester;
  readonly #clock: Clock;
  readonly #backgroundRenewer: RenewedInBackground | undefined;
  #stopped = false;
  #unanswered = false;
  /** Of the one that was sent last because it was due; later ones were acknowledged since where it is higher. */
  #number = 0;
  /** How many were acknowledged. */
  #acknowledged = 0;
  #timer: Timer | undefined;
  #besidesTimer: Timer | undefined;

  /** `sentMs`: when the session was asked for, which counts as the first one. */
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

  /** Whether one that was due had no answer, and no other was acknowledged since it was sent. */
  get unanswered(): boolean {
    return this.#unanswered;
  }

  /** S6. */
  hearBackgroundRenewer(): void {
    const beat = this.#stopped ? undefined : this.#backgroundRenewer?.take();
    if (beat !== undefined) this.#count(beat, beat.ttlMs);
  }

  /** Keeps to the session's pace, which has changed. */
  keepPace(): void {
    this.#backgroundRenewer?.pace(this.#validity.pace.intervalMs);
    this.#schedule();
  }

  /** The stand-in is to send none from then on, on the monotonic clock. */
  limitTo(atMs: number): void {
    this.#backgroundRenewer?.until(atMs);
  }

  /** None is sent any more but those that somebody asks for. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#besidesTimer?.cancel();
    this.#backgroundRenewer?.end();
  }

  /**
   * Sends one, again and again until one is acknowledged.
   *
   * @throws ServiceError SESSION_EXPIRED when the session is lost; DEADLINE_EXCEEDED when none was acknowledged in time.
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
      this.#unanswered = true; // Also while another gateway is asked besides.
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
   * One heartbeat. Each counts from its own sending; so none is repeated by the layer below. Tells whether it was
   * acknowledged, unless the session is over by then and `done` is not about that.
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

  #count(sent: SentAt, ttlMs: number): void {
    if (!this.#validity.count(sent, ttlMs)) return;
    this.#unanswered = false;
    this.#acknowledged++;
    this.#number++; // Those that are under way are not needed any more.
    this.#besidesTimer?.cancel();
    this.#schedule();
  }
}
