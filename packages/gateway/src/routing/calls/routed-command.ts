import { type Bytes, ServiceError, type Span } from '@remora/base';
import {
  COMMAND_DEADLINE_MAX_MS,
  type Command,
  type CommandResult,
  type RangeReply,
  type RangeRequest,
  type TxnPartOutcome,
} from '@remora/protocol';
import type { Clearance } from '../../authorisation/clearance.ts';
import type { BackendDone, RequestTerms } from '../../backend.ts';
import type { Coordinator } from '../../transactions/coordinator.ts';
import { routingKey, routingSpan } from '../routes/request-keys.ts';
import type { Routes } from '../routes/routes.ts';
import type { ManyRanges } from './many-ranges.ts';
import { type RequestCompletion, type RequestDeps, RoutedCall, type RoutedRequest } from './request.ts';
import { ATTEMPT_MS, REQUEST_TIMEOUT_MAX_MS } from './routed-query.ts';

export interface RoutedCommandDeps {
  readonly routes: Routes;
  readonly calls: RequestDeps;
  readonly many: ManyRanges;
  readonly coordinator: Coordinator;
}

export interface CommandTerms {
  readonly requestId: string;
  readonly options: RequestTerms;
  readonly clearance: Clearance;
  /** Leaves the times in a lock command as they are. Otherwise they are computed from the request's deadline. */
  readonly keepTimes: boolean;
}

/**
 * One command of a client, from the first attempt to the answer, over whichever ranges its keys are in. Read from top
 * to bottom: `start`, then `completed` by the `RoutedCall`, and `#overRanges` if no range has all of its keys.
 *
 * Commands come by the hundred thousand, so this one object is all that a command takes beside its `RoutedCall`: it is
 * also the request that the call sends, and the completion that the call reports to.
 */
export class RoutedCommand implements RoutedRequest, RequestCompletion {
  readonly command = true;
  readonly requestId: string;
  readonly timeoutMs: number;
  readonly deadlineMs: number | undefined;
  readonly attemptMs = ATTEMPT_MS;
  readonly awaits = false;
  readonly clearance: Clearance;
  readonly #deps: RoutedCommandDeps;
  readonly #command: Command;
  readonly #keepTimes: boolean;
  readonly #done: BackendDone<CommandResult>;
  readonly #call: RoutedCall;
  /** Ends the interest in the answer of several ranges; undefined while one range is asked. */
  #giveUpMany: (() => void) | undefined;

  constructor(deps: RoutedCommandDeps, command: Command, terms: CommandTerms, done: BackendDone<CommandResult>) {
    this.requestId = terms.requestId;
    this.clearance = terms.clearance;
    this.timeoutMs = Math.min(terms.options.timeoutMs, REQUEST_TIMEOUT_MAX_MS);
    this.deadlineMs = terms.options.deadlineMs;
    this.#deps = deps;
    this.#command = command;
    this.#keepTimes = terms.keepTimes;
    this.#done = done;
    this.#call = new RoutedCall(deps.calls, this, this);
  }

  start(): void {
    if (this.#command.type === 'compact' && this.#isNumbered()) this.#overRanges(this.timeoutMs, undefined);
    else this.#call.start();
  }

  /** Ends the interest in the answer; the command may be applied all the same. */
  cancel(): void {
    if (this.#giveUpMany === undefined) this.#call.cancel();
    else this.#giveUpMany();
  }

  /** One range has answered, or the command has keys in several: then it ended there with STALE_EPOCH. */
  completed(error: ServiceError | undefined, reply: RangeReply | undefined): void {
    // A transaction over several ranges, of which an earlier attempt was applied.
    const earlier = reply?.result.type === 'txnPart' ? reply.result : undefined;
    if (error?.code === 'STALE_EPOCH' || earlier !== undefined) this.#overRanges(this.#call.remainingMs, earlier);
    else if (reply !== undefined) this.#done(undefined, reply as RangeReply & { readonly result: CommandResult });
    else this.#done(error ?? noAnswer(), undefined);
  }

  /** `earlier`: what one of the ranges remembers of an earlier attempt. */
  #overRanges(timeoutMs: number, earlier: TxnPartOutcome | undefined): void {
    const command = this.#command;
    const { requestId, deadlineMs, clearance } = this;
    const identity = { requestId, deadlineMs, timeoutMs, clearance };
    switch (command.type) {
      case 'compact':
        this.#giveUpMany = this.#deps.many.compact(command.revision, identity, this.#done);
        return;
      case 'kv':
      case 'txn':
        this.#giveUpMany = this.#deps.coordinator.command(command, identity, this.#done, earlier);
        return;
      default:
        this.#done(
          new ServiceError('INTERNAL', `the command ${command.type} cannot be split over several ranges`),
          undefined,
        );
    }
  }

  /**
   * Whether the master numbers changes: then a compaction asks it for the newest revision, even if one range has all
   * keys.
   */
  #isNumbered(): boolean {
    return this.#deps.routes.find(this.key)?.revisionSource === 'master';
  }

  get key(): Bytes {
    return routingKey(this.#command);
  }

  span(): Span | undefined {
    return routingSpan(this.#command);
  }

  build(deadlineMs: number): RangeRequest['body'] {
    const command = this.#keepTimes ? this.#command : withDeadline(this.#command, deadlineMs);
    return { kind: 'command', command };
  }
}

/** Fills in the times of a lock command, which only the gateway can compute. */
function withDeadline(command: Command, deadlineMs: number): Command {
  if (command.type !== 'lock') return command;
  const lock = command.command;
  switch (lock.type) {
    case 'acquire':
      return { type: 'lock', command: { ...lock, deadlineMs } };
    case 'release':
      // 0: the client says that none of its acquires can still be in flight, so the release leaves no mark.
      if (lock.deadlineMs === 0) return command;
      return { type: 'lock', command: { ...lock, deadlineMs: deadlineMs + COMMAND_DEADLINE_MAX_MS } };
    case 'cancel':
      // The mark must outlive any acquire that may still be in flight.
      return { type: 'lock', command: { ...lock, deadlineMs: deadlineMs + COMMAND_DEADLINE_MAX_MS } };
    case 'forceRelease':
    case 'downgrade':
    case 'setCapacity':
    case 'revoke':
    case 'setData':
    case 'setDepth':
    case 'forget':
    case 'endDelay':
      return command;
  }
}

function noAnswer(): ServiceError {
  return new ServiceError('INTERNAL', 'the request ended with neither an answer nor an error');
}
