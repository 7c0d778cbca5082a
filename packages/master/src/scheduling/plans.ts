/** The steps of common changes of a range. A replica is removed only after its successor has joined. */
import { assert } from '@remora/base';
import { type RangeInfo, voterNodes } from './cluster-model.ts';
import type { OperatorKind, Plan } from './operator.ts';
import { refusesLeader, type Step } from './step.ts';
import type { SchedulingView } from './view.ts';

export function planFor(
  range: RangeInfo,
  what: { readonly kind: OperatorKind; readonly steps: readonly Step[]; readonly reason: string },
): Plan {
  return { rangeId: range.descriptor.rangeId, epoch: range.descriptor.epoch, ...what };
}

export function addSteps(nodeId: number): readonly Step[] {
  return [
    { type: 'addLearner', nodeId },
    { type: 'changeVoters', promote: [nodeId], remove: [] },
  ];
}

/** Moves a voter. A leader is transferred first; if no other voter can lead, to the new replica. */
export function moveSteps(view: SchedulingView, range: RangeInfo, move: { from: number; to: number }): readonly Step[] {
  const { from, to } = move;
  const add: Step = { type: 'addLearner', nodeId: to };
  const swap: Step = { type: 'changeVoters', promote: [to], remove: [from] };
  if (range.leader !== from) return [add, swap];
  const heir = heirOf(view, range, [from]);
  if (heir !== undefined) return [add, { type: 'transferLeader', nodeId: heir }, swap];
  return [
    ...addSteps(to),
    { type: 'transferLeader', nodeId: to },
    { type: 'changeVoters', promote: [], remove: [from] },
  ];
}

/** Undefined if the replica leads the range and no other can. */
export function removeSteps(view: SchedulingView, range: RangeInfo, nodeId: number): readonly Step[] | undefined {
  const remove: Step = { type: 'changeVoters', promote: [], remove: [nodeId] };
  if (range.leader !== nodeId) return [remove];
  const heir = heirOf(view, range, [nodeId]);
  return heir === undefined ? undefined : [{ type: 'transferLeader', nodeId: heir }, remove];
}

/** Moves all voters at once: learners first, then one joint change, so that the range moves as a whole. */
export function relocateSteps(
  view: SchedulingView,
  range: RangeInfo,
  target: { readonly voters: readonly number[]; readonly leader: number },
): readonly Step[] {
  assert(target.voters.includes(target.leader), 'a leader is a voter');
  const voters = voterNodes(range);
  const promote = target.voters.filter((nodeId) => !voters.includes(nodeId));
  const remove = voters.filter((nodeId) => !target.voters.includes(nodeId));
  const steps: Step[] = promote.map((nodeId) => ({ type: 'addLearner', nodeId }));
  if (range.leader !== undefined && remove.includes(range.leader)) {
    const heir = heirOf(view, range, remove);
    if (heir === undefined) return relocateAllSteps(steps, { promote, remove, leader: target.leader });
    steps.push({ type: 'transferLeader', nodeId: heir });
  }
  if (promote.length + remove.length > 0) steps.push({ type: 'changeVoters', promote, remove });
  if (range.leader !== target.leader) steps.push({ type: 'transferLeader', nodeId: target.leader });
  return steps;
}

/** If no remaining voter can lead: the new ones join first, one of them leads, then the old ones leave. */
function relocateAllSteps(
  adds: readonly Step[],
  { promote, remove, leader }: { promote: readonly number[]; remove: readonly number[]; leader: number },
): readonly Step[] {
  return [
    ...adds,
    { type: 'changeVoters', promote, remove: [] },
    { type: 'transferLeader', nodeId: leader },
    { type: 'changeVoters', promote: [], remove },
  ];
}

/** The voter that can replace the present leader and will have the fewest leaders. */
export function heirOf(view: SchedulingView, range: RangeInfo, except: readonly number[]): number | undefined {
  let [best, fewest] = [undefined as number | undefined, Number.POSITIVE_INFINITY];
  for (const nodeId of voterNodes(range)) {
    if (nodeId === range.leader || except.includes(nodeId)) continue;
    if (refusesLeader(range, nodeId, view) !== undefined) continue;
    const { leaders } = view.expected(nodeId);
    if (leaders < fewest) [best, fewest] = [nodeId, leaders];
  }
  return best;
}
