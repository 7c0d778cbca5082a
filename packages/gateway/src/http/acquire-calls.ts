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
  /** What is being taken back, by all calls. */
  readonly takingBack: Set<Promise<unknown>>;
}

/** A grant, and a function that takes it back if the client is gone before it has the answer. */
export interface Acquired {
  readonly grant: GrantJson;
  readonly takeBack: () => void;
}

export interface LeftJson {
  /** The version of the round: the same for all that leave together. */
  readonly version: number;
}

const BEATS_PER_TTL = 3;
const BEAT_PAUSE_MIN_MS = 200;
/** A session that was renewed less than this part of its TTL ago is not renewed again for the answer. */
const FRESH_FRACTION = 0.1;
/** For taking back; at the latest, the end of the session releases the lock. */
const LEAVE_TIMEOUT_MS = 10_000;
/** Any time except 0 in a release: the range leaves a mark that refuses an acquire which is still in flight. */
export const LEAVE_MARK = 1;

/**
 * Calls over HTTP that may wait: acquires, upgrades, and barriers.
 *
 * HA1. While a call waits, its session is renewed by this node; before and after that, only the client renews it.
 * HA2. A call without a token of the client's own ends with its connection: if the client does not get the answer, its
 *      place in the queue and its grant are taken back.
 * HA3. A client may repeat a call with a token at another node while this one runs. So this node takes nothing back
 *      that has the token: the place and the grant stay until the client repeats the call or releases, or the session
 *      ends.
 * HA4. A grant is answered only if the session is known to have been alive after it. The times in the answer count from
 *      when the renewal that showed it was sent.
 * HA5. The cluster remembers that a caller has passed a barrier until the caller confirms it. A call without a token
 *      cannot be repeated, so the record is removed before the answer.
 * HA6. Upgrades, and leaving a barrier, name the token: HA3 holds for them.
 * HA7. If a grant or a place in the queue may remain, the answer is not a refusal: the client would not come back for
 *      it. The exception is LOCK_TIMEOUT for a client with a token, which may come back.
 * HA8. A call that may wait takes a slot before it does anything, so that there is room for the calls that end waits.
 */
export class AcquireCalls {
  readonly #deps: AcquireCallsDeps;

  constructor(deps: AcquireCallsDeps) {
    this.#deps = deps;
  }

  /** @throws ServiceError LOCK_BUSY, with the holder, or LOCK_TIMEOUT if others hold the lock. */
  async acquire(lock: LockId, fields: Fields, signal: AbortSignal): Promise<Acquired> {
    return this.#asked(readAcquire(lock, fields, this.#deps.random), signal);
  }

  /**
   * Converts a shared hold to an exclusive one without releasing it. @throws ServiceError as `acquire`, and
   * LOCK_UPGRADE_CONFLICT.
   */
  async upgrade(lock: LockId, fields: Fields, signal: AbortSignal): Promise<GrantJson> {
    return (await this.#asked(readUpgrade(lock, fields), signal)).grant;
  }

  /** @throws ServiceError LOCK_BUSY or LOCK_TIMEOUT if the caller has left, and others have not. */
  async leave(lock: LockId, fields: Fields, signal: AbortSignal): Promise<LeftJson> {
    const { version } = (await this.#asked(readLeave(lock, fields), signal)).grant;
    return { version };
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

  /** HA7. An error after the acquire was sent leaves the outcome open: it may hold the lock, or wait for it. */
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
      // The answer may be a remembered one, of a session opened a while ago: a renewal tells how long it lives.
      return request.mayRepeat ? await calls.renew(opened.ref) : opened;
    } catch (error) {
      const { code } = toServiceError(error);
      if (code === 'LEASE_EXISTS') return calls.renew({ lease: id, incarnation: 0 });
      if (code !== 'SESSION_EXPIRED') throw error;
      throw new ServiceError(code, 'the session of this token has ended; acquire with a new token', { cause: error });
    }
  }

  /** HA2, HA3. Resolves with true if nothing that was acquired remains. Never rejects. */
  async #takeBack(request: AcquireRequest, session: SessionRef): Promise<boolean> {
    if (request.mayRepeat) return false;
    const { takingBack } = this.#deps;
    const leaving = this.#withdraw(request, session).finally(() => takingBack.delete(leaving));
    takingBack.add(leaving);
    return leaving;
  }

  async #withdraw({ lock, token, attempt }: AcquireRequest, session: SessionRef): Promise<boolean> {
    const { calls } = this.#deps;
    const owner = { session, token };
    const cancel = { type: 'cancel', lock, owner, attempt, deadlineMs: LEAVE_MARK } as const;
    const done = (): boolean => true;
    // What cannot be taken back now ends with the session: without a token it is the call's own, and nothing renews it.
    const failed = (): boolean => false;
    const isCanceled = await calls.lock(cancel, { timeoutMs: LEAVE_TIMEOUT_MS }).then(done, failed);
    const isClosed = await calls.close(session).then(done, failed);
    return isCanceled || isClosed;
  }
}

/** The acquire was sent, and may hold the lock or wait for it (HA7). */
class OutcomePending extends Error {
  override readonly name = 'OutcomePending';
  override readonly cause: ServiceError;

  constructor(cause: ServiceError) {
    super(cause.message);
    this.cause = cause;
  }
}

/** Throws; the end of the session is a known outcome. */
function outcomePending(thrown: unknown): never {
  const error = toServiceError(thrown);
  throw error.code === 'SESSION_EXPIRED' ? error : new OutcomePending(error);
}

function notKnown(cause: ServiceError): ServiceError {
  const message = 'the result of the acquire is unknown: the lock may be held, or still waited for';
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}

/** Renews a session while a call waits in it (HA1). */
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

  /** Resolves with a renewal made a moment ago. @throws ServiceError SESSION_EXPIRED */
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

  /** Retries, unless the session has ended: then the lock answers its waiters. */
  #missed(error: unknown): void {
    if (this.#stopped || (error instanceof ServiceError && error.code === 'SESSION_EXPIRED')) return;
    this.#schedule(Math.max(BEAT_PAUSE_MIN_MS, this.#renewal.ttlMs / (BEATS_PER_TTL * 4)));
  }
}
