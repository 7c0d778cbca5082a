import { type Bytes, ServiceError, type Timer } from '@remora/base';
import type { AcquireAs, HoldMode, LockCommand, LockId, LockResult, Owner } from '@remora/lock';
import type { Command, CommandResult, PipeReply } from '@remora/protocol';
import type { HeldGrant, OwnerTurns } from '../session/owner.ts';
import type { LossListener, Session } from '../session/session.ts';
import { onAbort } from '../transport/abort.ts';
import type { SentCommand } from '../transport/operation.ts';
import { isLasting } from '../transport/request-errors.ts';
import type { Requester } from '../transport/requester.ts';
import { retryUntilAnswered } from '../transport/retry-until-answered.ts';
import { notInTime } from './acquire-errors.ts';

export interface AcquireRequest {
  readonly lock: LockId;
  readonly token: string;
  readonly attempt: number;
  /** When the caller called, on the monotonic clock. */
  readonly startedMs: number;
  readonly depthMax: number;
  /** How deep the handle may re-enter, unless that call says otherwise. */
  readonly levelsMax: number;
  readonly data: Bytes;
  readonly keepData: boolean;
  readonly delayMs: number;
  /** Undefined waits as long as the session lives; 0 does not wait. */
  readonly waitMs: number | undefined;
  /** The `wait` of the caller, counted from `startedMs`. */
  readonly askedWaitMs?: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly requestTimeoutMs: number;
  /** Absent: the lock exclusively. */
  readonly as?: AcquireAs | undefined;
  /** A re-entry into this grant and no other, unless `refusal` returns an error when its turn comes. */
  readonly reentry?: {
    readonly grant: HeldGrant;
    readonly refusal: () => ServiceError | undefined;
    readonly onGrant: () => void;
  };
  /** An upgrade of a lock that is held shared. */
  readonly upgrade?: {
    readonly refusal: () => ServiceError | undefined;
    /** Whether the owner already holds the lock exclusively. */
    readonly isAlone: () => boolean;
    /**
     * The upgrade was given up, and it is unknown whether the lock is still held shared. The owner's turn lasts until
     * `done`.
     */
    readonly onUnknown: (done: () => void) => void;
  };
}

/** How an acquire went. */
export interface AcquireStats {
  /**
   * The place in the queue at which it joined; 1 was next. 0: it did not join, or gave up before it learned its place.
   */
  readonly queuePosition: number;
  /** The time from the call until the grant, or until it was given up, in ms. */
  readonly waitMs: number;
  /** How often the request was sent: once, unless gateways or ranges were unavailable or the wait was long. */
  readonly attempts: number;
  /** The gateway of the last attempt, as `host:port`. */
  readonly gateway: string;
}

export interface Grant {
  readonly version: number;
  readonly depth: number;
  readonly stats: AcquireStats;
  readonly lockTimeMs: number;
  /** The data that an earlier holder left; undefined: none. */
  readonly keptData: Bytes | undefined;
  readonly turns: OwnerTurns;
  readonly held: HeldGrant;
}

type Granted = Extract<LockResult, { readonly type: 'granted' }>;

/** A waiter asks again after this long, so that it notices a lost answer. */
const ASK_MS = 60_000;
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

/**
 * One acquire, from the first request to the grant.
 *
 * A1. Every request carries the same owner and attempt number, so it finds its place in the queue, or its grant, again.
 * A2. An acquire that gives up (time-out, abort, error) sends a cancel, which leaves the queue or releases the grant,
 *     and stops a request that is still in flight. It keeps its owner's turn until the cancel is answered or can no
 *     longer be applied (owner.ts, W1). An upgrade is given up by a downgrade, and waits for its answer: the answer
 *     names the version under which the lock is held shared.
 * A3. A grant counts only if the session is alive when it arrives, by the client's own clocks.
 * A4. When the gateway cannot notify one more waiter, the acquire polls with pauses, each time under a new request id:
 *     a request that is sent again under the same id gets its first answer again.
 */
