import { type Clock, type ErrorCode, InvariantError, type Random, ServiceError } from '@remora/base';
import type { LockCommand, LockResult } from '@remora/lock';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import { CLUSTER, type Clearance } from '../../authorisation/clearance.ts';
import type { BackendDone, BackendReply, RequestTerms } from '../../backend.ts';
import type { WaitSlots } from './wait-slots.ts';

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;
type GiveUp = () => void;
type Send<Request, Result> = (
  clearance: Clearance,
  request: Request,
  options: RequestTerms,
  done: BackendDone<Result>,
) => GiveUp;

export interface AcquireDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly waits: WaitSlots;
  readonly command: Send<Command, CommandResult>;
  /** Sends a lock command with the times that it has. */
  readonly commandAsItIs: Send<Command, CommandResult>;
  readonly query: Send<Query, QueryResult>;
}

/** A query that waits at the leader is sent again after this time, so that a lost answer is noticed. */
export const AWAIT_MS = 15_000;
const AWAIT_PAUSE_MS = 500;
/** For the command that gives up a place in a queue. */
const GIVE_UP_TIMEOUT_MS = 10_000;

/** RA6. */
const NOT_ALLOWED: ReadonlySet<ErrorCode> = new Set(['PERMISSION_DENIED', 'UNAUTHENTICATED']);

const TOO_LATE = new ServiceError('LOCK_TIMEOUT', 'the lock was not granted within the time to wait');

/** What an acquire does in each of its states. */
export type AcquireState =
  /** Sends the acquire, as a command. The first time it carries the client's request id. */
  | 'asking'
  /** In the queue: a `lockAwait` query is open at the leader. */
  | 'waiting'
  /** In the queue, after a query that failed: the next one follows after a pause. */
  | 'pausing'
  /**
   * The wait of an upgrade has ended with a grant: sends the acquire again, as the grant alone does not say which one
   * it is.
   */
  | 'confirming'
  /** The wait is over without a grant: gives up the place in the queue. */
  | 'leaving'
  /** Final: the caller has the answer. */
  | 'answered'
  /** Final: the caller has given up, and is not called back. */
  | 'abandoned';

export type AcquireEvent =
  /** The lock has decided, or an error has ended the request. */
  | 'answer'
  /** The acquire has joined the queue. */
  | 'queued'
  /** A query ended without an answer, as nothing has happened to the lock. */
  | 'quiet'
  /** A query failed. */
  | 'failure'
  /** The pause after a failure is over. */
  | 'resume'
  /** The wait of an upgrade ended with a grant. */
  | 'upgradeGrant'
  /** The wait for permits ended with LOCK_CANCELED, which does not tell why. */
  | 'turnedAway'
  /** There is no time left to wait, or no slot to wait in. */
  | 'refusal'
  | 'cancel';

/** RA1. The legal transitions; entering a state performs its action. Any other event is a fault of this program. */
const TRANSITIONS: Readonly<Record<AcquireState, Partial<Readonly<Record<AcquireEvent, AcquireState>>>>> = {
  asking: { answer: 'answered', queued: 'waiting', refusal: 'leaving', cancel: 'abandoned' },
  waiting: {
    ...{ answer: 'answered', quiet: 'waiting', failure: 'pausing', refusal: 'leaving', cancel: 'abandoned' },
    ...{ upgradeGrant: 'confirming', turnedAway: 'asking' },
  },
  pausing: { resume: 'waiting', refusal: 'leaving', cancel: 'abandoned' },
  confirming: { answer: 'answered', cancel: 'abandoned' },
  leaving: { answer: 'answered', cancel: 'abandoned' },
  answered: {},
  abandoned: {},
};

/** The state after an event; an event that is not legal in a state is a broken invariant. */
export function acquireStateAfter(state: AcquireState, event: AcquireEvent): AcquireState {
  const next = TRANSITIONS[state][event];
  if (next === undefined) throw new InvariantError(`RA1: '${event}' is no event of an acquire that is '${state}'`);
  return next;
}

