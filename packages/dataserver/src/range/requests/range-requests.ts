import type { Command, RangeRequest } from '@remora/protocol';
import type { SplitReasons } from '../../splitting/split-reasons.ts';
import { commandWithin } from '../../state/request-bounds.ts';
import type { LeaseManager } from '../leases/lease-manager.ts';
import type { OnCancel } from '../range-options.ts';
import type { RangeReplica } from '../range-replica.ts';
import type { SplitBackpressure } from '../reshape/split-backpressure.ts';
import { readBytes } from '../stats/range-report.ts';
import type { Commands, RangeDone } from './commands.ts';
import { commandBytes } from './proposals.ts';
import type { AskedQuery, Queries } from './queries.ts';

export interface RangeRequestsDeps {
  readonly commands: Commands;
  readonly queries: Queries;
  readonly leases: LeaseManager;
  readonly reasons: SplitReasons;
  readonly brake: SplitBackpressure;
}

/** The way that a request takes through a replica: held by a merge or for a split, refused by its epoch, sent to the log, or answered. */
export class RangeRequests {
  readonly #replica: RangeReplica;
  readonly #deps: RangeRequestsDeps;

  constructor(replica: RangeReplica, deps: RangeRequestsDeps) {
    this.#replica = replica;
    this.#deps = deps;
  }

  execute(request: RangeRequest, onCancel: OnCancel, done: RangeDone): void {
    if (this.#replica.serving && this.#replica.merges.refusal !== undefined) {
      const again = (): void => this.execute(request, onCancel, done);
      if (this.#replica.merges.holds({ again, refuse: (error) => done(error, undefined) })) return;
    }
    const { body, epoch } = request;
    if (body.kind === 'query') {
      const { query, notBefore } = body;
      this.#query(request, { query, epoch, notBefore }, onCancel, done);
    } else if (body.command.type === 'compact') this.#compact(request, body.command, done);
    else this.#brake(request, body.command, done);
  }

  /** A compaction may move the range on to a revision that it has not reached (CL5). */
  #compact(request: RangeRequest, command: Extract<Command, { type: 'compact' }>, done: RangeDone): void {
    if (!this.#replica.serving || this.#isMisrouted(request, command)) return this.#brake(request, command, done);
    this.#replica.closing.whenGiven(command.revision, (error) => {
      if (error !== undefined) done(error, undefined);
      else this.#brake(request, command, done);
    });
  }

  #query(request: RangeRequest, asked: AskedQuery, onCancel: OnCancel, done: RangeDone): void {
    const { queries, reasons } = this.#deps;
    queries.execute(asked, onCancel, (error, result, revision) => {
      if (result === undefined) return done(error, undefined);
      const bytes = readBytes(result);
      this.#replica.load.read(bytes);
      if (reasons.watching) reasons.asked(request, bytes);
      done(undefined, this.#replica.reply(result, revision));
    });
  }

  /** A write to a range that is too large waits until it is split. */
  #brake(request: RangeRequest, command: Command, done: RangeDone): void {
    const { brake } = this.#deps;
    const slowed = this.#replica.serving && brake.slows(command) && !this.#isMisrouted(request, command);
    if (!slowed) return this.#command(request, command, done);
    brake.hold({
      go: () => this.#command(request, command, done),
      refuse: (error) => done(error, undefined),
    });
  }

  /** A command that needs a lease of another range waits for it first. */
  #command(request: RangeRequest, command: Command, done: RangeDone): void {
    const { leases } = this.#deps;
    const mustHold = this.#replica.serving && !this.#isMisrouted(request, command) && leases.mustHold(command);
    if (!mustHold) return this.#propose(request, command, done);
    leases.hold(command, (error) => {
      if (error !== undefined) done(error, undefined);
      else this.#propose(request, command, done);
    });
  }

  #propose(request: RangeRequest, command: Command, done: RangeDone): void {
    const { reasons } = this.#deps;
    if (reasons.watching) reasons.asked(request, commandBytes(command));
    const told = this.#deps.leases.accompany(command, done);
    if (this.#isMisrouted(request, command)) this.#deps.commands.executeMisrouted(request, told);
    else this.#deps.commands.execute(request, command, told);
  }

  #isMisrouted({ epoch }: RangeRequest, command: Command): boolean {
    return this.#replica.isStale(epoch) || !commandWithin(this.#replica.state.bounds, command);
  }
}
