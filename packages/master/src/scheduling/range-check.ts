/**
 * Finds the most urgent problem of one range, and the operator that repairs it.
 *
 * R1. A replica is added before another one is removed, unless there are too many.
 * R2. A replica is lost if its node was removed, or if its leader has not heard from it for `replicaDownAfterMs` and no
 *     maintenance window explains that. The leader decides this, not the master: only the leader knows who
 *     acknowledges.
 * R3. A move for isolation strictly reduces the isolation cost, so such moves terminate.
 */
import { hasLiveQuorum, isLive, learnerNodes, progressOn, type RangeInfo, voterNodes } from './cluster-model.ts';
import { costOfJoining, isolationCost } from './labels.ts';
import type { OperatorKind, Plan } from './operator.ts';
import { place } from './placement.ts';
import { addSteps, heirOf, moveSteps, planFor, removeSteps } from './plans.ts';
import { hasCaughtUp, notServing, quorumProblem, type Step } from './step.ts';
import type { SchedulingView } from './view.ts';

export type Verdict =
  | { readonly type: 'fine' }
  | { readonly type: 'plan'; readonly plan: Plan }
  /** There is a problem that cannot be repaired now. */
  | { readonly type: 'stuck'; readonly reason: string };

type Check = (range: RangeInfo, view: SchedulingView) => Verdict | undefined;

/** These checks may also end less urgent operators. */
const URGENT: readonly Check[] = [checkLeader, checkChangePending, checkLost];
const OTHERS: readonly Check[] = [
  checkJoint,
  checkLearners,
  checkTooFew,
  checkTooMany,
  checkLeaderPlace,
  checkEvacuation,
  checkIsolation,
];

const FINE: Verdict = { type: 'fine' };

export function checkRange(range: RangeInfo, view: SchedulingView): Verdict {
  const checks = view.isBusy(range.descriptor.rangeId) ? URGENT : [...URGENT, ...OTHERS];
  for (const check of checks) {
    const verdict = check(range, view);
    if (verdict !== undefined) return verdict;
  }
  return FINE;
}

function checkLeader(range: RangeInfo, { model }: SchedulingView): Verdict | undefined {
  const voters = voterNodes(range);
  if (!hasLiveQuorum(model, range, voters)) {
    const live = voters.filter((nodeId) => isLive(model, range, nodeId));
    return stuck(`only ${live.length} of its ${voters.length} voters (nodes ${voters.join(', ')}) are live: no quorum`);
  }
  return range.leader === undefined ? stuck('no leader is known') : undefined;
}

function checkChangePending(range: RangeInfo): Verdict | undefined {
  return range.changePending ? stuck('a membership change is in progress') : undefined;
}

function checkJoint(range: RangeInfo): Verdict | undefined {
  if (!range.joint) return undefined;
  return plan(range, 'repair', [{ type: 'leaveJoint' }], 'it was left in a joint configuration');
}

/** R2. */
function isLost(range: RangeInfo, nodeId: number, { model, settings, nowMs }: SchedulingView): boolean {
  const info = model.node(nodeId)?.info;
  if (info?.duty === 'removed') return true;
  const silentSinceMs = progressOn(range, nodeId)?.silentSinceMs;
  if (silentSinceMs === undefined || nowMs - silentSinceMs < settings.replicaDownAfterMs) return false;
  return info?.duty !== 'maintenance' || nowMs >= (info.maintenanceUntilMs ?? 0);
}

function checkLost(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  if (range.joint) return undefined; // the joint configuration has to be left first
  const lost = range.descriptor.replicas.find(({ nodeId }) => isLost(range, nodeId, view));
  if (lost === undefined) return undefined;
  const { nodeId } = lost;
  const reason = `the replica on node ${nodeId} is lost`;
  const voters = voterNodes(range);
  const remove: Step = { type: 'changeVoters', promote: [], remove: [nodeId] };
  if (lost.type === 'learner' || voters.length > view.settings.replicas) return plan(range, 'repair', [remove], reason);
  return replace(range, view, { nodeId, reason });
}

/** Adds a voter for a lost one; prefers an existing learner. */
function replace(range: RangeInfo, view: SchedulingView, lost: { nodeId: number; reason: string }): Verdict {
  const learner = learnerNodes(range).find((nodeId) => isUsable(range, nodeId, view));
  const beside = voterNodes(range).filter((nodeId) => nodeId !== lost.nodeId);
  const steps: Step[] = [];
  let replacement = learner;
  if (replacement === undefined) {
    const placement = place(view, range, { kind: 'repair', beside });
    if ('refused' in placement) return stuck(`${lost.reason}, and ${placement.refused}`);
    replacement = placement.nodeId;
    steps.push({ type: 'addLearner', nodeId: replacement });
  }
  steps.push({ type: 'changeVoters', promote: [replacement], remove: [lost.nodeId] });
  return plan(range, 'repair', steps, lost.reason);
}

/** Whether a learner without an operator should become a voter. */
function isUsable(range: RangeInfo, nodeId: number, view: SchedulingView): boolean {
  if (notServing(view.model, nodeId) !== undefined || !isLive(view.model, range, nodeId)) return false;
  return !view.isAvoided(range.descriptor.rangeId, nodeId);
}

