/** Questions about a configuration, and the step out of a joint one. */
import type { ConfState, ReplicaId } from '../types.ts';

export const EMPTY_CONF: ConfState = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};

/** A plain configuration of the given voters and learners. */
export function confOf(voters: readonly ReplicaId[], learners: readonly ReplicaId[] = []): ConfState {
  return { ...EMPTY_CONF, voters, learners };
}

export function isJoint(conf: ConfState): boolean {
  return conf.votersOutgoing.length > 0;
}

export function isVoter(conf: ConfState, id: ReplicaId): boolean {
  return conf.voters.includes(id) || conf.votersOutgoing.includes(id);
}

export function isMember(conf: ConfState, id: ReplicaId): boolean {
  return isVoter(conf, id) || conf.learners.includes(id) || conf.learnersNext.includes(id);
}

/** Whether this replica by itself is a quorum. */
export function isOnlyVoter(conf: ConfState, id: ReplicaId): boolean {
  return !isJoint(conf) && conf.voters.length === 1 && conf.voters[0] === id;
}

/** Returns all voters, each once. */
export function votersOf(conf: ConfState): readonly ReplicaId[] {
  if (!isJoint(conf)) return conf.voters;
  return [...new Set([...conf.voters, ...conf.votersOutgoing])];
}

/** Returns all replicas that get entries, each once. */
export function membersOf(conf: ConfState): readonly ReplicaId[] {
  return [...new Set([...conf.voters, ...conf.votersOutgoing, ...conf.learners, ...conf.learnersNext])];
}

/** The configuration after a joint one: the incoming voters alone; those demoted become learners. */
export function leaveJoint(conf: ConfState): ConfState {
  return confOf(conf.voters, [...new Set([...conf.learners, ...conf.learnersNext])]);
}
