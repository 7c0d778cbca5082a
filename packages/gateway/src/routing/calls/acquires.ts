import { type Clock, type Random, ServiceError } from '@remora/base';
import type { LockCommand } from '@remora/lock';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import type { BackendDone, RequestOptions } from '../../backend.ts';
import type { WaitSlots } from './wait-slots.ts';

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;
type GiveUp = () => void;
type SendCommand = (command: Command, options: RequestOptions, done: BackendDone<CommandResult>) => GiveUp;

export interface AcquiresDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly waits: WaitSlots;
  readonly command: SendCommand;
  /** Without times that the gateway reckons. */
  readonly commandAsItIs: SendCommand;
  readonly query: (query: Query, options: RequestOptions, done: BackendDone<QueryResult>) => GiveUp;
}

/** What waits at the leader for something to happen is asked anew at this interval, so that a lost line is noticed. */
export const AWAIT_MS = 15_000;
const AWAIT_PAUSE_MS = 500;
/** For the command that gives a place in a queue up. */
const GIVE_UP_TIMEOUT_MS = 10_000;

const TOO_LATE = new ServiceError('LOCK_TIMEOUT', 'the lock was not granted in time');

/** Acquires that may have to wait: asked for by a command, and then waited for by queries (docs/decisions/0005). */
export class Acquires {
  readonly #deps: AcquiresDeps;

  constructor(deps: AcquiresDeps) {
    this.#deps = deps;
  }

