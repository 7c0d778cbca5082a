import { type Clock, ServiceError } from '@remora/base';
import {
  COMMAND_DEADLINE_MAX_MS,
  type Command,
  isTxnCommand,
  type RangeReply,
  type RangeRequest,
  type TxnPart,
} from '@remora/protocol';
import type { RevisionSource } from '../../revisions/revision-drawer.ts';
import type { RangeMeter } from '../../state/effects.ts';
import { endsLease } from '../../state/leases/lease-ending.ts';
import { errorOf, type Outcome, outcomeBytes, rememberable } from '../../state/outcomes/outcome-codec.ts';
import { heldBy, inTheWay, isPartial } from '../../transactions/answers.ts';
import type { IntentWaitQueue } from '../../transactions/intent-wait-queue.ts';
import { LeaseEndPace } from '../leases/lease-end-pace.ts';
import type { LockLimits } from '../locks/lock-limits.ts';
import type { RangeClock } from '../range-clock.ts';
import type { RangeReplica } from '../range-replica.ts';
import type { DiskRoom } from './disk-room.ts';
import type { OverLimit } from './limits.ts';
import { commandBytes, type OutcomeDone, Proposals, type QueuedCommand } from './proposals.ts';

export type RangeDone = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

/** Above this a command's result is not sent; the links between nodes take no more in one answer. */
const REPLY_BYTES_MAX = 32 * 1024 * 1024;
/** What a command that the leader itself proposes counts. */
const OWN_COMMAND_BYTES = 64;

export interface CommandDeps {
  readonly intentWaitQueue: IntentWaitQueue;
  readonly clock: Clock;
  readonly time: RangeClock;
  readonly drawer: Pick<RevisionSource, 'want'>;
  readonly limits: Pick<LockLimits, 'refusal'>;
  /** Absent: that is not looked at. */
  readonly room: Pick<DiskRoom, 'refusal'> | undefined;
  readonly meter: Pick<RangeMeter, 'overLimit'> | undefined;
  /** Memory for remembered outcomes; beyond it new commands are refused. */
  readonly outcomeBytesMax: number;
}

/**
 * The way of commands to the log of a range, and of their outcomes back.
 *
 * CM1. A command is proposed only here, after deadline and leadership were checked (its epoch before); apply checks them
 *      again. What is refused here was not proposed: nothing changed.
 * CM2. A reply is sent only after apply of the entry that carries its request.
 * CM3. A command that comes by an old epoch, or whose keys are not all here, is not proposed. It may have been applied when
 *      they were, by an earlier attempt, which all parts of the range remember until its deadline: the leader says what
 *      came of it. So STALE_EPOCH says that this range did not apply it, and never will. Of a transaction over several
 *      ranges it has only a part: that is for who prepares it anew.
 * CM4. A command that needs what a transaction over several ranges holds waits for its end (intent-wait-queue.ts). It may come
 *      to light only when it is applied, which then changes nothing. If the range is split or merged meanwhile, a client's
 *      command is not proposed any more: attempts that came later may have been told so by then (CM3).
 * CM5. What is refused for a limit, which may be reached at one attempt and not at another, or as somebody waits for what a
 *      prepare would hold, is no attempt of a request of which one is under way here: whoever is told so holds nothing, and
 *      waits for nothing.
 * CM6. Ends of leases that come at a time are proposed one after the other (lease-end-pace.ts), under the rules of CM4.
 */
export class Commands {
  readonly proposals: Proposals;
  readonly #replica: RangeReplica;
  readonly #deps: CommandDeps;
  readonly #ends = new LeaseEndPace();

  constructor(replica: RangeReplica, deps: CommandDeps) {
    const { clock, time, drawer } = deps;
    this.#replica = replica;
    this.#deps = deps;
    const [rangeTimeMs, staleEpoch] = [() => time.nowMs(), () => replica.staleEpoch()];
    this.proposals = new Proposals({ clock, drawer, state: replica.state, rangeTimeMs, staleEpoch });
  }

  /** Commands that are not proposed yet, or not answered. */
  get inFlight(): number {
    return this.proposals.inFlight + this.#ends.waiting;
  }

