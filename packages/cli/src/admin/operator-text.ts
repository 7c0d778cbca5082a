/** Operators for people: their purpose, progress and result. */
import type { admin } from '@remora/protocol/remora';
import { agoText } from '../format/sizes.ts';
import { table } from '../format/table.ts';

/** Running operators, oldest first. */
export function activeTable(operators: readonly admin.Operator[]): string {
  if (operators.length === 0) return 'no operator is running';
  const rows = operators.map((operator) => [
    operator.id,
    operator.rangeId,
    operator.kind,
    agoText(operator.ageMs),
    `${Math.min(operator.step + 1, operator.steps.length)}/${operator.steps.length}`,
    presentStep(operator),
    operator.reason,
  ]);
  return table(['OPERATOR', 'RANGE', 'KIND', 'AGE', 'STEP', 'NOW', 'WHY'], rows);
}

/** Ended operators, newest first. */
export function historyTable(operators: readonly admin.Operator[]): string {
  if (operators.length === 0) return "no operator has ended since the masters' leader was elected";
  const rows = operators.map((operator) => [
    operator.id,
    operator.rangeId,
    operator.kind,
    agoText(operator.endedMs),
    agoText(operator.ageMs - operator.endedMs),
    operator.status,
    operator.outcome,
    operator.reason,
  ]);
  return table(['OPERATOR', 'RANGE', 'KIND', 'ENDED', 'TOOK', 'STATUS', 'OUTCOME', 'WHY'], rows);
}

/** The current step, and what it waits for. */
function presentStep({ steps, step, outcome }: admin.Operator): string {
  const now = steps[Math.min(step, steps.length - 1)] ?? '';
  return outcome === '' ? now : `${now} (${outcome})`;
}

/** One line while it is running. */
export function progressText(operator: admin.Operator): string {
  const { id, rangeId, step, steps, status } = operator;
  if (status === 'created') return `operator ${id}: waiting for the leader of range ${rangeId} to report`;
  return `operator ${id}: step ${Math.min(step + 1, steps.length)} of ${steps.length}: ${presentStep(operator)}`;
}
