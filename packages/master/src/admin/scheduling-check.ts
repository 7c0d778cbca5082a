/** The problems that the scheduling reports: problems that it cannot repair, and operators without progress. */
import { formatDurationMs } from '@remora/base';
import { type HealthCondition, healthCondition } from '@remora/protocol';
import { hasLiveQuorum, type RangeInfo, voterNodes } from '../scheduling/cluster-model.ts';
import { isolationCost } from '../scheduling/labels.ts';
import type { OperatorRecord } from '../scheduling/operator.ts';
import { checkRange } from '../scheduling/range-check.ts';
import type { Scheduling } from '../scheduling/scheduling.ts';
import { describeStep, stepTimeoutMs } from '../scheduling/step.ts';
import type { SchedulingView } from '../scheduling/view.ts';

export function schedulingConditions(scheduling: Scheduling, nowMs: number): readonly HealthCondition[] {
  const view = scheduling.view(nowMs);
  return [
    ...[...view.model.ranges()].flatMap((range) => [...rangeConditions(range, view)]),
    ...scheduling.controller.active().flatMap((operator) => [...operatorConditions(operator, view)]),
  ];
}

function* rangeConditions(range: RangeInfo, view: SchedulingView): Generator<HealthCondition> {
  const { rangeId } = range.descriptor;
  const voters = voterNodes(range);
  // Without a leader or a quorum, the range has a worse problem than any reported here.
  if (range.leader === undefined || !hasLiveQuorum(view.model, range, voters)) return;
  const verdict = checkRange(range, view);
  if (verdict.type === 'stuck' && !range.changePending) {
    yield healthCondition('stuck', { rangeId }, `range ${rangeId} cannot be repaired now: ${verdict.reason}`);
  }
  if (isolationCost(view.model, voters, view.settings.isolationLevels) > view.bestIsolation(voters.length)) {
    const text = `range ${rangeId}: its replicas on nodes ${voters.join(', ')} could be placed further apart, according to the node labels`;
    yield healthCondition('misplaced', { rangeId }, text);
  }
}

/** An operator that has used half of the time limit of its step. */
function* operatorConditions(operator: OperatorRecord, view: SchedulingView): Generator<HealthCondition> {
  const { operatorId, rangeId, status, stepSinceMs, outcome, reason } = operator;
  const step = operator.steps[operator.step];
  const atMs = view.nowMs - stepSinceMs;
  if (status !== 'started' || step === undefined) return;
  if (2 * atMs < stepTimeoutMs(step, view.model.range(rangeId), view.settings)) return;
  const waits = outcome === '' ? '' : `: ${outcome}`;
  const since = formatDurationMs(Math.round(atMs / 1_000) * 1_000);
  const text = `operator ${operatorId} of range ${rangeId} (${reason}) has been at step "${describeStep(step)}" for ${since}${waits}`;
  yield healthCondition('stuckOperator', { rangeId }, text);
}
