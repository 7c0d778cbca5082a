/**
 * Carries out the master's orders about a range's membership and leadership.
 *
 * O1. An order changes only the membership that it is meant for: with another `confVersion` it changes nothing. If the
 *     outcome already exists, the order is done, whatever the version: it may be a repetition.
 * O2. A replica becomes a voter only if it is known to follow closely (traps 3): a voter that was never created, or
 *     lost its data, would count in every majority.
 * O3. After the change more than half of the voters follow: no order makes a range lose its quorum.
 * O4. Voters are demoted before they are removed (membership.ts M3), and a leader hands over before it is demoted.
 * O5. A change is proposed only while it is possible now. What may pass by itself (another leader, a change in
 *     progress, a replica that lags or is silent) is reported as in progress, with the reason; the master repeats the
 *     order until its time limit. A refusal means that the order cannot succeed as it is, and the master gives up after
 *     a few.
 */
import { unreachable } from '@remora/base';
import type { OrderResult, RangeDescriptor, RangeInstruction, ReplicaDescriptor } from '@remora/protocol';
import {
  type ConfChange,
  type ConfStep,
  changeConf,
  confChange,
  type Group,
  type GroupStatus,
  isJoint,
  LEAVE_JOINT,
  type LogPosition,
  type Refused,
} from '@remora/raft';
import type { ReplicaPlace } from '../../state/reshape/membership.ts';

/** The leader, as orders use it. */
export interface OrderedReplica {
  readonly group: Group;
  readonly descriptor: RangeDescriptor;
  /** Whether another replica is known to follow now. */
  follows(replicaId: number): boolean;
  propose(change: ConfChange, places: readonly ReplicaPlace[]): LogPosition | Refused;
}

export type Carried = Omit<OrderResult, 'orderId'>;

/** Instructions that change a range's members, or its leader. */
export type MemberInstruction = Exclude<RangeInstruction, { type: 'split' | 'merge' }>;

export interface MemberOrder {
  /** The version of the membership that the order is meant for. */
  readonly confVersion: number;
  readonly instruction: MemberInstruction;
}

/** The change to propose, or why there is none. */
type Plan =
  | Carried
  | { readonly steps: readonly ConfStep[]; readonly places: readonly ReplicaPlace[] }
  | { readonly leaveJoint: true }
  | { readonly transferTo: number };

const DONE: Carried = { outcome: 'done', reason: '' };
/** The range has another leader by now, which gets the next order. */
export const NOT_LEADING: Carried = { outcome: 'underWay', reason: 'this replica does not lead the range' };

export function carryOut(replica: OrderedReplica, { confVersion, instruction }: MemberOrder): Carried {
  const { group, descriptor } = replica;
  if (!group.ready) return NOT_LEADING;
  const status = group.status();
  const plan = planOf(instruction, { descriptor, status });
  if ('outcome' in plan) return plan;
  const known = descriptor.epoch.confVersion;
  if (known !== confVersion)
    return inFlight(`it is meant for version ${confVersion} of the membership, which has ${known}`); // O1
  if ('transferTo' in plan) return transfer(replica, plan.transferTo);
  if (status.changePending) return inFlight('another change of the membership is in progress'); // O5
  if ('leaveJoint' in plan) return proposed(group.proposeConf(LEAVE_JOINT));
  const change = confChange(plan.steps);
  const problem = quorumProblem(replica, status, change);
  if (problem !== undefined) return problem;
  return proposed(replica.propose(change, plan.places));
}

interface Range {
  readonly descriptor: RangeDescriptor;
  readonly status: GroupStatus;
}

function planOf(instruction: MemberInstruction, range: Range): Plan {
  if (instruction.type === 'transferLeader') return transferPlan(instruction.replicaId, range);
  if (isJoint(range.status.conf)) return jointPlan(instruction, range);
  switch (instruction.type) {
    case 'addLearner':
      return addPlan(instruction, range);
    case 'changeVoters':
      return votersPlan(instruction, range);
    case 'demote':
      return demotePlan([instruction.replicaId], range, []);
    case 'leaveJoint':
      return DONE;
    default:
      return unreachable(instruction);
  }
}

/** A leader leaves a joint configuration automatically, unless the change that entered it said that it shall wait. */
function jointPlan({ type }: MemberInstruction, { status }: Range): Plan {
  if (type === 'leaveJoint' && !status.conf.autoLeave) return { leaveJoint: true };
  return inFlight('a joint configuration is being left');
}

