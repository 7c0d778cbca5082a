/**
 * Requests by administrators: plans for single changes, and checks whether a node may be removed. An impossible request
 * throws `INVALID_ARGUMENT` with a message that says what would be possible.
 */
import { type Bytes, ServiceError } from '@remora/base';
import { isLive, type NodeView, type RangeInfo, replicaOn, voterNodes } from './cluster-model.ts';
import type { Plan } from './operator.ts';
import { unfitFor } from './placement.ts';
import { addSteps, moveSteps, planFor, removeSteps } from './plans.ts';
import { notServing, quorumProblem, refusesLeader, type Step, stepStatus } from './step.ts';
import type { SchedulingView } from './view.ts';

const ELSEWHERE_FIRST = 'add a replica elsewhere first';

export function requestMove(view: SchedulingView, rangeId: number, move: { from: number; to: number }): Plan {
  const range = steadyRange(view, rangeId);
  requireVoter(range, move.from);
  requireFit(view, range, move.to);
  requireQuorum(view, range, { promote: [move.to], remove: [move.from] }, 'bring other nodes back first');
  return admin(range, moveSteps(view, range, move), `move from node ${move.from} to node ${move.to}`);
}

export function requestAdd(view: SchedulingView, rangeId: number, nodeId: number): Plan {
  const range = steadyRange(view, rangeId);
  const { replicas } = view.settings;
  const has = voterNodes(range).length;
  if (has >= replicas) {
    throw wrong(`range ${rangeId} has ${has} of ${replicas} replicas; move one, or raise the setting "replicas"`);
  }
  requireFit(view, range, nodeId);
  return admin(range, addSteps(nodeId), `add a replica on node ${nodeId}`);
}

export function requestRemove(view: SchedulingView, rangeId: number, nodeId: number): Plan {
  const range = steadyRange(view, rangeId);
  if (replicaOn(range, nodeId) === undefined) throw wrong(`range ${rangeId} has no replica on node ${nodeId}`);
  requireQuorum(view, range, { promote: [], remove: [nodeId] }, ELSEWHERE_FIRST);
  requireOthersThere(view, range, nodeId);
  const steps = removeSteps(view, range, nodeId);
  if (steps === undefined)
    throw wrong(`node ${nodeId} leads range ${rangeId}, and no other voter can lead it; try again later`);
  return admin(range, steps, `remove the replica on node ${nodeId}`);
}

export function requestTransfer(view: SchedulingView, rangeId: number, nodeId: number): Plan {
  const range = steadyRange(view, rangeId);
  if (range.leader === nodeId) throw wrong(`node ${nodeId} already leads range ${rangeId}`);
  const refused = refusesLeader(range, nodeId, view);
  if (refused !== undefined) throw wrong(`${refused}; voters are on ${nodesText(voterNodes(range))}`);
  return admin(range, [{ type: 'transferLeader', nodeId }], `transfer the leader to node ${nodeId}`);
}

/** `at` undefined: split in the middle. */
export function requestSplit(view: SchedulingView, rangeId: number, at: Bytes | undefined): Plan {
  const range = steadyRange(view, rangeId);
  const step: Step = { type: 'split', at, version: range.descriptor.epoch.version };
  requirePossible(view, range, step);
  return admin(range, [step], at === undefined ? 'split in the middle' : 'split at a key');
}

/** The merged range ends; the range before it takes its keys. Both must be on the same nodes. */
export function requestMerge(view: SchedulingView, rangeId: number, into: number): Plan {
  const source = steadyRange(view, rangeId);
  const target = steadyRange(view, into);
  if (view.model.neighbour(rangeId) === target) {
    throw wrong(
      `of two adjacent ranges, the one with the smaller keys remains: merge range ${into} into range ${rangeId} instead`,
    );
  }
  const step: Step = { type: 'merge', source: rangeId, version: target.descriptor.epoch.version, bytesMax: 0 };
  requirePossible(view, target, step);
  return { ...admin(target, [step], `merge range ${source.descriptor.rangeId} into it`), partner: rangeId };
}

/** Throws if too few nodes would be left for the replicas of each range. */
export function requireDecommissionable(view: SchedulingView, nodeId: number): void {
  const node = requireNode(view, nodeId);
  if (node.info.duty === 'removed') throw wrong(`node ${nodeId} was already removed`);
  const { model, settings } = view;
  const left = [...model.nodes()].filter(
    ({ info }) => info.nodeId !== nodeId && notServing(model, info.nodeId) === undefined,
  );
  if (left.length < settings.replicas) {
    throw wrong(
      `without node ${nodeId} only ${left.length} ${left.length === 1 ? 'node is' : 'nodes are'} up and serving, and ` +
        `ranges have ${settings.replicas} replicas; ` +
        'add a node first, or lower the setting "replicas"',
    );
  }
}

/**
 * Throws if ranges would lose their quorum, or while a node that is heard still has replicas. A node that is not heard
 * may be removed before it counts as down: the operator confirms that it will not come back, and it would be refused.
 * But the removal is refused while too many of the other replicas may be away, which the last reports need not show
 * yet: the node could not come back to help.
 */
export function requireRemovable(view: SchedulingView, nodeId: number): void {
  const { info, ranges } = requireNode(view, nodeId);
  if (ranges.size === 0) return;
  if (info.liveness === 'up') {
    throw wrong(
      `node ${nodeId} is up and holds ${ranges.size} replicas; decommission it, and remove it when it is empty; or stop it, ` +
        'if its data may be lost',
    );
  }
  for (const rangeId of ranges) {
    const range = view.model.range(rangeId);
    if (range === undefined || replicaOn(range, nodeId)?.type !== 'voter') continue;
    const change = { promote: [], remove: [nodeId] };
    const problem = quorumProblem(range, view.model, change) ?? othersAway(view, range, nodeId);
    if (problem === undefined) continue;
    throw wrong(
      `range ${rangeId} could not replace its replica on node ${nodeId}: ${problem}; bring other nodes back first`,
    );
  }
}

