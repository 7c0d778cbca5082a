import { ServiceError } from '@remora/base';
import {
  type BatchedCommand,
  COMMAND_DEADLINE_MAX_MS,
  type Command,
  isTxnCommand,
  type RangeReply,
  type RangeRequest,
  staleAuth,
  type TxnPart,
} from '@remora/protocol';
import type { RangeMeter } from '../../state/effects.ts';
import { errorOf, type Outcome, outcomeBytes, rememberable } from '../../state/outcomes/outcome-codec.ts';
import { inTheWay, isPartial } from '../../transactions/answers.ts';
import type { IntentWaitQueue } from '../../transactions/intent-wait-queue.ts';
import type { LeaseManager } from '../leases/lease-manager.ts';
import type { LockLimits } from '../locks/lock-limits.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { CommandQueue, QueuedCommand } from './command-queue.ts';
import type { DiskRoom } from './disk-room.ts';
import type { OverLimit } from './limits.ts';
import { commandBytes, type Proposals } from './proposals.ts';

/** Called once with the answer to a request, or with the error. */
export type RangeDone = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

/** A larger result is not sent: the links between nodes take no more in one answer. */
const REPLY_BYTES_MAX = 32 * 1024 * 1024;

interface CommandDeps {
  readonly context: ReplicaContext;
  readonly proposals: Proposals;
  readonly queue: CommandQueue;
  readonly intentWaitQueue: IntentWaitQueue;
  readonly leases: Pick<LeaseManager, 'answerRevoke'>;
  readonly limits: Pick<LockLimits, 'refusal'>;
  /** Absent: the room on the disk is not checked. */
  readonly room: Pick<DiskRoom, 'refusal'> | undefined;
  readonly meter: Pick<RangeMeter, 'overLimit'> | undefined;
  /** Memory for remembered outcomes; beyond it new commands are refused. */
  readonly outcomeBytesMax: number;
}

/**
 * Commands of clients: from the check before the proposal to the answer.
 *
 * CM1. A command of a client is proposed only here, after its epoch, its deadline and the leadership were checked;
 *      apply checks them again. A command that is refused here was not proposed: nothing changed.
 * CM2. The reply is sent only after apply of the entry that carries the request.
 * CM3. A command with an old epoch, or with keys that are not all here, is not proposed. An earlier attempt may have
 *      been applied while the keys were here; every part of the range remembers that until the deadline, so the leader
 *      answers with the remembered outcome. STALE_EPOCH therefore means that this range has not applied the command and
 *      never will. The outcome of a part of a transaction over several ranges is not an answer: the coordinator
 *      prepares again.
 * CM4. A command may wait in the queue first (command-queue.ts CQ1, CQ2).
 * CM5. A request may be over a limit at one attempt and within it at another. So a request of which an earlier attempt
 *      is known here, applied or in progress, is not refused for a limit; nor is a prepare refused because a command
 *      waits for what the prepare would hold. The caller of a refused request holds nothing and waits for nothing.
 * CM6. A command that its client may not send, or for which that has to be decided again, is not proposed. Its caller
 *      may have sent it before, when that was allowed: it is answered with the outcome if that is remembered. Otherwise
 *      the error says whether an earlier attempt is in progress here.
 */
export class Commands {
  readonly #deps: CommandDeps;

  constructor(deps: CommandDeps) {
    this.#deps = deps;
  }

  execute(request: RangeRequest, command: Command, done: RangeDone): void {
    const { context, limits, room, proposals, queue } = this.#deps;
    const refused = this.#refusal(request);
    if (refused !== undefined) return this.#refuse(request, command, refused, done);
    const excess = limits.refusal(command, context.group.term) ?? room?.refusal(command);
    // CM5. An earlier attempt may have been within the limit: apply answers with its outcome, remembered or to come.
    if (excess !== undefined && !this.#isKnown(request)) return this.#tooMuch(command, excess, done);
    const pending = new ClientCommand(this.#deps, request, command, done);
    context.load.wrote(request, pending.bytes);
    // CM5. The coordinator takes a conflict for the answer that is remembered, and aborts nothing here.
    if (command.type === 'txnPrepare' && this.#isAwaited(command) && !this.#isKnown(request)) {
      return done(undefined, context.reply({ type: 'txnPrepare', answer: 'conflict', holders: [] }));
    }
    if (isAlone(command)) proposals.addAlone(pending);
    else if (!queue.holds(pending)) proposals.add(pending); // CM4
  }

  /** CM3. */
  executeMisrouted(request: RangeRequest, command: Command, done: RangeDone): void {
    const refused = this.#refusal(request);
    if (refused !== undefined) return done(refused, undefined);
    const outcome = this.#remembered(request);
    if (outcome === undefined || isPartial(outcome)) done(this.#deps.context.staleEpoch(), undefined);
    else this.#answerRemembered(command, outcome, done);
  }

  /** CM6. */
  recall(request: RangeRequest, command: Command, authRevision: number, done: RangeDone): void {
    const { context, proposals, intentWaitQueue } = this.#deps;
    const { requestId } = request;
    if (!context.leading) return done(context.notLeader(), undefined);
    if (context.sealed !== undefined) return done(context.sealed, undefined);
    if (!context.serving) return done(catchingUp(), undefined);
    const outcome = this.#remembered(request);
    if (outcome !== undefined && !isPartial(outcome)) return this.#answerRemembered(command, outcome, done);
    const isInProgress = requestId !== '' && (proposals.isInFlight(requestId) || intentWaitQueue.isWaiting(requestId));
    done(staleAuth(authRevision, outcome !== undefined || isInProgress), undefined);
  }

  /** Whether an earlier attempt of a request has been applied, or may still be. */
  #isKnown(request: RangeRequest): boolean {
    const { requestId } = request;
    if (requestId === '') return false;
    if (this.#remembered(request) !== undefined) return true;
    return this.#deps.proposals.isInFlight(requestId) || this.#deps.intentWaitQueue.isWaiting(requestId);
  }

  /**
   * A waiter for a lock would retry after an error that may pass; this refusal has to end its acquire, so it is a
   * result.
   */
  #tooMuch({ type }: Command, { limit, code, message, details }: OverLimit, done: RangeDone): void {
    this.#deps.meter?.overLimit(limit);
    if (type !== 'lock') return done(new ServiceError(code, message, { ...(details && { details }) }), undefined);
    const result = { type: 'refused', code, message } as const;
    done(undefined, this.#deps.context.reply({ type: 'lock', result }));
  }

  #isAwaited(part: TxnPart): boolean {
    const { state } = this.#deps.context;
    return this.#deps.intentWaitQueue.isAwaited(part, (command) => state.takenBy(command));
  }

  /** A remembered outcome is also true for a request past its deadline: the time may move forward in a merge. */
  #refuse(request: RangeRequest, command: Command, refused: ServiceError, done: RangeDone): void {
    const outcome = refused.code === 'DEADLINE_EXCEEDED' ? this.#remembered(request) : undefined;
    if (outcome === undefined) done(refused, undefined);
    else this.#answerRemembered(command, outcome, done);
  }

  #answerRemembered(command: Command, outcome: Outcome, done: RangeDone): void {
    const { context, leases } = this.#deps;
    const answer = answerOf(context, outcome);
    if (command.type === 'leaseRevoke') leases.answerRevoke(command.id, answer, done);
    else if (answer instanceof ServiceError) done(answer, undefined);
    else done(undefined, answer);
  }

