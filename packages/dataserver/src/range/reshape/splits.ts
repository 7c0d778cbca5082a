import type { ServiceError } from '@remora/base';
import type { CommandResult } from '@remora/protocol';
import type { LockListeners } from '../../lock-watch/lock-listeners.ts';
import type { RangeStart } from '../../state/effects.ts';
import { errorOf } from '../../state/outcomes/outcome-codec.ts';
import { lockWithin } from '../../state/request-bounds.ts';
import type { SplitCommand } from '../../state/reshape/split.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { CommandQueue } from '../requests/command-queue.ts';
import type { Queries } from '../requests/queries.ts';
import type { RangeWatches } from '../requests/range-watches.ts';
import type { KeyChange } from './key-change.ts';
import type { SplitOffRanges } from './split-off-ranges.ts';

export type SplitResult = Extract<CommandResult, { type: 'split' }>;
export type SplitDone = (error: ServiceError | undefined, result: SplitResult | undefined) => void;

/** The child of a split, as one node creates it. */
export interface SplitOff {
  readonly start: RangeStart;
  /** The node that leads it from the start (S7); 0: none that is known here. */
  readonly leaderNode: number;
}

export interface SplitsDeps {
  readonly commands: Pick<CommandQueue, 'proposeAlone'>;
  readonly queries: Queries;
  readonly watches: RangeWatches;
  readonly lockListeners: LockListeners;
  readonly keyChange: KeyChange;
  readonly splitOff: SplitOffRanges;
  /**
   * The range was cut in this step: starts the child's replica on this node. Resolves when both are durable in their
   * state after the split, and the child takes part in checkpoints.
   */
  readonly onSplit: (child: SplitOff, parent: ReplicaContext) => Promise<void>;
}

/**
 * Splits of a range: how its leader proposes one, and how a split affects the clients that the range serves.
 *
 * S1. A split is applied in one step: the range is cut, and in that step the child's state is put into the engine
 *     (`onSplit`). So a checkpoint has either the range after the split and the child, or the range before it and no
 *     child.
 * S2. The child's replica runs only once such a checkpoint is durable: before that it sends no vote, no log entry and
 *     no answer (store.ts T1, T6).
 * S3. After a crash before that checkpoint, nothing of the child is left and no other node knows of it: the split is
 *     applied again and makes the same child. After a crash behind it, the split is not applied again: the child starts
 *     from its own state.
 * S4. So no entry from before the split, which may write to keys that have left, is applied again after the child has
 *     moved on. Everything that deletes the range's own state (a snapshot that replaces it) waits for `durable`; a
 *     range that is removed is staged last in the engine that has the child's first state.
 * S5. A replica that passes a split by a snapshot makes no child. The child's replica is created like one that joins,
 *     when the range no longer has the child's keys here (T7).
 * S6. Messages for a child that does not run yet, and the master's order to create it, find no replica and are refused;
 *     they are sent again. A child that ended here before its split is applied, late, is not made again (T5).
 * S7. The leader of the range in the term of the split's entry leads the child from the start, if it applies the split
 *     as that leader. That is at most one node, because a term has one leader; and it happens once, because a node that
 *     applies the split again after a crash no longer leads in that term. It acts only once the child is durable there
 *     (S2); after that no crash causes the split to be applied again (S3). Without such a node, the child elects its
 *     leader like any range.
 * S8. The checkpoint that makes the split durable must be short, because no range serves the child's keys before it. So
 *     it only names the outcomes that the range had stored; the child copies them with the next checkpoint
 *     (state/outcomes/outcomes.ts O6). Therefore rows of a range are deleted, other than by a checkpoint, only after a
 *     checkpoint that began when its children took part in checkpoints: a snapshot that replaces them (range-replica.ts
 *     `install`) and a removal (replica-remover.ts RM4) ensure that.
 */
export class Splits {
  readonly #context: ReplicaContext;
  readonly #deps: SplitsDeps;
  #durable: Promise<void> = Promise.resolve();

  constructor(context: ReplicaContext, deps: SplitsDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /** Resolves when all splits that are applied are durable, and their children here take part in checkpoints (S8). */
  get durable(): Promise<void> {
    return this.#durable;
  }

  /** Proposes a split on the leader; `done` is called once it is applied here. Apply repeats these checks. */
  propose(command: SplitCommand, done: SplitDone): void {
    const { leading, state } = this.#context;
    if (!leading) return done(this.#context.notLeader(), undefined);
    const refused = state.splitRefusal(command);
    if (refused !== undefined) return done(refused, undefined);
    this.#deps.commands.proposeAlone(command, (error, outcome) => {
      if (outcome === undefined) return done(error, undefined);
      if (!outcome.ok) return done(errorOf(outcome), undefined);
      if (outcome.result.type === 'split') done(undefined, outcome.result);
    });
  }

  /** The range ends earlier now: watchers and waiters of keys that have left ask again, at the range that has them. */
  applied(start: RangeStart, term: number): void {
    const { keyChange, splitOff, lockListeners, watches, queries, onSplit } = this.#deps;
    const { bounds, outcomes } = this.#context.state;
    keyChange.applied();
    splitOff.add(start.meta.descriptor);
    lockListeners.flush(); // what came before is still for them
    // Does not use the hub's revision: transactions that left no longer hold back what the hub sends (its W4), which
    // may be above their commits.
    const stale = this.#context.staleEpoch();
    watches.endOutside(bounds, stale);
    queries.interrupt(stale, (lock) => !lockWithin(bounds, lock));
    const leaderNode = this.#context.leadership.nodeOf(term); // S7
    this.#durable = onSplit({ start, leaderNode }, this.#context).then(() => outcomes.settled());
    this.#durable.catch(() => {}); // its failure stops the node (`onFailure`); waiters get the error too
  }
}
