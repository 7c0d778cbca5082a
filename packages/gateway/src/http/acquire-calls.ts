import { type Clock, type Random, ServiceError, type Timer, toServiceError } from '@remora/base';
import type { LockId, LockResult, SessionRef } from '@remora/lock';
import type { WaitSlots } from '../routing/calls/wait-slots.ts';
import {
  type AcquireRequest,
  acquireCommand,
  ownLease,
  ownRequestId,
  readAcquire,
  readLeave,
  readUpgrade,
} from './acquire-request.ts';
import type { Fields } from './fields.ts';
import { type GrantJson, grantJson, holderJson } from './lock-json.ts';
import { type RangeCalls, type Renewal, unlessRefused } from './range-calls.ts';

export interface AcquireCallsDeps {
  readonly calls: RangeCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly waits: WaitSlots;
}

/** A grant, and how to take it back from a client that was gone before it heard of it. */
export interface Acquired {
  readonly grant: GrantJson;
  readonly takeBack: () => void;
}

export interface LeftJson {
  /** Of the round: the same one for all who left together. */
  readonly version: number;
}

const BEATS_PER_TTL = 3;
const BEAT_PAUSE_MIN_MS = 200;
/** A session that was renewed this much of its TTL ago need not be renewed again for the answer. */
const FRESH_FRACTION = 0.1;
/** For what is taken back; the end of the session is the latest. */
const LEAVE_TIMEOUT_MS = 10_000;
/** Any time but 0 in a release: the backend leaves a mark that stops an asking which is still under way. */
export const LEAVE_MARK = 1;

/**
 * What is waited for over HTTP: acquires, upgrades, and barriers.
 *
 * HA1. While the client waits, its session is renewed for it; nobody does so before or afterwards.
 * HA2. A call without a token of the client's own ends with its connection: what is not answered to it is taken back, its
 *      place in the queue as well as its grant.
 * HA3. A call with a token may be under way elsewhere, repeated. So the server takes nothing back that has this token:
 *      the place and the grant stay until the client comes for them, releases, or the session ends.
 * HA4. A grant is answered only if the session is known to have been alive after it; what is answered about its time
 *      counts from the sending of the renewal that showed it.
 * HA5. The cluster remembers that somebody has passed a barrier until it says that it knows. Of a call without a token
 *      nobody can ask again, so it is forgotten before the answer.
 * HA6. Upgrades, and leaving a barrier, name the token: HA3 holds for them.
 * HA7. What may stay (a grant, a place in the queue) is not told as refused: its client would not come for it. Only that the
 *      time to wait is over is said by its name to who has a token, and may come back.
 * HA8. What may wait takes a slot before anything is done, so that there is room for what ends waits.
 */
export class AcquireCalls {
  readonly #deps: AcquireCallsDeps;
  readonly #leaving = new Set<Promise<unknown>>();

  constructor(deps: AcquireCallsDeps) {
    this.#deps = deps;
  }

  /** @throws ServiceError LOCK_BUSY or LOCK_TIMEOUT when others have it; LOCK_BUSY says who. */
  async acquire(lock: LockId, fields: Fields, signal: AbortSignal): Promise<Acquired> {
    return this.#asked(readAcquire(lock, fields, this.#deps.random), signal);
  }

  /** From shared to alone, without letting go. @throws ServiceError as `acquire`, and LOCK_UPGRADE_CONFLICT. */
  async upgrade(lock: LockId, fields: Fields, signal: AbortSignal): Promise<GrantJson> {
    return (await this.#asked(readUpgrade(lock, fields), signal)).grant;
  }

  /** @throws ServiceError LOCK_BUSY or LOCK_TIMEOUT when it has left, and others have not. */
  async leave(lock: LockId, fields: Fields, signal: AbortSignal): Promise<LeftJson> {
    const { version } = (await this.#asked(readLeave(lock, fields), signal)).grant;
    return { version };
  }

  /** Resolves when what is being taken back has been. */
  async left(): Promise<void> {
    await Promise.all(this.#leaving);
  }

  async #asked(request: AcquireRequest, signal: AbortSignal): Promise<Acquired> {
    signal.throwIfAborted();
    if (request.waitMs === 0) return this.#answered(request, signal);
    const { waits } = this.#deps;
    const giveSlot = waits.take(); // HA8
    if (giveSlot === undefined) throw waits.refusal();
    return this.#answered(request, signal).finally(giveSlot);
  }

  async #answered(request: AcquireRequest, signal: AbortSignal): Promise<Acquired> {
    const renewal = await this.#session(request);
    try {
      const grant = await this.#granted(request, renewal, signal);
      if (request.as?.type === 'pass') await this.#takeBack(request, renewal.ref); // HA5
      return { grant, takeBack: () => void this.#takeBack(request, renewal.ref) };
    } catch (error) {
      const isTakenBack = await this.#takeBack(request, renewal.ref);
      if (!(error instanceof OutcomePending)) throw error;
      const { cause } = error;
      throw isTakenBack || (request.mayRepeat && cause.code === 'LOCK_TIMEOUT') ? cause : notKnown(cause); // HA7
    }
  }

  async #granted(request: AcquireRequest, renewal: Renewal, signal: AbortSignal): Promise<GrantJson> {
    const { clock } = this.#deps;
    const heart = new Heart(this.#deps, renewal);
    try {
      const result = await this.#result(request, renewal.ref, signal);
      if (result.type === 'busy') {
        throw new ServiceError('LOCK_BUSY', 'the lock is held by another owner', {
          details: { shown: { holder: holderJson(result.holder) } },
        });
      }
      if (result.type === 'queued') {
        throw new OutcomePending(new ServiceError('UNAVAILABLE', 'the wait was interrupted; repeat the call'));
      }
      const granted = unlessRefused(result, 'granted');
      const { ref, ttlMs, atMs } = await heart.fresh().catch(outcomePending); // HA4
      if (signal.aborted) outcomePending(signal.reason);
      return grantJson(request.token, granted, { ref, ttlMs, ageMs: clock.monotonicMs() - atMs });
    } finally {
      heart.stop();
    }
  }

  /** HA7. Whoever is not told how it ended, as the wait did, may have been granted the lock, or wait for it. */
  async #result(request: AcquireRequest, session: SessionRef, signal: AbortSignal): Promise<LockResult> {
    const waiting = request.waitMs > 0 ? { waitMs: request.waitMs } : {};
    try {
      return await this.#deps.calls.lock(acquireCommand(request, session), waiting, signal);
    } catch (thrown) {
      const error = toServiceError(thrown);
      const waits = error.code === 'LOCK_TIMEOUT' || error.details?.queued === true;
      throw waits || signal.aborted ? new OutcomePending(error) : error;
    }
  }

  async #session(request: AcquireRequest): Promise<Renewal> {
    const { calls } = this.#deps;
    if (request.session !== undefined) return calls.renew(request.session);
    const { ttlMs, attributes } = request;
    const id = ownLease(request);
    try {
      const opened = await calls.open({ id, ttlMs, attributes }, ownRequestId(request));
      // Remembered, it may have been opened a while ago; so what is known of its time is asked for.
      return request.mayRepeat ? await calls.renew(opened.ref) : opened;
    } catch (error) {
      const { code } = toServiceError(error);
      if (code === 'LEASE_EXISTS') return calls.renew({ lease: id, incarnation: 0 });
      if (code !== 'SESSION_EXPIRED') throw error;
      throw new ServiceError(code, 'the session of this token has ended; acquire with a new token', { cause: error });
    }
  }

