import { ServiceError } from '@remora/base';
import type { Group, Refusal } from '@remora/raft';
import type { ServedReplica } from '../served-replica.ts';

/** The part of a replica that a transfer needs. */
type Transferring = Pick<ServedReplica, 'rangeId' | 'leading' | 'notLeader'> & {
  readonly group: Pick<Group, 'replicaId' | 'status' | 'transferLeader'>;
  readonly state: Pick<ServedReplica['state'], 'descriptor'>;
};

/**
 * Begins to hand the leadership of a range to its replica on the given node; returns the reason if it cannot. Does
 * nothing if that node leads already. The transfer ends automatically: with the new leader, or after an election
 * time-out without one.
 */
export function transferLeaderTo(replica: Transferring, toNode: number): ServiceError | undefined {
  const { rangeId, group, state } = replica;
  if (!replica.leading) return replica.notLeader();
  const voters = state.descriptor.replicas.filter(({ type }) => type === 'voter');
  const target = voters.find(({ nodeId }) => nodeId === toNode);
  if (target === undefined) {
    const nodes = voters.map(({ nodeId }) => nodeId).join(', ');
    return refused(`node ${toNode} has no voting replica of range ${rangeId}; there are some on nodes ${nodes}`);
  }
  if (target.replicaId === group.replicaId) return undefined;
  const progress = group.status().progress.find((p) => p.replica === target.replicaId);
  if (progress?.heardLately !== true) {
    return refused(`node ${toNode} has not answered the leader of range ${rangeId} lately; it could not take over`);
  }
  const answer = group.transferLeader(target.replicaId);
  return answer === undefined ? undefined : refusal(answer.refused, replica);
}

function refusal(reason: Refusal, replica: Transferring): ServiceError {
  switch (reason) {
    case 'notLeader':
      return replica.notLeader();
    case 'transferring':
      return new ServiceError(
        'UNAVAILABLE',
        `another transfer of range ${replica.rangeId} is in progress; try again later`,
      );
    default:
      return refused(`the leader of range ${replica.rangeId} cannot hand over now (${reason})`);
  }
}

function refused(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