  /** Acquires; when that joins the queue, waits for its end: granted, refused, or the time to wait is over. */
  acquire(command: Acquire, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const { waitMs = 0 } = options;
    // Also what passes before it is in the queue: whoever set the time does not wait for longer.
    const endsMs = waitMs === 0 ? Number.POSITIVE_INFINITY : this.#deps.clock.monotonicMs() + waitMs;
    let stopWaiting: GiveUp | undefined;
    const stopAsking = this.#deps.command({ type: 'lock', command }, options, (error, reply) => {
      const result = reply?.result;
      if (result === undefined || result.type !== 'lock' || result.result.type !== 'queued') return done(error, reply);
      const { position } = result.result;
      const queued: BackendDone<CommandResult> = (failure, ended) =>
        done(failure, ended === undefined ? undefined : { ...ended, queuedAt: position });
      const again = (stop: GiveUp): void => {
        stopWaiting = stop;
      };
      stopWaiting = this.#await(command, endsMs, this.#ended(command, options, queued, again));
    });
    return () => (stopWaiting ?? stopAsking)();
  }

  /** What is made of the end of the wait, where it does not say by itself how it ended. */
  #ended(
    command: Acquire,
    options: RequestOptions,
    done: BackendDone<CommandResult>,
    again: (stop: GiveUp) => void,
  ): BackendDone<CommandResult> {
    switch (command.as?.type) {
      case 'upgrade':
        return this.#upgraded(command, options, done);
      case 'permits':
        return this.#turnedAway(command, options, done, again);
      default:
        return done;
    }
  }

  /**
   * Who waits for more permits than there are by now is turned away, and that is told once. Where it was lost, all that is
   * known is that the owner waits no longer. Asked again, the lock tells why, or lets it wait if there are so many again: an
   * acquire with a number can be repeated, and is refused if it was canceled.
   */
  #turnedAway(
    command: Acquire,
    asked: RequestOptions,
    done: BackendDone<CommandResult>,
    again: (stop: GiveUp) => void,
  ): BackendDone<CommandResult> {
    const { clock } = this.#deps;
    const options = asAnother(asked);
    const { waitMs = 0 } = options;
    const beganMs = clock.monotonicMs();
    return (error, reply) => {
      const result = reply?.result.type === 'lock' ? reply.result.result : undefined;
      const isKnown = result?.type !== 'refused' || result.code !== 'LOCK_CANCELED';
      if (isKnown || (command.attempt ?? 0) === 0) return done(error, reply);
      if (waitMs === 0) return again(this.acquire(command, options, done));
      const remainingMs = waitMs - (clock.monotonicMs() - beganMs);
      if (remainingMs <= 0) return done(TOO_LATE, undefined);
      again(this.acquire(command, { ...options, waitMs: remainingMs }, done));
    };
  }

  /**
   * Who upgrades holds the lock all the time: that it waits no longer does not say how. Asked again, the lock tells. What
   * becomes of that question says nothing against the upgrade, which was applied.
   */
  #upgraded(command: Acquire, asked: RequestOptions, done: BackendDone<CommandResult>): BackendDone<CommandResult> {
    const options = asAnother(asked);
    return (error, reply) => {
      const isGranted = reply?.result.type === 'lock' && reply.result.result.type === 'granted';
      if (!isGranted) return done(error, reply);
      this.#deps.command({ type: 'lock', command }, options, (failure, answer) =>
        done(failure && notKnown(failure), answer),
      );
    };
  }

  /**
   * The place in the queue is kept by the log, so nothing that happens to a question ends the wait: neither a change
   * of leader nor a full queue. It ends with an answer of the lock, with the time to wait, or when nobody cares. It does
   * not begin when too many wait through this gateway.
   */
  #await(command: Acquire, endsMs: number, done: BackendDone<CommandResult>): () => void {
    const { clock, random } = this.#deps;
    const { lock, owner } = command;
    const giveSlot = this.#deps.waits.take();
    if (giveSlot === undefined) {
      this.#waitNoMore(command, this.#deps.waits.refusal((command.attempt ?? 0) > 0), done);
      return () => {};
    }
    let over = false;
    let cancelCall = (): void => {};
    const ask = (): void => {
      if (over) return;
      const remainingMs = endsMs - clock.monotonicMs();
      if (remainingMs <= 0) {
        giveSlot();
        return this.#waitNoMore(command, TOO_LATE, done);
      }
      const timeoutMs = Math.max(1, Math.min(remainingMs, AWAIT_MS));
      cancelCall = this.#deps.query({ type: 'lockAwait', lock, owner }, { timeoutMs }, (error, reply) => {
        if (over) return;
        if (reply?.result.type === 'lockAwait') {
          giveSlot();
          return done(undefined, { ...reply, result: { type: 'lock', result: reply.result.result } });
        }
        if (error === undefined || error.code === 'DEADLINE_EXCEEDED') return ask();
        const pauseMs = AWAIT_PAUSE_MS / 2 + random.int(AWAIT_PAUSE_MS / 2);
        clock.setTimer(Math.min(pauseMs, Math.max(0, endsMs - clock.monotonicMs())), ask);
      });
    };
    ask();
    return () => {
      over = true;
      giveSlot();
      cancelCall();
    };
  }

  /**
   * Answers an acquire that joined the queue with `refusal`. Its place is given up first, by a command that also gives
   * back a grant that came at the last moment, but only for callers who do not number their acquires: others may have
   * asked about this one again elsewhere, and hold the lock by now (acquire.ts A1). They keep the place, to which they
   * come back, or which they cancel themselves. Where it is not known that the place was given up, neither is it that the
   * lock was not granted, whatever became of the command that gives it up.
   */
  #waitNoMore(command: Acquire, refusal: ServiceError, done: BackendDone<CommandResult>): void {
    const { lock, owner, attempt = 0 } = command;
    if (attempt > 0) return done(refusal, undefined);
    // No mark: the acquire was answered, so its request id keeps it from being applied again.
    this.#deps.commandAsItIs(
      { type: 'lock', command: { type: 'cancel', lock, owner, deadlineMs: 0 } },
      { timeoutMs: GIVE_UP_TIMEOUT_MS },
      (error) => done(error === undefined ? refusal : notKnown(error), undefined),
    );
  }
}

/** Of a question behind a wait, which is a request of its own: the first one is remembered, and its deadline is long over. */
function asAnother({ requestId: _id, deadlineMs: _deadline, ...options }: RequestOptions): RequestOptions {
  return options;
}

/** The acquire was applied, and may have come to a grant. */
function notKnown(cause: ServiceError): ServiceError {
  const message = 'the acquire was applied, and how it ended is not known: the lock may be held, or waited for';
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}
