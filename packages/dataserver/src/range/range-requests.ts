import type { Command, RangeRequest } from '@remora/protocol';
import type { SplitReasons } from '../splitting/split-reasons.ts';
import { commandWithin } from '../state/request-bounds.ts';
import type { Commands, RangeDone } from './commands.ts';
import type { LeaseDuties } from './lease-duties.ts';
import type { AskedQuery, Queries } from './queries.ts';
import type { OnCancel } from './range-options.ts';
import type { RangeReplica } from './range-replica.ts';
import { readBytes } from './range-report.ts';

export interface RangeRequestsDeps {
  readonly commands: Commands;
  readonly queries: Queries;
  readonly leases: LeaseDuties;
  readonly reasons: SplitReasons;
}

/** The way that a request takes through a replica: held by a merge, refused by its epoch, sent to the log, or answered. */
export class RangeRequests {
  readonly #replica: RangeReplica;
  readonly #deps: RangeRequestsDeps;

  constructor(replica: RangeReplica, deps: RangeRequestsDeps) {
    this.#replica = replica;
    this.#deps = deps;
  }

  execute(request: RangeRequest, onCancel: OnCancel, done: RangeDone): void {
    const { merges } = this.#replica;
    const again = (): void => this.execute(request, onCancel, done);
    if (this.#replica.serving && merges.holds({ again, refuse: (error) => done(error, undefined) })) return;
    this.#deps.reasons.asked(request);
    const { body, epoch } = request;
    if (body.kind === 'query') this.#query({ query: body.query, epoch }, onCancel, done);
    else this.#command(request, body.command, done);
  }

  #query(asked: AskedQuery, onCancel: OnCancel, done: RangeDone): void {
    this.#deps.queries.execute(asked, onCancel, (error, result, revision) => {
      if (result === undefined) return done(error, undefined);
      this.#replica.load.read(readBytes(result));
      done(undefined, this.#replica.reply(result, revision));
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
    const told = this.#deps.leases.accompany(command, done);
    if (this.#isMisrouted(request, command)) this.#deps.commands.executeMisrouted(request, told);
    else this.#deps.commands.execute(request, command, told);
  }

  #isMisrouted({ epoch }: RangeRequest, command: Command): boolean {
    return this.#replica.isStale(epoch) || !commandWithin(this.#replica.state.bounds, command);
  }
}