/**
 * One acquire that may have to wait: a command asks for the lock, and then queries wait for the grant
 * (docs/decisions/0005).
 *
 * RA1. It moves from state to state by the table above.
 * RA2. The log keeps the place in the queue, so nothing that happens to a query ends the wait, neither a change of
 *      leader nor a full queue of requests. The wait ends with an answer of the lock, when the time to wait is over,
 *      when the caller gives up, or at once if too many requests wait through this gateway.
 * RA3. The time to wait starts when the caller asks, not when the acquire joins the queue.
 * RA4. A place is given up only for callers who do not number their acquires. Others may have asked about this acquire
 *      elsewhere, and may hold the lock by now (client's acquire.ts A1). They keep the place: they come back to it, or
 *      cancel it themselves.
 * RA5. Once the acquire was applied, no later error says that the lock was not granted, unless the place was given up
 *      for certain: the outcome is unknown.
 * RA6. A wait ends when its client may not acquire the lock any more. Then the place is always given up: otherwise the
 *      client would get a lock that it may not have.
 */
export class RoutedAcquire {
  readonly #deps: AcquireDeps;
  readonly #command: Acquire;
  readonly #done: BackendDone<CommandResult>;
  readonly #endsMs: number;
  readonly #clearance: Clearance;
  #options: RequestTerms;
  #state: AcquireState = 'asking';
  /** Grows with each state that is entered: what an earlier state has started reports to no one. */
  #turn = 0;
  /** Stops what the present state has started. */
  #stop: GiveUp | undefined;
  /** Held from joining the queue until the wait has ended. */
  #giveSlot: GiveUp | undefined;
  /** The place in the queue at which the acquire joined it first. */
  #queuedAt: number | undefined;

  constructor(
    deps: AcquireDeps,
    command: Acquire,
    { options, clearance }: { readonly options: RequestTerms; readonly clearance: Clearance },
    done: BackendDone<CommandResult>,
  ) {
    this.#deps = deps;
    this.#command = command;
    this.#options = options;
    this.#clearance = clearance;
    clearance.onRefused = (refusal) => this.#mayNotWait(refusal);
    this.#done = done;
    const { waitMs = 0 } = options;
    this.#endsMs = waitMs === 0 ? Number.POSITIVE_INFINITY : deps.clock.monotonicMs() + waitMs; // RA3
  }

  start(): void {
    this.#ask();
  }

  /** Ends the interest in the answer. The acquire keeps its place, unless that is being given up. */
  cancel(): void {
    if (this.#state === 'answered' || this.#state === 'abandoned') return;
    const isLeaving = this.#state === 'leaving';
    this.#enter('cancel');
    this.#leaveQueue();
    if (!isLeaving) this.#stop?.();
  }

  /** Moves on to the next state, whose action the caller performs. */
  #enter(event: AcquireEvent): void {
    this.#state = acquireStateAfter(this.#state, event);
    this.#turn++;
  }

