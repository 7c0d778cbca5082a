import { type Bytes, ServiceError, type Timer } from '@remora/base';
import type { LockId, LockResult, Owner } from '@remora/lock';
import type { CallHandle, Command, CommandResult, PipeReply } from '@remora/protocol';
import { clientClosed, type Requester } from './requester.ts';
import type { Session } from './session.ts';

export interface AcquireRequest {
  readonly lock: LockId;
  readonly token: string;
  readonly attempt: number;
  readonly depthMax: number;
  readonly data: Bytes;
  /** Undefined waits as long as the session lives; 0 does not wait. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly requestTimeoutMs: number;
}

export interface Grant {
  readonly version: number;
  readonly depth: number;
  readonly lockTimeMs: number;
  /** The lock was asked for more than once, so that an asking may still be under way somewhere. */
  readonly askedAgain: boolean;
}

/** A wait is asked for anew at this interval, so that an answer lost on the way is noticed. */
const ASK_MS = 60_000;
/** How long a cancel is tried; whatever it does not reach ends with the session. */
const CANCEL_TIMEOUT_MS = 30_000;
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

/**
 * One acquire, from the first asking to the grant.
 *
 * A1. Every asking carries the same owner and attempt number, so it finds its place in the queue, or its grant, again.
 * A2. Whoever gives up (time-out, abort, error) sends a cancel, which leaves the queue or gives a grant back and stops
 *     an asking that is still under way.
 * A3. A grant counts only if the session is alive when it arrives, by the client's own reckoning.
 */
export class AcquireOperation {
  readonly #requester: Requester;
  readonly #session: Session;
  readonly #request: AcquireRequest;
  readonly #owner: Owner;
  readonly #endsMs: number;
  #askings = 0;
  #call: CallHandle | undefined;
  #waitTimer: Timer | undefined;
  #pauseTimer: Timer | undefined;
  readonly #forget: (() => void)[] = [];
  #over = false;
  #resolve: (grant: Grant | undefined) => void = () => {};
  #reject: (error: ServiceError) => void = () => {};

  constructor(requester: Requester, session: Session, request: AcquireRequest) {
    this.#requester = requester;
    this.#session = session;
    this.#request = request;
    this.#owner = { session: session.ref, token: request.token };
    const { waitMs } = request;
    this.#endsMs = requester.ports.clock.monotonicMs() + (waitMs === undefined ? Number.POSITIVE_INFINITY : waitMs);
  }

  /** Undefined: the lock is taken, and the request does not wait. */
  run(): Promise<Grant | undefined> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#start();
    });
  }

  #start(): void {
    const { signal, waitMs } = this.#request;
    if (signal?.aborted) return this.#end(aborted(signal));
    if (signal !== undefined) {
      const onAbort = (): void => this.#giveUp(aborted(signal));
      signal.addEventListener('abort', onAbort, { once: true });
      this.#forget.push(() => signal.removeEventListener('abort', onAbort));
    }
    if (!this.#session.alive) return this.#end(this.#session.lossReason ?? clientClosed());
    // The server ends what belongs to a lost session: there is nothing to cancel.
    this.#forget.push(this.#session.onLoss((reason) => this.#end(reason)));
    if (waitMs !== undefined && waitMs > 0) {
      const timedOut = (): void => this.#giveUp(new ServiceError('LOCK_TIMEOUT', 'the lock was not granted in time'));
      this.#waitTimer = this.#requester.ports.clock.setTimer(waitMs, timedOut);
    }
    this.#ask();
  }

  #ask(): void {
    if (this.#over) return;
    this.#askings++;
    const { requestTimeoutMs, waitMs, lock, attempt, depthMax, data } = this.#request;
    const waiting = waitMs !== 0;
    const remainingMs = this.#endsMs - this.#requester.ports.clock.monotonicMs();
    const command: Command = {
      type: 'lock',
      // Both times are reckoned by the gateway, which knows the range's time.
      command: {
        type: 'acquire',
        lock,
        owner: this.#owner,
        wait: waiting,
        waitUntilMs: 0,
        deadlineMs: 0,
        attempt,
        depthMax,
        data,
      },
    };
    const queue = { waitMs: Number.isFinite(remainingMs) ? Math.max(1, remainingMs) : 0, answerMs: ASK_MS };
    const options = { timeoutMs: requestTimeoutMs, ...(waiting ? { queue } : {}) };
    this.#call = this.#requester.sendCommand(command, options, (error, reply) => {
      if (this.#over) return;
      if (error !== undefined) this.#failed(error);
      else this.#answered(reply);
    });
  }

  #answered(reply: PipeReply<CommandResult> | undefined): void {
    const result = lockResult(reply);
    switch (result.type) {
      case 'granted': {
        // A3. Looking at the session may find it lost, which ends this operation; the server frees its locks.
        if (!this.#session.alive) return;
        const { version, depth, lockTimeMs } = result;
        return this.#finish(() => this.#resolve({ version, depth, lockTimeMs, askedAgain: this.#askings > 1 }));
      }
      case 'busy':
        return this.#finish(() => this.#resolve(undefined));
      case 'queued':
        return this.#askLater();
      case 'refused':
        if (result.code === 'SESSION_EXPIRED') return this.#session.expired();
        return this.#end(new ServiceError(result.code, result.message));
      default:
        return this.#giveUp(new ServiceError('INTERNAL', `an acquire was answered by ${result.type}`));
    }
  }

  #failed(error: ServiceError): void {
    if (error.code === 'SESSION_EXPIRED' || error.code === 'LEASE_NOT_FOUND') return this.#session.expired();
    const lasting = error.retry === 'no' && error.code !== 'DEADLINE_EXCEEDED';
    // Whoever waits keeps asking; its time-out, its signal or the session's end stops it.
    if (lasting || this.#request.waitMs === 0 || this.#requester.closed) this.#giveUp(error);
    else this.#askLater();
  }

  #askLater(): void {
    const { clock, random } = this.#requester.ports;
    const ceilingMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(this.#askings, 6));
    this.#pauseTimer = clock.setTimer(ceilingMs / 2 + random.int(Math.ceil(ceilingMs / 2)), () => this.#ask());
  }

  /** A2. */
  #giveUp(error: ServiceError): void {
    if (this.#over) return;
    this.#call?.cancel();
    this.#end(error);
    if (!this.#session.alive || this.#requester.closed) return;
    const { lock, attempt } = this.#request;
    const command: Command = {
      type: 'lock',
      command: { type: 'cancel', lock, owner: this.#owner, deadlineMs: 0, attempt },
    };
    this.#requester.sendCommand(command, { timeoutMs: CANCEL_TIMEOUT_MS }, (failure) => {
      if (failure === undefined) return;
      const { logger } = this.#requester.ports;
      logger.warn({ code: failure.code }, 'an acquire could not be cancelled; its place ends with the session');
    });
  }

  #end(error: ServiceError): void {
    this.#finish(() => this.#reject(error));
  }

  #finish(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#call?.cancel();
    this.#waitTimer?.cancel();
    this.#pauseTimer?.cancel();
    for (const forget of this.#forget) forget();
    settle();
  }
}

export function lockResult(reply: PipeReply<CommandResult> | undefined): LockResult {
  const result = reply?.result;
  if (result?.type === 'lock') return result.result;
  throw new ServiceError('INTERNAL', `a lock command was answered by ${String(result?.type)}`);
}

function aborted(signal: AbortSignal): ServiceError {
  return new ServiceError('CANCELED', 'the acquire was aborted', { cause: signal.reason });
}