  execute(request: RangeRequest, command: Command, done: RangeDone): void {
    const refused = this.#refusal(request);
    if (refused !== undefined) return this.#refuse(request, refused, done);
    const { limits, room } = this.#deps;
    const excess = limits.refusal(command, this.#replica.group.term) ?? room?.refusal(command);
    // CM5. An earlier attempt may have been within the limit: apply answers with what came of it, or comes of it yet.
    if (excess !== undefined && !this.#isKnown(request)) return this.#tooMuch(command, excess, done);
    const item = { requestId: request.requestId, deadlineMs: request.deadlineMs, command };
    const bytes = commandBytes(command);
    this.#replica.load.wrote(bytes);
    // CM5. The coordinator takes it for the answer that is remembered, and aborts nothing here.
    if (command.type === 'txnPrepare' && this.#isAwaited(command) && !this.#isKnown(request)) {
      return done(undefined, this.#replica.reply({ type: 'txnPrepare', answer: 'conflict', holders: [] }));
    }
    const settled: OutcomeDone = (error, outcome) => {
      if (outcome === undefined) return done(error, undefined);
      // The replica knows better than its state what became of the range.
      if (!outcome.ok && outcome.code === 'STALE_EPOCH') return done(this.#replica.staleEpoch(), undefined);
      this.#deps.intentWaitQueue.met(inTheWay(outcome));
      this.#answer(outcome, done);
    };
    // The format of its entry says what it is.
    if (command.type === 'raiseRevision') this.proposals.addAlone(item, bytes, settled);
    else this.#enter({ item, bytes, done: settled });
  }

  /** Whether an earlier attempt of a request has been applied, or may be yet. */
  #isKnown(request: RangeRequest): boolean {
    const { requestId } = request;
    if (requestId === '') return false;
    if (this.#remembered(request) !== undefined) return true;
    return this.proposals.isInFlight(requestId) || this.#deps.intentWaitQueue.isWaiting(requestId);
  }

  /** Whoever waits for a lock goes on asking after an error that may pass; this one is an answer. */
  #tooMuch({ type }: Command, { limit, code, message, details }: OverLimit, done: RangeDone): void {
    this.#deps.meter?.overLimit(limit);
    if (type !== 'lock') return done(new ServiceError(code, message, { ...(details && { details }) }), undefined);
    const result = { type: 'refused', code, message } as const;
    done(undefined, this.#replica.reply({ type: 'lock', result }));
  }

  /** CM6. */
  #enter(queued: QueuedCommand): void {
    const { command } = queued.item;
    if (!endsLease(command)) return this.#add(queued);
    const { refuse, isStale } = this.#later(queued);
    this.#ends.add({
      rows: () => {
        const { keys, locks } = this.#replica.state.takenBy(command);
        return keys.length + locks.length;
      },
      go: (over) => {
        if (!isStale()) return this.#add(queued, over);
        refuse(this.#replica.staleEpoch());
        over();
      },
      refuse,
    });
  }

  /** CM4. `over`: it is decided, or waits. */
  #add(queued: QueuedCommand, over: () => void = () => {}): void {
    const { item, bytes, done } = queued;
    const holder = this.#replica.state.transactions.holder(item.command);
    if (holder !== undefined) {
      over();
      return this.#await(holder.txnId, queued);
    }
    this.proposals.add(item, bytes, (error, outcome) => {
      over();
      const txnId = outcome && heldBy(outcome);
      if (txnId !== undefined && this.#replica.leading) return this.#await(txnId, queued);
      this.#deps.intentWaitQueue.done(item.command);
      done(error, outcome);
    });
  }

  /** CM4. */
  #await(txnId: string, queued: QueuedCommand): void {
    const { command, deadlineMs, requestId } = queued.item;
    const { refuse, isStale } = this.#later(queued);
    this.#deps.intentWaitQueue.add({
      ...{ txnId, deadlineMs, command, requestId },
      retry: () => (isStale() ? refuse(this.#replica.staleEpoch()) : this.#enter(queued)),
      fail: refuse,
    });
  }

  /** Of a command that is proposed later. */
  #later({ item, done }: QueuedCommand) {
    const { command, requestId } = item;
    const { version } = this.#replica.state.descriptor.epoch;
    return {
      refuse: (error: ServiceError): void => {
        this.#deps.intentWaitQueue.done(command);
        done(error, undefined);
      },
      isStale: (): boolean => requestId !== '' && this.#replica.state.descriptor.epoch.version !== version,
    };
  }

