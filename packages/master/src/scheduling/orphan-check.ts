/** Replicas that nodes still hold after their range has gone on without them. */
import type { Epoch } from '@remora/protocol';
import type { ClusterView } from './cluster-model.ts';

/** A replica, as its node knows it. */
export interface HeldReplica {
  readonly rangeId: number;
  readonly replicaId: number;
  readonly epoch: Epoch;
}

export type Belonging =
  | 'member'
  /** It was removed, and its node may drop it. */
  | 'removed'
  /** Nothing that would allow dropping it. */
  | 'unknown';

/**
 * Whether a replica still belongs to its range. "No" is valid only from a `confVersion` above the replica's own (design
 * §5): a master that is behind does not know of a replica that has just joined.
 */
export function belonging(model: ClusterView, held: HeldReplica): Belonging {
  const descriptor = model.range(held.rangeId)?.descriptor;
  if (descriptor === undefined) return 'unknown';
  if (descriptor.replicas.some(({ replicaId }) => replicaId === held.replicaId)) return 'member';
  return descriptor.epoch.confVersion > held.epoch.confVersion ? 'removed' : 'unknown';
}