export class AcquireOperation implements LossListener {
  readonly #requester: Requester;
  readonly #session: Session;
  readonly #request: AcquireRequest;
  readonly #owner: Owner;
  readonly #turns: OwnerTurns;
  readonly #endsMs: number;
  #askings = 0;
  #hasTurn = false;
  #call: SentCommand | undefined;
  /** Attempts of the requests before the present one. */
  #earlierAttempts = 0;
  #queuePosition = 0;
  #waitTimer: Timer | undefined;
  #pauseTimer: Timer | undefined;
  #forgetSignal: (() => void) | undefined;
  #lossListener: number | undefined;
  #over = false;
  #resolve: ((grant: Grant | undefined) => void) | undefined;
  #reject: ((error: ServiceError) => void) | undefined;

  constructor(requester: Requester, session: Session, request: AcquireRequest) {
    this.#requester = requester;
    this.#session = session;
    this.#request = request;
    this.#owner = { session: session.ref, token: request.token };
    this.#turns = session.owners.of(request.lock, request.token);
    const { waitMs } = request;
    this.#endsMs = waitMs === undefined ? Number.POSITIVE_INFINITY : requester.ports.clock.monotonicMs() + waitMs;
  }

  /** Resolves to undefined when the lock is taken and the request does not wait. */
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
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.#giveUp(aborted(signal)));
    // Its deadline is checked when the grant arrives (A3).
    const { lossReason } = this.#session;
    if (lossReason !== undefined) return this.#end(lossReason);
    this.#lossListener = this.#session.addLossListener(this);
    if (waitMs !== undefined && waitMs > 0) {
      const timedOut = (): void => this.#giveUp(notInTime(this.#request, this.#details()));
      this.#waitTimer = this.#requester.ports.clock.setTimer(waitMs, timedOut);
    }
    this.#turns.enter(() => this.#takeTurn());
    if (this.#hasTurn || this.#over || waitMs !== 0) return;
    const timedOut = (): void =>
      this.#giveUp(new ServiceError('DEADLINE_EXCEEDED', 'another acquire of the same owner is still in progress'));
    this.#waitTimer = this.#requester.ports.clock.setTimer(this.#request.requestTimeoutMs, timedOut);
  }

