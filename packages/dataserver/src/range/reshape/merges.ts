import type { ServiceError } from '@remora/base';
import { type CommandResult, type MergeCommand, type MergeRound, type SealedRange, staleEpoch } from '@remora/protocol';
import type { LockListeners } from '../../lock-watch/lock-listeners.ts';
import { errorOf } from '../../state/outcomes/outcome-codec.ts';
import type { RangeFields } from '../../state/range-fields.ts';
import { sealRefusal } from '../../state/reshape/merge.ts';
import type { WatchHub } from '../../watch/watch-hub.ts';
import type { LeaseManager } from '../leases/lease-manager.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { ClosedRevisions } from '../requests/closed-revisions.ts';
import type { CommandQueue } from '../requests/command-queue.ts';
import type { Queries } from '../requests/queries.ts';
import type { RangeWatches } from '../requests/range-watches.ts';
import type { KeyChange } from './key-change.ts';

type MergeDone = (error: ServiceError | undefined, result: CommandResult | undefined) => void;

/** The replicas of other ranges on this node, for merges (replicas/merged-replicas.ts). */
export interface MergeNeighbours {
  /** The state of the sealed source of a merge. */
  source(rangeId: number): RangeFields;
  /** The target has the keys of the source in this step: ends the source's replica here. */
  merged(sourceId: number, target: ReplicaContext): void;
}

/** A request that waits until a seal is decided. */
interface HeldRequest {
  readonly again: () => void;
  readonly refuse: (error: ServiceError) => void;
}

/** More are refused. */
const HELD_MAX = 10_000;

interface MergesDeps {
  readonly commands: Pick<CommandQueue, 'proposeAlone'>;
  readonly queries: Queries;
  readonly closing: ClosedRevisions;
  readonly leases: Pick<LeaseManager, 'start' | 'stop'>;
  readonly watches: RangeWatches;
  readonly hub: WatchHub;
  readonly lockListeners: LockListeners;
  readonly keyChange: KeyChange;
  readonly neighbours: MergeNeighbours;
}

/**
 * Merges of a range with its neighbour: the log's part, and the effect on the clients that the ranges serve. The driver
 * of a merge is in merge-driver.ts, the end of the source's replica in replicas/merged-replicas.ts.
 *
 * MR1. From the seal that it has applied until it is unsealed, a replica of the source answers nothing: no command, no
 *      read (also not as a follower), no keep-alive. It closes no revision, lets no lease expire, and admits no change
 *      of its members. So all its earlier answers describe a state that the target takes over.
 * MR2. A merge is proposed only when every replica of the source has applied the seal so that no crash undoes it: the
 *      seal was in a checkpoint (`range.settle`). So when the target serves the source's keys, no node serves them as
 *      the source any more, even one that crashed, restarted, or believes that it leads.
 * MR3. Therefore the source's replica is there, sealed, on each node that applies the merge. The source's members
 *      cannot change while it is sealed (MR1). The target's members are those at the time of the comparison, because
 *      the merge names the epoch of that time. Neither a snapshot nor the master's order removes a sealed source while
 *      the target on that node may still reach the merge (merged-replicas.ts). A target that passes the merge by a
 *      snapshot gets the source's keys from there, and ends the source in the same step.
 * MR4. One entry in the target's log decides a round: afterwards the target either has the source's keys or will never
 *      get them in this round. Nothing else decides. A source is unsealed only on the verdict of a state in which its
 *      round was decided against it (merging.ts `verdictOn`).
 * MR5. The step that applies the merge ends the source's replica on that node, and checkpoints contain both or neither.
 *      After a crash before the checkpoint, the source is there, sealed, and the merge is applied again. The source's
 *      log is deleted after that checkpoint (replica-remover.ts RM1); its rows are the target's.
 * MR6. Leases of the source have their full time from the moment when the target's leader knows them: that is later
 *      than any acknowledgement by the source's leader (MR1). What the source has closed stays closed: changes of its
 *      keys get revisions drawn after the merge was applied, and the order was: close, seal, merge.
 * MR7. Watchers and waiters at the source continue at the target, from where they were. Requests that reach the
 *      source's leader while it is sealed are held until the leader can name the target, or execute them after all.
 */
