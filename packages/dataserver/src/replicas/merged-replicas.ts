import { assert, type ServiceError, type Span } from '@remora/base';
import { staleEpoch } from '@remora/protocol';
import type { Endings } from '../install/installer.ts';
import type { ReplicaContext } from '../range/replica-context.ts';
import type { MergeNeighbours } from '../range/reshape/merges.ts';
import { spansOverlap } from '../state/bounds.ts';
import { stateKey } from '../state/keys.ts';
import { encodeRangeMeta } from '../state/meta-codec.ts';
import type { RangeState } from '../state/range-state.ts';
import { withoutKeys } from '../state/reshape/merge.ts';
import { type Seal, verdictOn } from '../state/reshape/merging.ts';
import type { HeldReplicas } from './held-replicas.ts';
import type { ReplicaRemover } from './replica-remover.ts';
import type { ReplicaTable, Running } from './replica-table.ts';

export interface MergedReplicasDeps {
  readonly replicas: ReplicaTable;
  readonly held: HeldReplicas;
  readonly remover: ReplicaRemover;
  /** A range has ended here, and the new place of its keys is known. */
  readonly onMoved: (rangeId: number) => void;
  readonly onFailure: (error: unknown) => void;
}

/** Ranges that ended here lately and whose keys' new place is remembered. */
const ENDED_MAX = 256;

/**
 * How a node ends its replicas of the sources of merges (range/reshape/merges.ts MR3, MR5).
 *
 * MP1. The replica of a source ends in the step in which the target's replica gets its keys. That is when the target
 *      applies the merge, or when a snapshot of the target with keys of the source begins to replace its rows (the
 *      target can have those keys only by the merge). What is left of the source records that it has no keys and has
 *      ended.
 * MP2. In the first case this becomes durable with the target's state behind the merge, in one checkpoint; in the
 *      second with the marker of the snapshot, in one batch. So after a crash either the source is as it was and the
 *      target before the merge, or the source has ended and the target has the keys.
 * MP3. While the target's replica here may still reach the merge, the source's replica stays as it is: no snapshot
 *      replaces its rows, and the master's word does not remove it. That also holds while the target's replica is being
 *      removed, until its end is durable: it may be on its way to the merge, and after a crash it runs again. Without
 *      such a replica of the target, the source's replica is like any other.
 */
export class MergedReplicas implements MergeNeighbours {
  readonly #deps: MergedReplicasDeps;
  /** By range: the range that has its keys now. */
  readonly #into = new Map<number, number>();

  constructor(deps: MergedReplicasDeps) {
    this.#deps = deps;
  }

  source(rangeId: number): RangeState {
    const replica = this.#deps.replicas.get(rangeId)?.replica;
    assert(replica !== undefined && !replica.replacing, `MR3: range ${rangeId} is here, as it was sealed`);
    return replica.state;
  }

  /** MP1, MP2: by the merge. */
  merged(sourceId: number, target: Pick<ReplicaContext, 'rangeId' | 'state'>): void {
    const { replicas, held } = this.#deps;
    const running = replicas.get(sourceId);
    assert(running !== undefined, 'it was there a moment ago');
    this.#end(running, target);
    running.replica.state.descriptor = withoutKeys(running.replica.state.descriptor);
    running.replica.stage();
    held.ends(sourceId, running.replica.group.replicaId);
    this.#clear(running);
  }

  /**
   * MP1, MP2: by a snapshot of the target that brings rows of the span. Returns the rows that record the end of the
   * sources; they become durable together with what makes the snapshot the target's state.
   */
  swallowed(target: Pick<ReplicaContext, 'rangeId' | 'state'>, span: Span): Endings {
    const { replicas, held } = this.#deps;
    const ended: Running[] = [];
    for (const { state, rangeId } of [...replicas.all()]) {
      const running = this.isSwallowed(state, target.rangeId, span) ? replicas.get(rangeId) : undefined;
      if (running === undefined) continue;
      this.#end(running, target);
      state.descriptor = withoutKeys(state.descriptor);
      ended.push(running);
    }
    const rows = ended.flatMap(({ replica: { rangeId, group, state } }) => [
      { key: stateKey(rangeId), value: encodeRangeMeta(state) },
      held.endedRow(rangeId, group.replicaId),
    ]);
    // Not earlier: until then, nothing may record that they have ended.
    const written = (): void => {
      for (const running of ended) this.#clear(running);
    };
    return { rows, written };
  }

  /** Whether a snapshot of a range that brings rows of the span ends this one (MP1). */
  isSwallowed({ merging, bounds }: RangeState, targetId: number, span: Span): boolean {
    return merging.seal?.targetId === targetId && spansOverlap(span, bounds);
  }

  /** Returns the range whose replica here requires this one to stay as it is (MP3); undefined if there is none. */
  awaitedBy({ rangeId, merging }: RangeState): number | undefined {
    const { seal } = merging;
    return seal !== undefined && this.#isOpen(seal, rangeId) ? seal.targetId : undefined;
  }

  #isOpen(seal: Seal, sourceId: number): boolean {
    const { replicas } = this.#deps;
    const target = replicas.get(seal.targetId)?.replica ?? replicas.ending(seal.targetId);
    if (target === undefined) return replicas.creating(seal.targetId) !== undefined;
    return target.replacing || verdictOn(seal, sourceId, target.state) === 'open';
  }

  /** For requests to a range that ended here: says where its keys are. */
  moved(rangeId: number): ServiceError | undefined {
    const target = this.#deps.replicas.get(this.#into.get(rangeId) ?? 0)?.replica;
    return target && staleEpoch([target.state.descriptor]);
  }

  #end({ replica, leaveCheckpoints }: Running, target: Pick<ReplicaContext, 'rangeId' | 'state'>): void {
    this.#deps.replicas.remove(replica.rangeId);
    leaveCheckpoints();
    replica.merges.yieldTo(target.state);
    replica.close();
    this.#remember(replica.rangeId, target.rangeId);
  }

  #remember(sourceId: number, targetId: number): void {
    this.#into.set(sourceId, targetId);
    for (const [before, into] of this.#into) if (into === sourceId) this.#into.set(before, targetId);
    const [oldest] = this.#into.keys();
    if (this.#into.size > ENDED_MAX && oldest !== undefined) this.#into.delete(oldest);
    this.#deps.onMoved(sourceId);
  }

  #clear({ replica }: Running): void {
    const { descriptor: span, rangeId } = replica.state;
    const last = { settled: () => replica.settled, stage: () => {}, span: () => span };
    this.#deps.remover.remove({ rangeId, replicaId: replica.group.replicaId, span, last }).catch(this.#deps.onFailure);
  }
}