  #takeTurn(): boolean {
    if (this.#over) return false;
    const refusal = (this.#request.reentry ?? this.#request.upgrade)?.refusal();
    if (refusal !== undefined) {
      this.#end(refusal);
      return false;
    }
    if (this.#request.upgrade?.isAlone()) {
      this.#finishUpgraded();
      return false;
    }
    if (this.#request.waitMs === 0) this.#waitTimer?.cancel();
    this.#hasTurn = true;
    this.#turns.converting = this.#request.upgrade !== undefined;
    this.#turns.attempt = Math.max(this.#turns.attempt, this.#request.attempt);
    this.#ask();
    return true;
  }

  /** A holder that has the lock alone already asks for nothing: giving up such an upgrade would leave it shared. */
  #finishUpgraded(): void {
    const { grant, levels: depth } = this.#turns;
    this.#finish(this.#grantOf({ version: grant.version, depth, lockTimeMs: 0 }));
  }

  #ask(): void {
    if (this.#over) return;
    this.#earlierAttempts += this.#call?.attempts ?? 0;
    this.#askings++;
    if (this.#askings > 1) this.#turns.askedAgain = true;
    const { requestTimeoutMs: timeoutMs, waitMs } = this.#request;
    const command: Command = { type: 'lock', command: this.#command() };
    const options = waitMs === 0 ? { timeoutMs } : { timeoutMs, queue: { waitMs: this.#queueMs(), answerMs: ASK_MS } };
    this.#call = this.#requester.sendCommand(command, options, (error, reply) => {
      if (this.#over) return;
      if (error !== undefined) this.#failed(error);
      else this.#answered(reply);
    });
  }

  /** The remaining wait, as a command expresses it: 0 has no end. */
  #queueMs(): number {
    if (this.#endsMs === Number.POSITIVE_INFINITY) return 0;
    return Math.max(1, this.#endsMs - this.#requester.ports.clock.monotonicMs());
  }

  #command(): LockCommand {
    const { waitMs, lock, attempt, depthMax, data, keepData, delayMs, as } = this.#request;
    const owner = this.#owner;
    const wait = waitMs !== 0;
    // The gateway computes the deadline, as it knows the range's time, and ends the wait. The lock gets no deadline: a
    // place in the queue that the client comes back to stays as long as the session.
    const [waitUntilMs, deadlineMs] = [0, 0];
    const usual = { type: 'acquire', lock, owner, wait, waitUntilMs, deadlineMs, attempt, depthMax, data } as const;
    // Spreading objects costs much more, and nearly all acquires need only these fields.
    if (as === undefined && !keepData && delayMs === 0) return usual;
    return {
      ...usual,
      ...(as === undefined ? {} : { as }),
      ...(keepData ? { keepData } : {}),
      ...(delayMs > 0 ? { delayMs } : {}),
    };
  }

  #answered(reply: PipeReply<CommandResult> | undefined): void {
    if (reply?.result.type !== 'lock') {
      return this.#giveUp(new ServiceError('INTERNAL', `an acquire was answered by ${String(reply?.result.type)}`));
    }
    const { result } = reply.result;
    // The first position in an answer is the one at which it joined.
    this.#queuePosition ||= reply.queuedAt ?? (result.type === 'queued' ? result.position : 0);
    switch (result.type) {
      case 'granted':
        return this.#granted(result);
      case 'busy':
        return this.#finish(undefined);
      case 'queued':
        return this.#askLater();
      case 'refused':
        if (result.code === 'SESSION_EXPIRED') return this.#session.expired();
        return this.#refused(new ServiceError(result.code, result.message, { details: this.#details() }));
      default:
        return this.#giveUp(new ServiceError('INTERNAL', `an acquire was answered by ${result.type}`));
    }
  }

  /**
   * A2. Only this request was refused: an earlier one, with another request id, may still arrive and be granted. That
   *     cannot happen to an upgrade whose owner has lost the lock; but an owner that was removed from a double barrier
   *     would enter it again.
   */
  #refused(error: ServiceError): void {
    const isOver = error.code === 'LOCK_NOT_HELD' && this.#request.upgrade !== undefined;
    if (this.#askings > 1 && !isOver) this.#giveUp(error);
    else this.#end(error);
  }

  #granted(grant: Granted): void {
    // A3. This check may find the session lost, which ends this operation; the server releases its locks.
    if (!this.#session.alive) return;
    const { reentry, upgrade, as } = this.#request;
    if (reentry !== undefined && reentry.grant.version !== grant.version) {
      return this.#giveUp(new ServiceError('LOCK_NOT_HELD', 'the lock was taken away'));
    }
    if (upgrade !== undefined) this.#turns.converted(grant.version, 'exclusive');
    else this.#turns.granted(grant.version, modeOf(as));
    reentry?.onGrant();
    this.#finish(this.#grantOf(grant));
  }

  #grantOf({ version, depth, lockTimeMs, keptData }: Omit<Granted, 'type'>): Grant {
    const turns = this.#turns;
    return { version, depth, lockTimeMs, keptData, turns, held: turns.grant, stats: this.#stats() };
  }

  /** For an error; without a position if none is known. */
  #details(): Readonly<Record<string, unknown>> {
    const { queuePosition, ...known } = this.#stats();
    return queuePosition === 0 ? known : { queuePosition, ...known };
  }

  #stats(): AcquireStats {
    return {
      queuePosition: this.#queuePosition,
      waitMs: this.#requester.ports.clock.monotonicMs() - this.#request.startedMs,
      attempts: this.#earlierAttempts + (this.#call?.attempts ?? 0),
      gateway: this.#call?.gateway ?? '',
    };
  }

  #failed(error: ServiceError): void {
    if (error.code === 'SESSION_EXPIRED' || error.code === 'LEASE_NOT_FOUND') return this.#session.expired();
    const lasting = isLasting(error);
    // A waiter keeps asking until its time-out, its signal or the end of its session.
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
    const toldServer = this.#hasTurn && this.#session.alive && !this.#requester.closed;
    // The turn goes on until the cancel is answered.
    if (toldServer) this.#hasTurn = false;
    if (toldServer && this.#request.upgrade !== undefined) return this.#takeBackUpgrade(error);
    this.#end(error);
    if (!toldServer) return;
    this.#turns.askedAgain = true;
    const { lock, attempt } = this.#request;
    const command: Command = {
      type: 'lock',
      command: { type: 'cancel', lock, owner: this.#owner, deadlineMs: 0, attempt },
    };
    retryUntilAnswered({ requester: this.#requester, session: this.#session }, command, (failure) => {
      this.#turns.leave();
      if (failure === undefined) return;
      const { logger } = this.#requester.ports;
      logger.warn(
        { code: failure.code },
        'an acquire could not be canceled; its place in the queue ends with the session',
      );
    });
  }

  /** A2. */
  #takeBackUpgrade(error: ServiceError): void {
    this.#stop();
    const { lock, attempt, requestTimeoutMs, upgrade } = this.#request;
    const command: Command = { type: 'lock', command: { type: 'downgrade', lock, owner: this.#owner, attempt } };
    this.#requester.sendCommand(command, { timeoutMs: requestTimeoutMs }, (_failure, reply) => {
      const result = reply?.result.type === 'lock' ? reply.result.result : undefined;
      this.#turns.converting = false;
      if (result?.type !== 'granted' && upgrade !== undefined) upgrade.onUnknown(() => this.#turns.leave());
      else {
        if (result?.type === 'granted') this.#turns.converted(result.version, 'shared');
        this.#turns.leave();
      }
      this.#reject?.(error);
    });
  }

  /** The server ends what belongs to a lost session, so there is nothing to cancel. */
  onSessionLost(reason: ServiceError): void {
    this.#end(reason);
  }

  #end(error: ServiceError): void {
    if (this.#over) return;
    this.#stop();
    this.#reject?.(error);
    this.#passTurn();
  }

  /** Without a grant the lock is taken. */
  #finish(grant: Grant | undefined): void {
    this.#stop();
    this.#resolve?.(grant);
    this.#passTurn();
  }

  #stop(): void {
    this.#over = true;
    this.#call?.cancel();
    this.#waitTimer?.cancel();
    this.#pauseTimer?.cancel();
    this.#forgetSignal?.();
    if (this.#lossListener !== undefined) this.#session.removeLossListener(this.#lossListener);
  }

  #passTurn(): void {
    if (!this.#hasTurn) return;
    this.#hasTurn = false;
    this.#turns.converting = false;
    this.#turns.leave();
  }
}

function modeOf(as: AcquireAs | undefined): HoldMode {
  return as?.type === 'enter' ? 'shared' : as?.type === 'shared' || as?.type === 'permits' ? as.type : 'exclusive';
}

export function lockResult(reply: PipeReply<CommandResult> | undefined): LockResult {
  const answer = lockAnswer(reply);
  if (answer instanceof ServiceError) throw answer;
  return answer;
}

/** The same for callers that do not throw. */
export function lockAnswer(reply: PipeReply<CommandResult> | undefined): LockResult | ServiceError {
  const result = reply?.result;
  if (result?.type === 'lock') return result.result;
  return new ServiceError('INTERNAL', `a lock command was answered by ${String(result?.type)}`);
}

export function aborted(signal: AbortSignal): ServiceError {
  return new ServiceError('CANCELED', 'the acquire was aborted', { cause: signal.reason });
}
