import { ServiceError, unreachable } from '@remora/base';
import type { Entry, Group, Refusal } from '@remora/raft';
import type { MasterCommand, MasterResult } from '../metadata/master-commands.ts';
import { encodeMasterCommand } from '../metadata/metadata-codec.ts';

export type CommandDone = (error: ServiceError | undefined, result: MasterResult | undefined) => void;

export interface ProposalsDeps {
  readonly group: () => Group;
  readonly notLeader: () => ServiceError;
}

/** Commands that this master has proposed and that are not applied yet: each is answered once (master.ts M5). */
export class Proposals {
  readonly #deps: ProposalsDeps;
  readonly #waiting = new Map<number, { readonly term: number; readonly done: CommandDone }>();

  constructor(deps: ProposalsDeps) {
    this.#deps = deps;
  }

  get inFlight(): number {
    return this.#waiting.size;
  }

  propose(command: MasterCommand, done: CommandDone): void {
    const { group, notLeader } = this.#deps;
    const proposed = group().propose(encodeMasterCommand(command));
    if ('refused' in proposed) return done(refusal(proposed.refused) ?? notLeader(), undefined);
    this.#lose(proposed.index);
    this.#waiting.set(proposed.index, { term: proposed.term, done });
  }

  /**
   * Returns the callback that waits for this entry; a callback that waits for another entry in its place gets the error
   * that it was lost.
   */
  takeFor({ index, term }: Entry): CommandDone | undefined {
    const waiting = this.#waiting.get(index);
    this.#waiting.delete(index);
    if (waiting === undefined || waiting.term === term) return waiting?.done;
    waiting.done(this.#deps.notLeader(), undefined);
    return undefined;
  }

  /** Also called from one of its own terms to the next: proposals of the earlier term may be lost. */
  loseAll(): void {
    for (const index of [...this.#waiting.keys()]) this.#lose(index);
  }

  #lose(index: number): void {
    const waiting = this.#waiting.get(index);
    this.#waiting.delete(index);
    const message = 'the master changed while the command was being replicated';
    waiting?.done(new ServiceError('UNKNOWN_OUTCOME', message), undefined);
  }
}

/** Why a leader accepts no command at the moment; undefined if this master does not lead. */
export function refusal(refused: Refusal): ServiceError | undefined {
  switch (refused) {
    case 'notLeader':
      return undefined;
    case 'queueFull':
      return new ServiceError(
        'RESOURCE_EXHAUSTED',
        'the master is overloaded: too many commands wait to be replicated; try again later',
      );
    case 'transferring':
      return new ServiceError('UNAVAILABLE', 'the master is transferring its leadership; try again');
    case 'noOwnTermCommit':
    case 'confPending':
      return new ServiceError('UNAVAILABLE', 'another change of the masters is in progress');
    case 'confInvalid':
    case 'notVoter':
      return new ServiceError('INVALID_ARGUMENT', 'the requested change of the masters is not possible');
    default:
      return unreachable(refused);
  }
}
