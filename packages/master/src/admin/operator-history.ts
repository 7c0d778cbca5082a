/**
 * The operators of earlier leaders. Each leader replicates the operators that it ends, so that people see afterwards
 * what was changed before the masters' leader changed.
 *
 * OH1. History is for people only: no decision depends on it, so an operator whose record is lost with its leader is
 *      merely not shown.
 */
import type { Clock } from '@remora/base';
import type { OperatorInfo } from '@remora/protocol';
import { type EndedOperator, OPERATOR_TEXT_MAX } from '../metadata/ended-operator.ts';
import type { OperatorRecord } from '../scheduling/operator.ts';
import { describeStep } from '../scheduling/step.ts';

type Clocks = Pick<Clock, 'monotonicMs' | 'wallMs'>;

/** What is replicated of an operator that has just ended. */
export function endedOperator(record: OperatorRecord, clock: Clocks): EndedOperator {
  const { operatorId, rangeId, partner = 0, kind, status, step, createdAtMs } = record;
  const endedMs = Math.round(clock.wallMs());
  return {
    ...{ operatorId, rangeId, partner, kind, status, step, endedMs },
    reason: short(record.reason),
    outcome: short(record.outcome),
    steps: record.steps.map((each) => short(describeStep(each))),
    createdMs: Math.max(0, endedMs - Math.round(clock.monotonicMs() - createdAtMs)),
  };
}

/** How it is shown. */
export function endedOperatorInfo(ended: EndedOperator, wallMs: number): OperatorInfo {
  const { partner: _, createdMs, endedMs, ...shown } = ended;
  return { ...shown, ageMs: Math.max(0, wallMs - createdMs), endedMs: Math.max(0, wallMs - endedMs) };
}

function short(text: string): string {
  return text.length <= OPERATOR_TEXT_MAX ? text : `${text.slice(0, OPERATOR_TEXT_MAX)}…`;
}