/** Learners without an operator: left behind by an operator that ended, or by another master. */
function checkLearners(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  const [nodeId] = learnerNodes(range);
  if (nodeId === undefined) return undefined;
  const voters = voterNodes(range);
  if (voters.length < view.settings.replicas && isUsable(range, nodeId, view)) {
    const promote: Step = { type: 'changeVoters', promote: [nodeId], remove: [] };
    return plan(range, 'repair', [promote], `it has ${voters.length} voters and a learner on node ${nodeId}`);
  }
  const remove: Step = { type: 'changeVoters', promote: [], remove: [nodeId] };
  return plan(range, 'repair', [remove], `the learner on node ${nodeId} is not needed`);
}

function checkTooFew(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  const voters = voterNodes(range);
  if (voters.length >= view.settings.replicas) return undefined;
  const reason = `it has ${voters.length} of ${view.settings.replicas} replicas`;
  const placement = place(view, range, { kind: 'repair', beside: voters });
  if ('refused' in placement) return stuck(`${reason}, and ${placement.refused}`);
  return plan(range, 'repair', addSteps(placement.nodeId), reason);
}

function checkTooMany(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  const voters = voterNodes(range);
  if (voters.length <= view.settings.replicas) return undefined;
  const reason = `it has ${voters.length} replicas; ${view.settings.replicas} are wanted`;
  for (const nodeId of byExpendability(range, view)) {
    if (quorumProblem(range, view.model, { promote: [], remove: [nodeId] }) !== undefined) continue;
    const steps = removeSteps(view, range, nodeId);
    if (steps !== undefined) return plan(range, 'place', steps, reason);
  }
  return stuck(`${reason}, and removing any of them would cost the quorum or the only voter that can lead`);
}

/**
 * Voters by how easily they can be spared: silent, behind, not serving, badly isolated, on a node with many replicas,
 * not the leader. A silent or lagging replica adds no redundancy; a node that is being emptied, or pauses, still has a
 * good replica.
 */
function byExpendability(range: RangeInfo, view: SchedulingView): readonly number[] {
  const voters = voterNodes(range);
  const rows = voters.map((nodeId) => ({
    nodeId,
    live: isLive(view.model, range, nodeId) ? 1 : 0,
    whole: range.leader === nodeId || hasCaughtUp(range, nodeId) ? 1 : 0,
    serving: notServing(view.model, nodeId) === undefined ? 1 : 0,
    cost: costBeside(view, nodeId, voters),
    replicas: view.expected(nodeId).replicas,
    leads: range.leader === nodeId ? 1 : 0,
  }));
  rows.sort(
    (a, b) =>
      a.live - b.live ||
      a.whole - b.whole ||
      a.serving - b.serving ||
      b.cost - a.cost ||
      b.replicas - a.replicas ||
      a.leads - b.leads ||
      a.nodeId - b.nodeId,
  );
  return rows.map(({ nodeId }) => nodeId);
}

/** A node that drains, is in maintenance or is being decommissioned gives up its leaders. */
function checkLeaderPlace(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  const { leader } = range;
  const duty = leader === undefined ? undefined : view.model.node(leader)?.info.duty;
  if (duty === undefined || duty === 'serving') return undefined;
  const heir = heirOf(view, range, []);
  if (heir === undefined) {
    // The replica of a decommissioned node moves; then the new one leads.
    return duty === 'decommissioning'
      ? undefined
      : stuck(`its leader must leave node ${leader}, but no other voter can lead`);
  }
  return plan(
    range,
    'evacuate',
    [{ type: 'transferLeader', nodeId: heir }],
    `node ${leader} transfers its leaders away`,
  );
}

function checkEvacuation(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  const voters = voterNodes(range);
  const from = voters.find((nodeId) => view.model.node(nodeId)?.info.duty === 'decommissioning');
  if (from === undefined) return undefined;
  const reason = `node ${from} is decommissioned`;
  const placement = place(view, range, { kind: 'evacuate', beside: voters.filter((nodeId) => nodeId !== from) });
  if ('refused' in placement) return stuck(`${reason}, and ${placement.refused}`);
  return plan(range, 'evacuate', moveSteps(view, range, { from, to: placement.nodeId }), reason);
}

/** R3. */
function checkIsolation(range: RangeInfo, view: SchedulingView): Verdict | undefined {
  const voters = voterNodes(range);
  const cost = isolationCost(view.model, voters, view.settings.isolationLevels);
  if (cost <= view.bestIsolation(voters.length)) return undefined;
  const rows = voters.map((nodeId) => ({ nodeId, cost: costBeside(view, nodeId, voters) }));
  rows.sort((a, b) => b.cost - a.cost || a.nodeId - b.nodeId);
  let refused = '';
  for (const { nodeId: from, cost: costBelow } of rows) {
    if (notServing(view.model, from) !== undefined) continue; // the node may be back soon
    const beside = voters.filter((nodeId) => nodeId !== from);
    const placement = place(view, range, { kind: 'place', beside, costBelow });
    if ('refused' in placement) refused ||= placement.refused;
    else {
      const reason = `its replicas would be further apart on node ${placement.nodeId} than on node ${from}`;
      return plan(range, 'place', moveSteps(view, range, { from, to: placement.nodeId }), reason);
    }
  }
  return stuck(`its replicas are not as far apart as they could be, and ${refused || 'their nodes are not up'}`);
}

function costBeside(view: SchedulingView, nodeId: number, voters: readonly number[]): number {
  const others = voters.filter((other) => other !== nodeId);
  return costOfJoining(view.model, nodeId, others, view.settings.isolationLevels);
}

function plan(range: RangeInfo, kind: OperatorKind, steps: readonly Step[], reason: string): Verdict {
  return { type: 'plan', plan: planFor(range, { kind, steps, reason }) };
}

function stuck(reason: string): Verdict {
  return { type: 'stuck', reason };
}
