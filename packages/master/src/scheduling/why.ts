/** Explains the state of a range or a node for `remora admin why`, one statement per line. */
import type { NodeView, RangeInfo } from './cluster-model.ts';
import { hasSpace } from './placement.ts';
import { checkRange } from './range-check.ts';
import { mergeObstacle } from './schedulers/merge.ts';
import type { Scheduling } from './scheduling.ts';
import { notServing } from './step.ts';

const PAST_SHOWN = 3;

export function whyRange(scheduling: Scheduling, range: RangeInfo, nowMs: number): readonly string[] {
  const { controller } = scheduling;
  const { rangeId } = range.descriptor;
  const view = scheduling.view(nowMs);
  const lines: string[] = [];
  const operator = controller.operatorOf(rangeId);
  if (operator !== undefined) {
    const step = Math.min(operator.step + 1, operator.steps.length);
    lines.push(
      `operator ${operator.operatorId} (${operator.kind}) is running, step ${step} of ${operator.steps.length}: ${operator.reason}`,
    );
  }
  const verdict = checkRange(range, view);
  if (verdict.type === 'stuck') lines.push(`it cannot be repaired now: ${verdict.reason}`);
  if (verdict.type === 'plan' && operator === undefined) lines.push(`it needs a repair: ${verdict.plan.reason}`);
  if (verdict.type === 'fine') lines.push('it has no problems');
  if (range.sizeRemark) lines.push(`its leader reports: ${range.sizeRemark}`);
  const notMovable = view.notMovable(range);
  if (notMovable !== undefined) lines.push(`balancing leaves it alone: ${notMovable}`);
  lines.push(...whyApart(scheduling, range));
  const past = controller.history().filter((record) => record.rangeId === rangeId);
  for (const { operatorId, kind, reason, status, outcome } of past.slice(0, PAST_SHOWN)) {
    lines.push(`earlier: operator ${operatorId} (${kind}, ${reason}) ended as ${status}: ${outcome}`);
  }
  return [...lines, ...whySchedulers(scheduling, nowMs)];
}

/** Why a range is not merged with the one behind it. */
function whyApart({ model, settings }: Scheduling, target: RangeInfo): readonly string[] {
  const source = model.neighbour(target.descriptor.rangeId);
  if (source === undefined || !settings.merging.enabled) return [];
  const apart = mergeObstacle({ target, source }, settings.merging);
  const { rangeId } = source.descriptor;
  return [`merge with the next range, ${rangeId}: ${apart ?? 'will happen if both stay small and quiet'}`];
}

export function whyNode(scheduling: Scheduling, { info, totals }: NodeView, nowMs: number): readonly string[] {
  const { nodeId } = info;
  const view = scheduling.view(nowMs);
  const { settings } = view;
  const lines = [
    `it has ${totals.replicas} ${totals.replicas === 1 ? 'replica' : 'replicas'} and leads ${totals.leaders}`,
  ];
  const unfit = notServing(view.model, nodeId);
  if (unfit !== undefined) lines.push(`it receives nothing: it ${unfit}`);
  else if (nowMs - info.livenessSinceMs < settings.nodeSettleMs) {
    lines.push(`balancing moves nothing to it yet: it has been up for less than ${settings.nodeSettleMs / 1_000} s`);
  }
  if (!hasSpace(view, nodeId, 0, settings.targetSpacePercent)) {
    lines.push(`balancing moves no replicas to it: less than ${settings.targetSpacePercent} % of its space is free`);
  }
  if (!view.mayReceive(nodeId, 'balanceReplicas')) lines.push('it is receiving the maximum number of replicas');
  return [...lines, ...whySchedulers(scheduling, nowMs)];
}

function whySchedulers(scheduling: Scheduling, nowMs: number): readonly string[] {
  return scheduling.schedulers.list(nowMs).map(({ name, last }) => `${name}: ${last}`);
}
