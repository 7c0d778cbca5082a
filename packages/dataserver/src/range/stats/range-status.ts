import type { RangeStatus } from '@remora/protocol';
import type { ReplicaContext } from '../replica-context.ts';

type ShownReplica = Pick<ReplicaContext, 'state' | 'group' | 'leading' | 'leadership'>;

/** Returns what the replica on this node knows of its range. `watches`: those that are open here. */
export function rangeStatusOf(
  replica: ShownReplica,
  { nodeId, watches }: { readonly nodeId: number; readonly watches: number },
): RangeStatus {
  const { state, group } = replica;
  const raft = group.status();
  const matches = new Map(raft.progress.map((p) => [p.replica, p]));
  return {
    rangeId: state.rangeId,
    leaderNode: replica.leading ? nodeId : replica.leadership.node,
    term: raft.term,
    commit: raft.commit,
    applied: raft.applied,
    revision: state.revision,
    compactRevision: state.compactRevision,
    bytes: state.bytes,
    keys: state.keys,
    leases: state.leases.size,
    watches,
    replicas: state.descriptor.replicas.map((r) => {
      const own = r.replicaId === raft.replicaId;
      const progress = matches.get(r.replicaId);
      return {
        replicaId: r.replicaId,
        nodeId: r.nodeId,
        match: own ? raft.lastIndex : (progress?.match ?? 0),
        commit: own ? raft.commit : (progress?.commit ?? 0),
        state: own ? raft.role : (progress?.state ?? 'unknown'),
      };
    }),
  };
}
