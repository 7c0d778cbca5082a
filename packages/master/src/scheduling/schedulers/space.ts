/** Takes replicas off nodes whose disks are nearly full, the largest first, whatever the other balances say. */
import { type NodeView, type RangeInfo, voterNodes } from '../cluster-model.ts';
import { costOfJoining } from '../labels.ts';
import { place } from '../placement.ts';
import { moveSteps, planFor } from '../plans.ts';
import type { SchedulingView } from '../view.ts';
import { type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';

export const space: Scheduler = {
  name: 'space',
  desc: 'takes replicas off nodes that are nearly full',
  settings: ['lowSpacePercent', 'targetSpacePercent'],
  propose,
};

function* propose(view: SchedulingView): Proposals {
  const low = view.balancedNodes().filter((node) => isLow(view, node));
  if (low.length === 0) return `every node has ${view.settings.lowSpacePercent} % of its space free`;
  let [refusals, refused] = [0, ''];
  for (const node of low) {
    for (const range of largestFirst(view, node)) {
      if (!isLow(view, node)) break;
      const plan = relieve(view, range, node.info.nodeId);
      if (typeof plan === 'string') refused ||= plan;
      else if (!(yield [plan]) && ++refusals === REFUSALS_MAX) return 'more moves are to come: limits are reached';
    }
  }
  const names = low.map(({ info }) => info.nodeId).join(', ');
  return `free space is low on ${names}${refused === '' ? '' : `, and ${refused}`}`;
}

/** Whether a node has too little space, and will have when all that is under way is done. */
function isLow(view: SchedulingView, { info, totals }: NodeView): boolean {
  const leaving = totals.bytes - view.expected(info.nodeId).bytes;
  return info.availableBytes + leaving < (info.capacityBytes * view.settings.lowSpacePercent) / 100;
}

function largestFirst(view: SchedulingView, node: NodeView): readonly RangeInfo[] {
  const ranges = [...node.ranges].flatMap((rangeId) => view.model.range(rangeId) ?? []);
  return ranges.filter((range) => view.notMovable(range) === undefined).sort((a, b) => b.bytes - a.bytes);
}

function relieve(view: SchedulingView, range: RangeInfo, from: number) {
  const beside = voterNodes(range).filter((nodeId) => nodeId !== from);
  const cost = costOfJoining(view.model, from, beside, view.settings.isolationLevels);
  const placement = place(view, range, { kind: 'balanceReplicas', beside, costBelow: cost + 1 });
  if ('refused' in placement) return placement.refused;
  const steps = moveSteps(view, range, { from, to: placement.nodeId });
  return planFor(range, { kind: 'balanceReplicas', steps, reason: `free space is low on node ${from}` });
}
