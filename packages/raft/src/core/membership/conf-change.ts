/**
 * Membership changes, and the configuration that results from each (etcd-io/raft, confchange).
 *
 * M1. A simple change affects at most one voter, so that the majorities before and after it overlap (dissertation
 *     §4.1). Every other change goes through a joint configuration, which needs majorities of both sides (§4.3).
 * M2. The only change allowed in a joint configuration is to leave it.
 * M3. Every configuration has an incoming voter, and no replica has two roles. A voter of the outgoing side that will
 *     become a learner waits in `learnersNext` until the joint configuration is left.
 * M4. The next configuration depends only on the current configuration and the change: every replica computes the same
 *     one.
 * M5. A forced change turns any configuration into that of its replica alone (forced.ts). It is never accepted as a
 *     proposal.
 *
 * `conf-change-codec.ts` defines the encoding of a change.
 */

import type { ConfProblem, ConfState, ReplicaId } from '../types.ts';
import { confOf, isJoint, leaveJoint } from './membership.ts';

/**
 * The change of one replica. A step whose replica already has the wanted role, or is gone, does nothing: a change
 * with an unknown outcome may be proposed again.
 */
export interface ConfStep {
  /** `addVoter` also promotes a learner, `addLearner` also demotes a voter. */
  readonly type: 'addVoter' | 'addLearner' | 'remove';
  readonly replica: ReplicaId;
}

/** A membership change. Without steps it leaves a joint configuration. */
export interface ConfChange {
  /** Applied in order. */
  readonly steps: readonly ConfStep[];
  /**
   * `auto`: simple if at most one voter changes, otherwise like `jointAuto`. `jointAuto`: through a joint
   * configuration, which the leader leaves automatically. `joint`: until a change without steps leaves it. `forced`: at
   * once, whatever the configuration; never proposed (M5).
   */
  readonly transition: 'auto' | 'joint' | 'jointAuto' | 'forced';
  /** For the state machine; the core ignores it. */
  readonly context: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

/** The change that leaves a joint configuration. */
export const LEAVE_JOINT: ConfChange = { steps: [], transition: 'auto', context: NO_BYTES };

/** A change of the given steps, without context. */
export function confChange(steps: readonly ConfStep[], transition: ConfChange['transition'] = 'auto'): ConfChange {
  return { steps, transition, context: NO_BYTES };
}

/** The change by which a replica continues alone. (M5) */
export function forcedChange(replica: ReplicaId, context: Uint8Array): ConfChange {
  return { steps: [{ type: 'addVoter', replica }], transition: 'forced', context };
}

/** Whether a change takes effect whatever the state machine decides: it leaves a joint configuration, or a lost one. */
export function takesEffectAlways({ steps, transition }: ConfChange): boolean {
  return steps.length === 0 || transition === 'forced';
}

/** Returns the configuration after `change`, or why the change is not possible. Lists are in ascending order. (M4) */
export function changeConf(conf: ConfState, change: ConfChange): ConfState | { readonly invalid: ConfProblem } {
  const { steps, transition } = change;
  if (transition === 'forced') return confOf(steps.map(({ replica }) => replica)); // M5
  if (steps.length === 0) return isJoint(conf) ? sorted(leaveJoint(conf)) : { invalid: 'notJoint' };
  if (isJoint(conf)) return { invalid: 'joint' };
  if (conf.voters.length === 0) return { invalid: 'noVoters' };
  if (steps.some(({ replica }) => !Number.isSafeInteger(replica) || replica <= 0)) return { invalid: 'noReplica' };
  const simple = transition === 'auto' ? applySteps(conf, steps) : undefined;
  const next =
    simple !== undefined && votersChanged(conf.voters, simple.voters) <= 1
      ? simple
      : applySteps({ ...conf, votersOutgoing: conf.voters, autoLeave: transition !== 'joint' }, steps); // M1
  return next.voters.length === 0 ? { invalid: 'noVoters' } : sorted(next);
}

function applySteps(conf: ConfState, steps: readonly ConfStep[]): ConfState {
  const outgoing = new Set(conf.votersOutgoing);
  const voters = new Set(conf.voters);
  const learners = new Set(conf.learners);
  const learnersNext = new Set(conf.learnersNext);
  for (const { type, replica } of steps) {
    voters.delete(replica);
    learners.delete(replica);
    learnersNext.delete(replica);
    if (type === 'addVoter') voters.add(replica);
    else if (type === 'addLearner') (outgoing.has(replica) ? learnersNext : learners).add(replica); // M3
  }
  return {
    voters: [...voters],
    votersOutgoing: conf.votersOutgoing,
    learners: [...learners],
    learnersNext: [...learnersNext],
    autoLeave: conf.autoLeave,
  };
}

function votersChanged(before: readonly ReplicaId[], after: readonly ReplicaId[]): number {
  return before.filter((id) => !after.includes(id)).length + after.filter((id) => !before.includes(id)).length;
}

function sorted(conf: ConfState): ConfState {
  const ascending = (ids: readonly ReplicaId[]) => ids.toSorted((a, b) => a - b);
  return {
    ...confOf(ascending(conf.voters), ascending(conf.learners)),
    votersOutgoing: ascending(conf.votersOutgoing),
    learnersNext: ascending(conf.learnersNext),
    autoLeave: conf.autoLeave,
  };
}