function addPlan({ nodeId, replicaId }: ReplicaPlace, { descriptor }: Range): Plan {
  const known = memberOf(descriptor, replicaId);
  if (known !== undefined) {
    return known.nodeId === nodeId ? DONE : refused(`replica ${replicaId} lives on node ${known.nodeId}`);
  }
  const there = descriptor.replicas.find((replica) => replica.nodeId === nodeId);
  if (there !== undefined) return refused(`node ${nodeId} has replica ${there.replicaId} of the range`);
  return { steps: [{ type: 'addLearner', replica: replicaId }], places: [{ replicaId, nodeId }] };
}

function votersPlan({ promote, remove }: Extract<MemberInstruction, { type: 'changeVoters' }>, range: Range): Plan {
  const { descriptor, status } = range;
  const unknown = promote.find((id) => memberOf(descriptor, id) === undefined);
  if (unknown !== undefined) return refused(`replica ${unknown} is no member of the range`);
  const joining = promote.filter((id) => memberOf(descriptor, id)?.type === 'learner');
  const behind = joining.find((id) => !isCaughtUp(status, id));
  if (behind !== undefined) return inFlight(`replica ${behind} has not caught up`); // O2
  const leaving = remove.filter((id) => memberOf(descriptor, id)?.type === 'voter');
  if (joining.length > 0 || leaving.length > 0) return demotePlan(leaving, range, joining); // O4
  const left = remove.filter((id) => memberOf(descriptor, id) !== undefined);
  if (left.length === 0) return DONE;
  return { steps: left.map((replica) => ({ type: 'remove', replica })), places: [] };
}

function demotePlan(leaving: readonly number[], { descriptor, status }: Range, joining: readonly number[]): Plan {
  const unknown = leaving.find((id) => memberOf(descriptor, id) === undefined);
  if (unknown !== undefined) return refused(`replica ${unknown} is no member of the range`);
  if (leaving.includes(status.replicaId))
    return refused(`replica ${status.replicaId} leads the range: transfer that first`);
  const voters = leaving.filter((id) => memberOf(descriptor, id)?.type === 'voter');
  if (voters.length === 0 && joining.length === 0) return DONE;
  const steps: ConfStep[] = joining.map((replica) => ({ type: 'addVoter', replica }));
  for (const replica of voters) steps.push({ type: 'addLearner', replica });
  return { steps, places: [] };
}

function transferPlan(replicaId: number, { descriptor, status }: Range): Plan {
  if (replicaId === status.replicaId) return DONE;
  if (memberOf(descriptor, replicaId)?.type !== 'voter')
    return refused(`replica ${replicaId} is no voter of the range`);
  if (!isCaughtUp(status, replicaId)) return inFlight(`replica ${replicaId} lags behind, or does not answer`);
  return { transferTo: replicaId };
}

/** A repeated order waits: the target leads soon, and its node answers then. */
function transfer({ group }: OrderedReplica, to: number): Carried {
  const refusal = group.transferLeader(to);
  return refusal === undefined ? inFlight('the leadership is being handed over') : notNow(refusal);
}

/** O3. */
function quorumProblem({ follows }: OrderedReplica, status: GroupStatus, change: ConfChange): Carried | undefined {
  const next = changeConf(status.conf, change);
  if ('invalid' in next) {
    return refused(next.invalid === 'noVoters' ? 'no voter would be left' : `it is not possible: ${next.invalid}`);
  }
  if (sameMembers(next.voters, status.conf.voters)) return undefined;
  const following = next.voters.filter((id) => id === status.replicaId || follows(id));
  if (2 * following.length > next.voters.length) return undefined;
  return inFlight(`only ${following.length} of the voters ${next.voters.join(', ')} would follow`);
}

function sameMembers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}

function proposed(result: LogPosition | Refused): Carried {
  return 'refused' in result ? notNow(result) : inFlight('the change is in the log');
}

/** O5. */
function notNow({ refused: why }: Refused): Carried {
  switch (why) {
    case 'confPending':
    case 'noOwnTermCommit':
      return inFlight('another change of the membership is in progress');
    case 'queueFull':
      return inFlight('the range has too much to replicate');
    case 'transferring':
      return inFlight('the leadership is being handed over');
    case 'notLeader':
      return NOT_LEADING;
    case 'confInvalid':
    case 'notVoter':
      return refused('the membership does not allow it');
    default:
      return unreachable(why);
  }
}

function memberOf({ replicas }: RangeDescriptor, id: number): ReplicaDescriptor | undefined {
  return replicas.find(({ replicaId }) => replicaId === id);
}

function isCaughtUp({ progress }: GroupStatus, id: number): boolean {
  return progress.some(({ replica, caughtUp }) => replica === id && caughtUp);
}

function refused(reason: string): Carried {
  return { outcome: 'refused', reason };
}

function inFlight(reason: string): Carried {
  return { outcome: 'underWay', reason };
}
