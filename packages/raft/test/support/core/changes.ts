/**
 * Membership changes for the test cluster: random ones, what kind they are, and what must hold between configurations.
 */
import {
  type ConfChange,
  type ConfStep,
  changeConf,
  confChange,
  LEAVE_JOINT,
} from '../../../src/core/membership/conf-change.ts';
import { decodeConfChange } from '../../../src/core/membership/conf-change-codec.ts';
import { isJoint } from '../../../src/core/membership/membership.ts';
import type { ConfState, Entry, ReplicaId } from '../../../src/core/types.ts';

const TYPES = ['addVoter', 'addVoter', 'addLearner', 'remove'] as const satisfies readonly ConfStep['type'][];
const TRANSITIONS = ['auto', 'auto', 'joint', 'jointAuto'] as const satisfies readonly ConfChange['transition'][];

/** A change of `conf` among replicas 1 to `count`, drawn from the digits of `pick`. */
export function randomChange(conf: ConfState, pick: number, count: number): ConfChange {
  let digits = pick;
  const draw = (bound: number) => {
    const digit = digits % bound;
    digits = Math.floor(digits / bound);
    return digit;
  };
  const kind = draw(6);
  const transition = TRANSITIONS[draw(TRANSITIONS.length)] ?? 'auto';
  if (kind === 0) return LEAVE_JOINT;
  if (kind === 1 && conf.learners.length > 0) {
    const promoted = conf.learners.map((replica): ConfStep => ({ type: 'addVoter', replica }));
    return confChange(promoted, transition);
  }
  const steps: ConfStep[] = [];
  for (let left = 1 + draw(3); left > 0; left--) {
    steps.push({ type: TYPES[draw(TYPES.length)] ?? 'remove', replica: 1 + draw(count) });
  }
  return confChange(steps, transition);
}

/** The membership behind a `conf` entry, as a host computes it; the state machine does not admit some of them. */
export function confBehind(conf: ConfState, entry: Entry): ConfState {
  const change = decodeConfChange(entry.data);
  const next = changeConf(conf, change);
  return 'invalid' in next || (entry.index % 8 === 0 && change.steps.length > 0) ? conf : next;
}

export type ChangeKind =
  | 'simple'
  | 'joint'
  | 'jointAuto'
  | 'leave'
  | 'learner'
  | 'promotion'
  | 'demotion'
  | 'removal'
  | 'none';

/** What happened between two configurations, and to whom. */
export function kindsOf(before: ConfState, after: ConfState): ReadonlySet<ChangeKind> {
  if (before === after) return new Set(['none']);
  const kinds = new Set<ChangeKind>();
  if (isJoint(before)) kinds.add('leave');
  else if (isJoint(after)) kinds.add(after.autoLeave ? 'jointAuto' : 'joint');
  else kinds.add('simple');
  const learnersAfter = [...after.learners, ...after.learnersNext];
  for (const id of [...before.voters, ...before.learners]) {
    if (!after.voters.includes(id) && !learnersAfter.includes(id)) kinds.add('removal');
  }
  if (before.learners.some((id) => after.voters.includes(id))) kinds.add('promotion');
  if (before.voters.some((id) => learnersAfter.includes(id))) kinds.add('demotion');
  if (learnersAfter.some((id) => ![...before.voters, ...before.learners].includes(id))) kinds.add('learner');
  return kinds;
}

/** Whether every quorum of the one shares a voter with every quorum of the other, tried out over all sets. */
export function quorumsOverlap(before: ConfState, after: ConfState, count: number): boolean {
  for (let set = 0; set < 1 << count; set++) {
    const inSet = (id: ReplicaId) => (set & (1 << (id - 1))) !== 0;
    if (decides(before, inSet) && decides(after, (id) => !inSet(id))) return false;
  }
  return true;
}

/** Counted independently of `quorum.ts`. */
function decides(conf: ConfState, inSet: (id: ReplicaId) => boolean): boolean {
  const sides = isJoint(conf) ? [conf.voters, conf.votersOutgoing] : [conf.voters];
  return sides.every((side) => 2 * side.filter(inSet).length > side.length);
}