/** Throws if no other node could take over a node's leaders. */
export function requireOthersServing(view: SchedulingView, nodeId: number): void {
  requireNode(view, nodeId);
  const { model } = view;
  const others = [...model.nodes()].filter(({ info }) => info.nodeId !== nodeId);
  if (others.some(({ info }) => notServing(model, info.nodeId) === undefined)) return;
  throw wrong(`no other node is up and serving, so the leaders of node ${nodeId} cannot be transferred`);
}

/**
 * Throws if ranges would lose their quorum by the stop of a node, together with the replicas that are away or may be. A
 * learner counts like a voter, because it may be about to replace one.
 */
export function requireMaintainable(view: SchedulingView, nodeId: number): void {
  const { model } = view;
  for (const rangeId of requireNode(view, nodeId).ranges) {
    const range = model.range(rangeId);
    if (range === undefined) continue;
    const voters = voterNodes(range);
    const away = voters.filter((other) => other !== nodeId && mayBeAway(view, range, other));
    if (voters.length - 1 - away.length > voters.length / 2) continue;
    const because =
      away.length === 0
        ? `it has only ${voters.length} voters`
        : `${awayText(away)} down, silent or in maintenance as well`;
    throw wrong(
      `range ${rangeId} would lose its quorum while node ${nodeId} is down: ${because}; wait until all its replicas are up`,
    );
  }
}

/**
 * Also true for a replica that was missed for a moment, which its leader may not report yet: a manual request can wait.
 */
function mayBeAway(view: SchedulingView, range: RangeInfo, nodeId: number): boolean {
  const info = view.model.node(nodeId)?.info;
  return info?.duty === 'maintenance' || info?.liveness !== 'up' || !isLive(view.model, range, nodeId);
}

function requireOthersThere(view: SchedulingView, range: RangeInfo, nodeId: number): void {
  const problem = othersAway(view, range, nodeId);
  if (problem === undefined) return;
  throw wrong(`range ${range.descriptor.rangeId} would lose its quorum: ${problem}; ${ELSEWHERE_FIRST}`);
}

/** Whether a majority of the voters that would remain may be away. */
function othersAway(view: SchedulingView, range: RangeInfo, nodeId: number): string | undefined {
  if (replicaOn(range, nodeId)?.type !== 'voter') return undefined;
  const left = voterNodes(range).filter((other) => other !== nodeId);
  const away = left.filter((other) => mayBeAway(view, range, other));
  if (left.length - away.length > left.length / 2) return undefined;
  return `${awayText(away)} silent or in maintenance`;
}

function steadyRange(view: SchedulingView, rangeId: number): RangeInfo {
  const range = view.model.range(rangeId);
  if (range === undefined) throw wrong(`unknown range ${rangeId}`);
  if (range.leader === undefined) throw wrong(`range ${rangeId} has no leader; it cannot be changed until it has one`);
  if (range.joint || range.changePending)
    throw wrong(`the membership of range ${rangeId} is changing; try again later`);
  return range;
}

function requireNode(view: SchedulingView, nodeId: number): NodeView {
  const node = view.model.node(nodeId);
  if (node === undefined) throw wrong(`unknown node ${nodeId}, or it stores no data`);
  return node;
}

function requireVoter(range: RangeInfo, nodeId: number): void {
  if (replicaOn(range, nodeId)?.type === 'voter') return;
  const { rangeId } = range.descriptor;
  throw wrong(`range ${rangeId} has no voter on node ${nodeId}; its voters are on ${nodesText(voterNodes(range))}`);
}

function requireFit(view: SchedulingView, range: RangeInfo, nodeId: number): void {
  requireNode(view, nodeId);
  const unfit = unfitFor(view, range, nodeId, 'admin');
  if (unfit === undefined) return;
  const fit = [...view.model.nodes()]
    .map(({ info }) => info.nodeId)
    .filter((id) => unfitFor(view, range, id, 'admin') === undefined);
  const others = fit.length === 0 ? 'no other node can receive it now' : `${nodesText(fit)} can receive it`;
  throw wrong(`node ${nodeId} ${unfit}; ${others}`);
}

function requireQuorum(
  view: SchedulingView,
  range: RangeInfo,
  change: { readonly promote: readonly number[]; readonly remove: readonly number[] },
  instead: string,
): void {
  const problem = quorumProblem(range, view.model, change);
  if (problem !== undefined)
    throw wrong(`range ${range.descriptor.rangeId} would lose its quorum: ${problem}; ${instead}`);
}

function requirePossible(view: SchedulingView, range: RangeInfo, step: Step): void {
  const status = stepStatus(step, range, view, 0);
  if (status.type !== 'impossible') return;
  throw wrong(`range ${range.descriptor.rangeId} cannot be changed this way: ${status.reason}`);
}

function admin(range: RangeInfo, steps: readonly Step[], reason: string): Plan {
  return planFor(range, { kind: 'admin', steps, reason: `requested: ${reason}` });
}

function awayText(nodeIds: readonly number[]): string {
  const one = nodeIds.length === 1;
  return `its ${one ? 'replica' : 'replicas'} on ${nodesText(nodeIds)} ${one ? 'is' : 'are'}`;
}

function nodesText(nodeIds: readonly number[]): string {
  return `${nodeIds.length === 1 ? 'node' : 'nodes'} ${nodeIds.join(', ')}`;
}

function wrong(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
