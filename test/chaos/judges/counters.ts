/** Counters count each increment once (`CounterCheck`). The auditor reads them at the end, and the records of names. */
import { CounterCheck, type CounterEvent, type Finding, violation } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';
import { judgeTimed, operationsOf, type Timed } from './timed.ts';

interface Asked extends Operation {
  readonly q: {
    readonly op: 'add' | 'end';
    readonly c: string;
    readonly k: string;
    readonly by: number;
    readonly name?: string;
  };
  readonly a:
    | {
        readonly value: number;
        readonly revision: number;
        readonly repeated: boolean;
        /** At the end: the records of names, with the sums after them. */
        readonly records?: readonly (readonly [name: string, value: number])[];
      }
    | undefined;
}

export function judgeCounters(round: Round): readonly Finding[] {
  const asked = operationsOf<Asked>(round, 'counters');
  const odd = asked.filter(({ q: { by }, a }) => a !== undefined && !isSum(a.value, by));
  return [
    ...odd.map(({ q, a }) =>
      violation('counter: nothing is made up', `${q.k}, which is incremented by ${q.by}, is ${a?.value}`),
    ),
    ...judgeTimed(new CounterCheck(), odd.length > 0 ? [] : asked.flatMap(eventsOf)),
  ];
}

function eventsOf({ q, a, t0, t1, how }: Asked): readonly Timed<CounterEvent>[] {
  const { op, c: call, k: counter, by, name } = q;
  if (op === 'end') {
    if (a === undefined || t1 === null) return [];
    const counts = (a.records ?? []).map(([record, value]) => [record, value / by] as const);
    return [
      { t: t0, event: { type: 'reads', counter, call } },
      { t: t1, event: { type: 'read', call, count: a.value / by } },
      { t: t1, event: { type: 'records', counter, counts } },
    ];
  }
  const began: Timed<CounterEvent> = { t: t0, event: { type: 'adds', counter, call, name } };
  if (t1 === null) return [began];
  if (how === 'refused') return [began, { t: t1, event: { type: 'refused', call } }];
  if (a === undefined) return [began];
  const { value, revision, repeated } = a;
  return [began, { t: t1, event: { type: 'added', call, count: value / by, revision, repeated } }];
}

function isSum(value: number, by: number): boolean {
  return Number.isSafeInteger(value / by) && value / by >= 0;
}
