/** How the Raft group of a replica begins that has no log yet: with which membership, and who is its first leader. */
import { FIRST_EPOCH, type RangeDescriptor } from '@remora/protocol';
import { type ConfState, confOf, type GroupOptions } from '@remora/raft';
import type { SplitOff } from '../range/reshape/splits.ts';

export type Beginning = Pick<GroupOptions, 'firstWaitTicks' | 'firstRetryTicks' | 'firstLeader'>;

/** The voters of a new range campaign this far apart: the first that finds a quorum created leads. */
const FIRST_WAIT_TICKS_APART = 4;
/**
 * Of a child that begins without a leader, where the parent's is: the others write their checkpoints, and come any
 * moment.
 */
const FIRST_OF_SPLIT: Beginning = { firstWaitTicks: 0, firstRetryTicks: 1 };

/** The membership of a replica that has applied nothing: the range's first, or none (T4 of the store). */
export function firstConf({ epoch, replicas }: RangeDescriptor): ConfState {
  const isFirst = epoch.confVersion === FIRST_EPOCH.confVersion && epoch.version === FIRST_EPOCH.version;
  if (!isFirst) return confOf([]);
  const idsOf = (type: 'voter' | 'learner') => replicas.filter((r) => r.type === type).map((r) => r.replicaId);
  return confOf(idsOf('voter'), idsOf('learner'));
}

/** Of a replica that is created: the voters of a new range campaign one after the other. */
export function createdBeginning({ voters }: ConfState, replicaId: number): Beginning {
  const position = voters.indexOf(replicaId);
  return position < 0 ? {} : { firstWaitTicks: position * FIRST_WAIT_TICKS_APART };
}

/**
 * Of a replica that a split has made: the first leader is where the split was led (range/reshape/splits.ts S7). If
 * nothing is known of that one here, who leads the parent by now campaigns first.
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
