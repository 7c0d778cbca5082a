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

/** The child of a split as it comes to be on one node. */
export interface SplitOff {
  readonly start: RangeStart;
  /** The node that leads it from the start (S7); 0: nobody that is known here. */
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
   * The range was cut in this step: brings the child's replica on this node to life. Resolves when both are durable as
   * they are behind the split, and the child takes part in checkpoints.
   */
  readonly onSplit: (child: SplitOff, parent: ReplicaContext) => Promise<void>;
}

/**
 * Splits of a range: how its leader proposes one, and what one is to those who are being served.
 *
 * S1. A split is applied in one step: the range is cut, and in that step the child's state is put into the engine
 *     (`onSplit`). So a checkpoint has the range behind the split and the child, or the range before it and no child.
 * S2. The child's replica runs only once such a checkpoint is durable: no vote, no entry of its log and no answer of it
 *     comes before (store.ts T1, T6).
 * S3. After a crash before that, nothing is left of the child, and nobody has heard of it: the split is applied again
 *     and makes the same child. After a crash behind it, the split is not applied again: the child starts from what it
 *     has.
 * S4. So no entry from before the split, which may write to keys that have left, is applied again beside a child that
 *     has gone on. Whatever takes the range's own state away (a snapshot that replaces it) waits for `durable`; a range
 *     that is removed is staged last in the engine that has the child's first state.
 * S5. A replica that gets past a split by a snapshot makes no child. It is created as one that joins, when the range no
 *     longer has its keys here (T7).
 * S6. What comes for a child before it runs (messages, the master's word to create it) finds no replica and is refused;
 *     it is sent again. One that ended here before its split is applied, late, is not made again (T5).
 * S7. Who led the range in the term of the split's entry leads the child from the start, where it applies the split as
 *     that leader. That is one node at most, as there is one leader of a term; and once, as what applies the split
 *     again after a crash leads in that term no more. It acts only once the child is durable there (S2), so behind that
 *     no crash has the split applied again (S3). If there is none, the child elects its leader like any range.
 * S8. The checkpoint that makes the split durable is short, as nobody has the child's keys before: what the range had
 *     stored of outcomes the child only names in it, and takes over with the next one (state/outcomes/outcomes.ts O6).
 *     So rows of a range go, other than by a checkpoint, only behind one that began when its children took part in
 *     checkpoints: a snapshot that takes their place (range-replica.ts `install`) and a removal (replica-remover.ts
 *     RM4) see to it.
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

  /**
   * Proposes a split on the leader; `done` is called once it is applied here. Apply checks again what is refused here.
   */
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
    lockListeners.flush(); // what came before is theirs yet
    // Not the hub: transactions that left do not hold back any more what it tells (its W4), which may be above what
    // they commit.
    const stale = this.#context.staleEpoch();
    watches.endOutside(bounds, stale);
    queries.interrupt(stale, (lock) => !lockWithin(bounds, lock));
    const leaderNode = this.#context.leadership.nodeOf(term); // S7
    this.#durable = onSplit({ start, leaderNode }, this.#context).then(() => outcomes.settled());
    this.#durable.catch(() => {}); // its failure stops the node (`onFailure`); whoever waits for it is told too
  }
}
