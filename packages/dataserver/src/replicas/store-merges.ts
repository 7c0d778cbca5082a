import type { ServiceError, Span } from '@remora/base';
import { type Endings, NO_ENDINGS } from '../install/installer.ts';
import type { Carried } from '../range/membership/member-orders.ts';
import type { RangeReplica } from '../range/range-replica.ts';
import { MergeDriver, type MergeDriverDeps, type WantedMerge } from '../range/reshape/merge-driver.ts';
import type { MergeNeighbours } from '../range/reshape/merges.ts';
import { OrphanedSeals, type OrphanedSealsDeps } from '../range/reshape/orphaned-seals.ts';
import type { RangeState } from '../state/range-state.ts';
import { MergedReplicas, type MergedReplicasDeps } from './merged-replicas.ts';

export interface StoreMergesDeps
  extends MergedReplicasDeps,
    Omit<MergeDriverDeps, 'replica' | 'replicas' | 'sealed'>,
    Pick<OrphanedSealsDeps, 'knownRanges'> {
  /** Sealed replicas are among them. */
  readonly active: () => Iterable<RangeReplica>;
}

/** A store's part in merges: the merges that its leaders drive, and the replicas here that merges end. */
export class StoreMerges {
  readonly #deps: StoreMergesDeps;
  readonly #merged: MergedReplicas;
  readonly #driver: MergeDriver;
  readonly #orphanedSeals: OrphanedSeals;

  constructor(deps: StoreMergesDeps) {
    this.#deps = deps;
    const { replicas } = deps;
    this.#merged = new MergedReplicas(deps);
    const replica = (rangeId: number): RangeReplica | undefined => replicas.get(rangeId)?.replica;
    const sealed = (): readonly RangeReplica[] =>
      [...deps.active()].filter(({ state }) => state.merging.seal !== undefined);
    this.#driver = new MergeDriver({ ...deps, replica, replicas: () => replicas.all(), sealed });
    this.#orphanedSeals = new OrphanedSeals({ ...deps, replicas: () => replicas.all(), sealed });
  }

  /** Merges a neighbour into a range that is led here; a repeated call returns the progress. */
  carryOut(wanted: WantedMerge): Carried {
    return this.#driver.carryOut(wanted);
  }

  /** Whether a neighbour is being merged with a range that is led here. */
  isMerging(rangeId: number): boolean {
    return this.#driver.isMerging(rangeId);
  }

  /** What each replica needs for merges. */
  get seams(): {
    readonly neighbours: MergeNeighbours;
    readonly swallowed: (span: Span, rangeId: number) => Endings;
  } {
    const swallowed = (span: Span, rangeId: number): Endings => {
      const target = this.#deps.replicas.get(rangeId)?.replica;
      return target === undefined ? NO_ENDINGS : this.#merged.swallowed(target, span);
    };
    return { neighbours: this.#merged, swallowed };
  }

  /**
   * Returns the range that prevents the install of a snapshot with rows of the span: one that still has such rows, or
   * one that awaits this range.
   */
  keepsOut(span: Span, rangeId: number): number | undefined {
    const { replicas } = this.#deps;
    const running = replicas.get(rangeId)?.replica;
    // A range that ended here while the snapshot was in transit takes over no other range (merged-replicas.ts MP1).
    if (running === undefined) return replicas.sharing(span, rangeId);
    const awaiting = this.#merged.awaitedBy(running.state);
    const swallowed = (state: RangeState): boolean => this.#merged.isSwallowed(state, rangeId, span);
    return awaiting ?? replicas.sharing(span, rangeId, swallowed);
  }

  /** Whether it has to stay until another range here has reached a merge (merged-replicas.ts MP3). */
  isAwaited(state: RangeState): boolean {
    return this.#merged.awaitedBy(state) !== undefined;
  }

  /** For requests to a range that ended here: says where its keys are. */
  moved(rangeId: number): ServiceError | undefined {
    return this.#merged.moved(rangeId);
  }

  /** Called about every second. */
  housekeep(): void {
    this.#driver.housekeep();
    this.#orphanedSeals.housekeep();
  }

  stop(): void {
    this.#driver.stop();
  }
}