  /** Asking. */
  #ask(): void {
    const command = this.#command;
    const turn = this.#turn;
    this.#started(
      turn,
      this.#deps.command(this.#clearance, { type: 'lock', command }, this.#options, (error, reply) => {
        if (turn === this.#turn) this.#asked(error, reply);
      }),
    );
  }

  #asked(error: ServiceError | undefined, reply: BackendReply<CommandResult> | undefined): void {
    const result = lockResult(reply);
    if (result?.type !== 'queued') return this.#answer(error, reply);
    this.#queuedAt ??= result.position;
    this.#giveSlot = this.#deps.waits.take();
    if (this.#giveSlot === undefined) return this.#leave(this.#deps.waits.refusal(this.#isNumbered));
    this.#enter('queued');
    this.#wait();
  }

  /** Waiting. */
  #wait(): void {
    const remainingMs = this.#remainingMs;
    if (remainingMs <= 0) return this.#leave(TOO_LATE);
    const turn = this.#turn;
    const { lock, owner } = this.#command;
    const options = { timeoutMs: Math.max(1, Math.min(remainingMs, AWAIT_MS)) };
    this.#started(
      turn,
      this.#deps.query(this.#clearance, { type: 'lockAwait', lock, owner }, options, (error, reply) => {
        if (turn === this.#turn) this.#waited(error, reply);
      }),
    );
  }

  #waited(error: ServiceError | undefined, reply: BackendReply<QueryResult> | undefined): void {
    if (reply?.result.type === 'lockAwait') return this.#waitEnded(reply, reply.result.result);
    if (error === undefined || error.code === 'DEADLINE_EXCEEDED') {
      this.#enter('quiet');
      return this.#wait();
    }
    if (NOT_ALLOWED.has(error.code)) return this.#leave(error, true); // RA6
    this.#enter('failure');
    this.#pause();
  }

  /** Pausing. */
  #pause(): void {
    const { clock, random } = this.#deps;
    const pauseMs = AWAIT_PAUSE_MS / 2 + random.int(AWAIT_PAUSE_MS / 2);
    const timer = clock.setTimer(Math.min(pauseMs, Math.max(0, this.#remainingMs)), () => {
      this.#enter('resume');
      this.#wait();
    });
    this.#stop = () => timer.cancel();
  }

  /** The lock says how the wait ended, unless it has to be asked again for that. */
  #waitEnded(reply: BackendReply<QueryResult>, result: LockResult): void {
    this.#leaveQueue();
    const { as } = this.#command;
    if (as?.type === 'upgrade' && result.type === 'granted') return this.#confirm();
    const isTurnedAway = as?.type === 'permits' && result.type === 'refused' && result.code === 'LOCK_CANCELED';
    if (isTurnedAway && this.#isNumbered) return this.#askAgain();
    this.#answer(undefined, { ...reply, result: { type: 'lock', result } });
  }

  /**
   * An acquire that waits for more permits than there are by now is turned away, and the lock tells the reason once. If
   * that answer was lost, the next query only learns that the owner waits no longer. Asked again, the lock tells the
   * reason, or queues the acquire if there are enough permits again. A numbered acquire can be repeated: it is refused
   * if it was canceled.
   */
  #askAgain(): void {
    if (this.#remainingMs <= 0) return this.#answer(TOO_LATE, undefined);
    this.#options = asAnother(this.#options);
    this.#enter('turnedAway');
    this.#ask();
  }

  /**
   * Confirming. The owner of an upgrade holds the lock all the time, so a grant does not say how its wait ended. Asked
   * again, the lock does. An error of that question says nothing against the upgrade, which was applied (RA5).
   */
  #confirm(): void {
    this.#enter('upgradeGrant');
    const command = this.#command;
    const turn = this.#turn;
    this.#started(
      turn,
      this.#deps.command(this.#clearance, { type: 'lock', command }, asAnother(this.#options), (error, reply) => {
        if (turn === this.#turn) this.#answer(error && notKnown(error), reply);
      }),
    );
  }

  /** RA6. */
  #mayNotWait(refusal: ServiceError): void {
    if (this.#state !== 'waiting' && this.#state !== 'pausing') return; // Its command is decided about by itself.
    this.#stop?.();
    this.#leave(refusal, true);
  }

  /** Leaving: answers with `refusal`, after the place in the queue was given up (RA4; `always`: RA6). */
  #leave(refusal: ServiceError, always = false): void {
    this.#leaveQueue();
    this.#enter('refusal');
    const { lock, owner } = this.#command;
    const turn = this.#turn;
    if (this.#isNumbered && !always) return this.#answer(refusal, undefined);
    // The command also gives back a grant that came at the last moment. It leaves no mark: the acquire was answered, so
    // its request id keeps it from being applied again.
    this.#deps.commandAsItIs(
      CLUSTER,
      { type: 'lock', command: { type: 'cancel', lock, owner, deadlineMs: 0 } },
      { timeoutMs: GIVE_UP_TIMEOUT_MS },
      (error) => {
        if (turn === this.#turn) this.#answer(error === undefined ? refusal : notKnown(error), undefined);
      },
    );
  }

  #answer(error: ServiceError | undefined, reply: BackendReply<CommandResult> | undefined): void {
    this.#enter('answer');
    const queuedAt = this.#queuedAt;
    this.#done(error, reply === undefined || queuedAt === undefined ? reply : { ...reply, queuedAt });
  }

  /**
   * A call inside of this process may be answered before it returns; then it is not what the present state has started.
   */
  #started(turn: number, stop: GiveUp): void {
    if (turn === this.#turn) this.#stop = stop;
  }

  #leaveQueue(): void {
    this.#giveSlot?.();
    this.#giveSlot = undefined;
  }

  get #remainingMs(): number {
    return this.#endsMs - this.#deps.clock.monotonicMs();
  }

  get #isNumbered(): boolean {
    return (this.#command.attempt ?? 0) > 0;
  }
}

function lockResult(reply: BackendReply<CommandResult> | undefined): LockResult | undefined {
  return reply?.result.type === 'lock' ? reply.result.result : undefined;
}

/**
 * The options of a further question, which is a request of its own: the first one is remembered, and its deadline is
 * over.
 */
function asAnother({ requestId: _id, deadlineMs: _deadline, again: _again, ...options }: RequestTerms): RequestTerms {
  return options;
}

/** RA5. */
function notKnown(cause: ServiceError): ServiceError {
  const message = 'the acquire was applied, but its result is unknown: the lock may be held, or still waited for';
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}