  #isAwaited(part: TxnPart): boolean {
    const { state } = this.#replica;
    return this.#deps.intentWaitQueue.isAwaited(part, (command) => state.takenBy(command));
  }

  /** CM3. */
  executeMisrouted(request: RangeRequest, done: RangeDone): void {
    const refused = this.#refusal(request);
    if (refused !== undefined) return done(refused, undefined);
    const outcome = this.#remembered(request);
    if (outcome === undefined || isPartial(outcome)) done(this.#replica.staleEpoch(), undefined);
    else this.#answer(outcome, done);
  }

  /** What it remembers is true also when it came too late to be applied: time jumps when ranges are merged. */
  #refuse(request: RangeRequest, refused: ServiceError, done: RangeDone): void {
    const outcome = refused.code === 'DEADLINE_EXCEEDED' ? this.#remembered(request) : undefined;
    if (outcome === undefined) done(refused, undefined);
    else this.#answer(outcome, done);
  }

  #remembered({ requestId }: RangeRequest): Outcome | undefined {
    return requestId === '' ? undefined : this.#replica.state.outcomes.recall(requestId);
  }

  #answer(outcome: Outcome, done: RangeDone): void {
    // What is too large for one answer must not be taken for refused: it is applied.
    const sendable = outcomeBytes(outcome) <= REPLY_BYTES_MAX ? outcome : rememberable(outcome);
    if (sendable.ok) done(undefined, this.#replica.reply(sendable.result, sendable.revision));
    else done(errorOf(sendable), undefined);
  }

  /** Proposes a command of the leader's own. */
  propose(command: Command, done?: (outcome: Outcome | undefined) => void): void {
    const item = { requestId: '', deadlineMs: 0, command };
    this.#enter({ item, bytes: OWN_COMMAND_BYTES, done: (_error, outcome) => done?.(outcome) });
  }

  /** The same in an entry of its own; `done` is told as well why it was not proposed. */
  proposeAlone(command: Command, done: OutcomeDone): void {
    this.proposals.addAlone({ requestId: '', deadlineMs: 0, command }, OWN_COMMAND_BYTES, done);
  }

  /** CM1. */
  #refusal(request: RangeRequest): ServiceError | undefined {
    const replica = this.#replica;
    if (!replica.leading) return replica.notLeader();
    const sealed = replica.merges.refusal;
    if (sealed !== undefined) return sealed;
    // Before that its time may lag, and it would judge deadlines by it.
    if (!replica.serving) return new ServiceError('UNAVAILABLE', 'the new leader of the range is catching up');
    const rangeTimeMs = this.#deps.time.nowMs();
    const aheadMs = request.deadlineMs - rangeTimeMs;
    if (aheadMs < 0) {
      const message = 'the request reached the range after its deadline';
      return new ServiceError('DEADLINE_EXCEEDED', message, { details: { rangeTimeMs } });
    }
    if (aheadMs > COMMAND_DEADLINE_MAX_MS) {
      const message = 'the deadline is too far ahead of the time of the range';
      return new ServiceError('UNAVAILABLE', message, { details: { rangeTimeMs } });
    }
    if (replica.state.outcomes.bytes > this.#deps.outcomeBytesMax && !letsGo(request)) {
      return new ServiceError(
        'RESOURCE_EXHAUSTED',
        'the range remembers too many outcomes; use shorter deadlines or try again later',
      );
    }
    return undefined;
  }
}

/** What lets go of something is not refused for want of room. */
function letsGo({ body }: RangeRequest): boolean {
  if (body.kind !== 'command') return false;
  const { command } = body;
  return command.type === 'leaseEnd' || (isTxnCommand(command) && command.type !== 'txnPrepare');
}
