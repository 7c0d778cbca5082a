/** Barriers hold up those who wait at them, judged by what their holders and parties rely on (`BarrierCheck`). */
import { BarrierCheck, type BarrierEvent, type Finding } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';
import { byOwner, judgeTimed, operationsOf, type Timed } from './timed.ts';

interface Asked extends Operation {
  readonly q: {
    readonly c: string;
    readonly k: string;
    readonly op: 'hold' | 'lift' | 'pass' | 'enter' | 'leave';
    readonly parties?: number;
    readonly until?: number;
    readonly inside?: boolean;
  };
  readonly a: { readonly until?: number } | undefined;
}

export function judgeBarriers(round: Round): readonly Finding[] {
  return judgeTimed(new BarrierCheck(), byOwner(operationsOf<Asked>(round, 'barriers')).flatMap(eventsOf));
}

function eventsOf([asked, end]: readonly Asked[]): readonly Timed<BarrierEvent>[] {
  if (asked === undefined) return [];
  const { c: owner, k: barrier, op, parties = 0 } = asked.q;
  const { t0, t1 } = asked;
  const answered = asked.how === 'done' && t1 !== null;
  switch (op) {
    case 'hold': {
      if (!answered) return [];
      const until = Math.min(Math.max(asked.a?.until ?? 0, end?.q.until ?? 0), end?.t0 ?? Number.POSITIVE_INFINITY);
      if (until <= t1) return [];
      return [
        { t: t1, event: { type: 'up', barrier, owner } },
        { t: until, event: { type: 'down', barrier, owner } },
      ];
    }
    case 'pass':
      if (!answered) return [];
      return [
        { t: t0, event: { type: 'waits', barrier, owner } },
        { t: t1, event: { type: 'passed', barrier, owner } },
      ];
    case 'enter': {
      const enters: Timed<BarrierEvent> = { t: t0, event: { type: 'enters', barrier, owner, parties } };
      if (!answered) return [enters];
      return [enters, { t: t1, event: { type: 'entered', barrier, owner } }, ...insideOf(asked, t1, end)];
    }
    default:
      return [];
  }
}

/** A party that is gone, or that lost its place at some time, relies on nothing from the first moment on. */
function insideOf({ q }: Asked, enteredNs: number, end: Asked | undefined): readonly Timed<BarrierEvent>[] {
  const { c: owner, k: barrier } = q;
  const leavesNs = end?.q.inside === true ? end.t0 : enteredNs;
  const leaves: Timed<BarrierEvent> = { t: leavesNs, event: { type: 'leaves', barrier, owner } };
  if (end?.how !== 'done' || end.t1 === null) return [leaves];
  return [
    leaves,
    { t: end.t1, event: { type: 'allLeft', barrier, owner } },
    { t: end.t1, event: { type: 'out', barrier, owner } },
  ];
}
