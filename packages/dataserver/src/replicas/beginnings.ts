/** How the Raft group of a replica without a log begins: its membership, and its first leader. */
import { FIRST_EPOCH, type RangeDescriptor } from '@remora/protocol';
import { type ConfState, confOf, type GroupOptions } from '@remora/raft';
import type { SplitOff } from '../range/reshape/splits.ts';

export type Beginning = Pick<GroupOptions, 'firstWaitTicks' | 'firstRetryTicks' | 'firstLeader'>;

/** The voters of a new range campaign this far apart: the first that finds a quorum created leads. */
const FIRST_WAIT_TICKS_APART = 4;
/**
 * For a child that begins without a leader on the parent leader's node: the others are writing their checkpoints and
 * begin soon.
 */
const FIRST_OF_SPLIT: Beginning = { firstWaitTicks: 0, firstRetryTicks: 1 };

/** The membership of a replica that has applied nothing: the range's first, or none (T4 of the store). */
export function firstConf({ epoch, replicas }: RangeDescriptor): ConfState {
  const isFirst = epoch.confVersion === FIRST_EPOCH.confVersion && epoch.version === FIRST_EPOCH.version;
  if (!isFirst) return confOf([]);
  const idsOf = (type: 'voter' | 'learner') => replicas.filter((r) => r.type === type).map((r) => r.replicaId);
  return confOf(idsOf('voter'), idsOf('learner'));
}

/** For a replica that is created: the voters of a new range campaign one after the other. */
export function createdBeginning({ voters }: ConfState, replicaId: number): Beginning {
  const position = voters.indexOf(replicaId);
  return position < 0 ? {} : { firstWaitTicks: position * FIRST_WAIT_TICKS_APART };
}

/**
 * For a replica that a split has made: the first leader is where the split was led (range/reshape/splits.ts S7). If
 * that is not known here, the replica on the node of the parent's current leader campaigns first.
 */
export function splitOffBeginning(
  { start, leaderNode }: SplitOff,
  replicaId: number,
  parent: { readonly leading: boolean },
): Beginning {
  const { descriptor, conf } = start.meta;
  const leader = descriptor.replicas.find(({ nodeId }) => nodeId === leaderNode);
  if (leader !== undefined) return { firstLeader: leader.replicaId };
  const position = conf.voters.indexOf(replicaId);
  if (position < 0) return {};
  return parent.leading ? FIRST_OF_SPLIT : { firstWaitTicks: (position + 1) * FIRST_WAIT_TICKS_APART };
}