  /** HA2, HA3. Whether nothing stays that was acquired. Never rejects. */
  async #takeBack(request: AcquireRequest, session: SessionRef): Promise<boolean> {
    if (request.mayRepeat) return false;
    const leaving = this.#withdraw(request, session).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
    return leaving;
  }

  async #withdraw({ lock, token, attempt }: AcquireRequest, session: SessionRef): Promise<boolean> {
    const { calls } = this.#deps;
    const owner = { session, token };
    const cancel = { type: 'cancel', lock, owner, attempt, deadlineMs: LEAVE_MARK } as const;
    const done = (): boolean => true;
    // What cannot be taken back now goes with the session: without a token it is the call's own, and nobody renews it.
    const failed = (): boolean => false;
    const isCanceled = await calls.lock(cancel, { timeoutMs: LEAVE_TIMEOUT_MS }).then(done, failed);
    const isClosed = await calls.close(session).then(done, failed);
    return isCanceled || isClosed;
  }
}

/** The acquire was asked for, and may hold the lock or wait for it (HA7). */
class OutcomePending extends Error {
  override readonly name = 'OutcomePending';
  override readonly cause: ServiceError;

  constructor(cause: ServiceError) {
    super(cause.message);
    this.cause = cause;
  }
}

/** That the session is over is known to be the end of it. */
function outcomePending(thrown: unknown): never {
  const error = toServiceError(thrown);
  throw error.code === 'SESSION_EXPIRED' ? error : new OutcomePending(error);
}

function notKnown(cause: ServiceError): ServiceError {
  const message = 'the result of the acquire is unknown: the lock may be held, or still waited for';
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}

/** Renews a session while somebody waits in it (HA1). */
class Heart {
  readonly #deps: AcquireCallsDeps;
  #renewal: Renewal;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(deps: AcquireCallsDeps, renewal: Renewal) {
    this.#deps = deps;
    this.#renewal = renewal;
    this.#schedule(renewal.ttlMs / BEATS_PER_TTL);
  }

  /** Renewed a moment ago. @throws ServiceError SESSION_EXPIRED */
  async fresh(): Promise<Renewal> {
    this.stop();
    const { ttlMs, atMs, ref } = this.#renewal;
    const ageMs = this.#deps.clock.monotonicMs() - atMs;
    if (ageMs > ttlMs * FRESH_FRACTION) this.#renewal = await this.#deps.calls.renew(ref);
    return this.#renewal;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #schedule(delayMs: number): void {
    this.#timer = this.#deps.clock.setTimer(delayMs, () => {
      this.#deps.calls.renew(this.#renewal.ref).then(
        (renewal) => this.#renewed(renewal),
        (error: unknown) => this.#missed(error),
      );
    });
  }

  #renewed(renewal: Renewal): void {
    if (this.#stopped) return;
    this.#renewal = renewal;
    this.#schedule(renewal.ttlMs / BEATS_PER_TTL);
  }

  /** When the session is over, its waiters are told so by the lock. */
  #missed(error: unknown): void {
    if (this.#stopped || (error instanceof ServiceError && error.code === 'SESSION_EXPIRED')) return;
    this.#schedule(Math.max(BEAT_PAUSE_MIN_MS, this.#renewal.ttlMs / (BEATS_PER_TTL * 4)));
  }
}
