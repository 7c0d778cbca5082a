/**
 * Checks the answers of gateways against the results of apply, and against earlier answers.
 *
 * N1. Real-time order, over all ranges (design §8): an acknowledged change has a revision above every answer that came
 *     before its request began. The answer to a command that changed nothing, or to a read of keys, has one that is not
 *     below; the only exception is a change of a lease's terms, which draws no revision. While one range has all keys,
 *     that holds for every answer.
 * N2. An answer is true: what is acknowledged was executed, and its revision is the one from apply.
 * N3. A refusal is true: a request that a gateway refused, rather than reporting an unknown outcome, is never executed,
 *     unless it is repeated.
 *
 * A request begins when it first reaches a gateway: an SDK without an answer repeats it at another one under the same
 * id.
 */
import type { ErrorCode, ServiceError } from '@remora/base';
import type { Backend, BackendDone, BackendReply } from '@remora/gateway';
import type { Command, Query } from '@remora/protocol';
import { require } from '../../common/violation.ts';
import type { AppliedCommands } from './applied-commands.ts';

export class Answers {
  readonly #applied: AppliedCommands;
  readonly #oneRange: boolean;
  readonly #fail: (error: unknown) => void;
  /** The highest revision in an answer so far. */
  #shown = 0;
  /** Answers so far. */
  count = 0;
  /** Commands that reached a gateway again, because their answers were lost. */
  sentAgain = 0;
  /** Watches that reached a gateway, including resumed ones. */
  watches = 0;
  readonly #sentAgain = new Set<string>();
  /** The highest answered revision when each request began. */
  readonly #floors = new Map<string, number>();
  /** Refused requests that were not repeated, with their answers. (N3) */
  readonly #refused = new Map<string, string>();

  constructor(
    applied: AppliedCommands,
    options: { readonly oneRange: boolean; readonly fail: (error: unknown) => void },
  ) {
    this.#applied = applied;
    this.#oneRange = options.oneRange;
    this.#fail = options.fail;
  }

  /** A command reaches a gateway; the returned function takes its answer. */
  command(command: Command, requestId: string | undefined): (revision: number) => void {
    const floor = this.#floorOf(requestId);
    return (revision) => this.#checked(() => this.#answered({ command, requestId, floor, revision }));
  }

  /** A gateway answered a command, which reached it as request `requestId`, with an error. */
  refused(command: Command, requestId: string | undefined, code: ErrorCode): void {
    if (requestId === undefined || code === 'UNKNOWN_OUTCOME' || code === 'RESULT_LOST' || waitsInQueue(command))
      return;
    if (this.#sentAgain.has(requestId)) return; // earlier attempts, unknown to this gateway, may have been applied
    const answer = `${command.type} was answered with ${code}`;
    this.#refused.set(requestId, answer);
    this.#checked(() => this.#notExecuted(requestId, answer));
  }

  /** The cluster is at rest: checks that no refused request was executed later. */
  finish(): void {
    for (const [requestId, answer] of this.#refused) this.#checked(() => this.#notExecuted(requestId, answer));
  }

  /** A query reaches a gateway. */
  query(query: Query): (revision: number) => void {
    const floor = !isStale(query) && (this.#oneRange || readsKeys(query)) ? this.#shown : 0;
    return (revision) =>
      this.#checked(() => {
        require(revision >= floor, 'revisions in real-time order', () =>
          `a query (${query.type}) was answered from revision ${revision}, and ${floor} had been shown before it began`);
        this.#shown = Math.max(this.#shown, revision);
      });
  }

  #floorOf(requestId: string | undefined): number {
    if (requestId === undefined) return this.#shown;
    const known = this.#floors.get(requestId);
    if (known !== undefined) {
      this.sentAgain++;
      this.#sentAgain.add(requestId);
      this.#refused.delete(requestId);
      return known;
    }
    this.#floors.set(requestId, this.#shown);
    return this.#shown;
  }

  #answered(answer: {
    readonly command: Command;
    readonly requestId: string | undefined;
    readonly floor: number;
    readonly revision: number;
  }): void {
    const { command, requestId, floor, revision } = answer;
    const what = `request ${requestId} (${command.type})`;
    const executed = requestId === undefined ? undefined : this.#applied.executed(requestId);
    const changed = executed?.changed === true;
    const least = changed ? floor + 1 : this.#oneRange || command.type !== 'leaseChange' ? floor : 0;
    require(revision >= least, 'revisions in real-time order', () =>
      `${what} was answered with revision ${revision}, and ${floor} had been shown before it began`);
    this.#shown = Math.max(this.#shown, revision);
    if (requestId === undefined) return;
    require(executed !== undefined, 'answers are true', () =>
      `${what} was acknowledged, and no replica has executed it`);
    if (executed === undefined) return;
    const at = executed.revision ?? revision;
    require(isAnsweredLater(command) ? revision >= at : revision === at, 'answers are true', () =>
      `${what} was answered with revision ${revision}, and executed at ${at}`);
  }

  /** N3. */
  #notExecuted(requestId: string, answer: string): void {
    const executed = this.#applied.executed(requestId);
    require(executed?.changed !== true, 'answers are true', () =>
      `request ${requestId}: ${answer}, and it was executed at revision ${executed?.revision}`);
  }

  #checked(look: () => void): void {
    this.count++;
    try {
      look();
    } catch (error) {
      this.#fail(error);
    }
  }
}

/** The command is answered, or refused, when its turn comes or its wait is over: later than it was applied. */
function waitsInQueue(command: Command): boolean {
  return command.type === 'lock' && command.command.type === 'acquire';
}

/**
 * The answer has a later revision than the command: for the end of a lease, when nothing of the lease was left in any
 * range.
 */
function isAnsweredLater(command: Command): boolean {
  return waitsInQueue(command) || command.type === 'leaseRevoke';
}

function isStale(query: Query): boolean {
  return query.type === 'status' || (readsKeys(query) && query.serializable);
}

function readsKeys(query: Query): query is Extract<Query, { type: 'range' | 'readTxn' }> {
  return query.type === 'range' || query.type === 'readTxn';
}

/** A gateway's connection to the ranges, with its answers checked. */
export function checkedBackend(backend: Backend, answers: Answers): Backend {
  return {
    nodeId: backend.nodeId,
    view: () => backend.view(),
    rangeTimeMs: () => backend.rangeTimeMs(),
    check: (principal, needs) => backend.check(principal, needs),
    watch: (options, listener) => {
      answers.watches++;
      return backend.watch(options, listener);
    },
    watchLocks: (options, listener, onEnd) => backend.watchLocks(options, listener, onEnd),
    command: (command, options, done) => {
      const { requestId } = options;
      const refused = ({ code }: ServiceError): void => answers.refused(command, requestId, code);
      return backend.command(command, options, told(answers.command(command, requestId), done, refused));
    },
    query: (query, options, done) => backend.query(query, options, told(answers.query(query), done)),
  };
}

function told<Result>(
  answered: (revision: number) => void,
  done: BackendDone<Result>,
  refused: (error: ServiceError) => void = () => {},
): BackendDone<Result> {
  return (error: ServiceError | undefined, reply: BackendReply<Result> | undefined) => {
    if (reply !== undefined) answered(reply.revision);
    else if (error !== undefined) refused(error);
    done(error, reply);
  };
}