  #remembered({ requestId }: RangeRequest): Outcome | undefined {
    return requestId === '' ? undefined : this.#deps.context.state.outcomes.recall(requestId);
  }

  /** CM1. */
  #refusal(request: RangeRequest): ServiceError | undefined {
    const { context, outcomeBytesMax } = this.#deps;
    if (!context.leading) return context.notLeader();
    const { sealed } = context;
    if (sealed !== undefined) return sealed;
    // Before that the time of the range may lag, and deadlines would be checked against it.
    if (!context.serving) return catchingUp();
    const rangeTimeMs = context.time.nowMs();
    const aheadMs = request.deadlineMs - rangeTimeMs;
    if (aheadMs < 0) {
      const message = 'the request reached the range after its deadline';
      return new ServiceError('DEADLINE_EXCEEDED', message, { details: { rangeTimeMs } });
    }
    if (aheadMs > COMMAND_DEADLINE_MAX_MS) {
      const message = 'the deadline is too far ahead of the time of the range';
      return new ServiceError('UNAVAILABLE', message, { details: { rangeTimeMs } });
    }
    if (context.state.outcomes.bytes > outcomeBytesMax && !letsGo(request)) {
      return new ServiceError(
        'RESOURCE_EXHAUSTED',
        'the range remembers too many outcomes; use shorter deadlines or try again later',
      );
    }
    return undefined;
  }
}

/** A command of a client, from its proposal to its answer. */
class ClientCommand implements QueuedCommand {
  readonly item: BatchedCommand;
  readonly bytes: number;
  epochVersion = 0;
  readonly #deps: CommandDeps;
  readonly #done: RangeDone;

  constructor(deps: CommandDeps, { requestId, deadlineMs }: RangeRequest, command: Command, done: RangeDone) {
    this.#deps = deps;
    this.item = { requestId, deadlineMs, command };
    this.bytes = commandBytes(command);
    this.#done = done;
  }

  /** CM2. */
  complete(error: ServiceError | undefined, outcome: Outcome | undefined): void {
    const { context, queue, intentWaitQueue, leases } = this.#deps;
    const { command } = this.item;
    if (!isAlone(command) && queue.takesBack(this, outcome)) return; // CM4
    if (outcome === undefined) return this.#done(error, undefined);
    // The replica knows better than its state where the range's keys are.
    if (!outcome.ok && outcome.code === 'STALE_EPOCH') return this.#done(context.staleEpoch(), undefined);
    intentWaitQueue.met(inTheWay(outcome));
    const answer = answerOf(context, outcome);
    if (command.type === 'leaseRevoke') leases.answerRevoke(command.id, answer, this.#done);
    else if (answer instanceof ServiceError) this.#done(answer, undefined);
    else this.#done(undefined, answer);
  }
}

function catchingUp(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the new leader of the range is catching up');
}

function answerOf(context: ReplicaContext, outcome: Outcome): RangeReply | ServiceError {
  // A result that is too large for one answer must not be taken for a refusal: the command is applied.
  const sendable = outcomeBytes(outcome) <= REPLY_BYTES_MAX ? outcome : rememberable(outcome);
  return sendable.ok ? context.reply(sendable.result, sendable.revision) : errorOf(sendable);
}

/** The format of an entry that raises the revision records that: the command is alone in it. */
function isAlone({ type }: Command): boolean {
  return type === 'raiseRevision';
}

/** A command that releases something is not refused for lack of memory. */
function letsGo({ body }: RangeRequest): boolean {
  if (body.kind !== 'command') return false;
  const { command } = body;
  return command.type === 'leaseEnd' || (isTxnCommand(command) && command.type !== 'txnPrepare');
}