export class Merges {
  readonly #context: ReplicaContext;
  readonly #deps: MergesDeps;
  #held: HeldRequest[] = [];

  constructor(context: ReplicaContext, deps: MergesDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /** MR7. Whether the request is held now; false if it should not be, or too many are. */
  holds(request: HeldRequest): boolean {
    if (this.#context.sealed === undefined || this.#held.length >= HELD_MAX) return false;
    this.#held.push(request);
    return true;
  }

  refuseHeld(error: ServiceError): void {
    for (const { refuse } of this.#takeHeld()) refuse(error);
  }

  #takeHeld(): readonly HeldRequest[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }

  // -------------------------------------------------------------------------------------------- proposals

  /** On the source's leader: seals it for a round of the target. */
  seal(
    command: Extract<MergeCommand, { type: 'seal' }>,
    done: (error?: ServiceError, sealed?: SealedRange) => void,
  ): void {
    const refused = sealRefusal(this.#context.state, command);
    if (refused !== undefined) return done(refused);
    this.propose(command, (error, result) => done(error, result?.type === 'seal' ? result.sealed : undefined));
  }

  /**
   * On the source's leader: the round was decided against it. Does nothing if the source is not sealed for that round.
   */
  unseal(from: MergeRound, done: (error?: ServiceError) => void): void {
    this.propose({ type: 'unseal', from }, (error) => {
      done(error?.code === 'INVALID_ARGUMENT' ? undefined : error);
    });
  }

  /** On the target's leader: refuses a round. Does nothing if the round is decided already. */
  refuse(round: number, done: (error?: ServiceError) => void): void {
    this.propose({ type: 'refuseMerge', round }, (error) => {
      done(error?.code === 'INVALID_ARGUMENT' ? undefined : error);
    });
  }

  /** On the leader of either range; answers once the command is applied there. */
  propose(command: MergeCommand, done: MergeDone): void {
    if (!this.#context.serving) return done(this.#context.notLeader(), undefined);
    this.#deps.commands.proposeAlone(command, (error, outcome) => {
      if (outcome === undefined) done(error, undefined);
      else if (outcome.ok) done(undefined, outcome.result);
      else done(errorOf(outcome), undefined);
    });
  }

  // -------------------------------------------------------------------------------------------- what they are to
  // others

  /** MR1: the range was sealed, or unsealed: its leases have their full time from then on. */
  sealChanged(): void {
    const { closing, leases } = this.#deps;
    const { sealed, serving, group } = this.#context;
    group.tellCommits(); // the merge waits for all replicas (MR2)
    if (sealed !== undefined) {
      leases.stop(sealed);
      closing.abandon(sealed);
      return;
    }
    if (serving) leases.start(group.term);
    for (const { again } of this.#takeHeld()) again();
  }

  /** The range has the keys of the source too. */
  merged(sourceId: number): void {
    const { hub, keyChange, neighbours } = this.#deps;
    hub.flush();
    hub.reset(); // the hub does not know the history of the keys that came
    keyChange.applied();
    neighbours.merged(sourceId, this.#context);
  }

  /** MR7: the target has the keys, and writes them above all revisions written here. */
  yieldTo({ descriptor, revision }: Pick<RangeFields, 'descriptor' | 'revision'>): void {
    const { queries, watches, hub, lockListeners } = this.#deps;
    const stale = staleEpoch([descriptor]);
    hub.flush();
    hub.leave(revision);
    lockListeners.flush();
    watches.endAll(stale);
    queries.interrupt(stale);
    this.refuseHeld(stale);
  }
}
