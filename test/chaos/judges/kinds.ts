/**
 * Judges that locks of all kinds exclude, by what holders rely on (`LockCheck`). A holder relies on a lock from the
 * answer that granted it until it begins to release it, or until the last moment for which the SDK guaranteed it.
 *
 * While a holder asks for another kind of hold, it relies on a share of the lock. If there was no answer, or the answer
 * was lost, it relies on nothing from the request on, because the SDK releases a hold of unknown state.
 */
import type { Finding, LockMode } from '../../checkers/index.ts';
import { CAPACITY } from '../workloads/kinds.ts';
import type { Operation, Round } from './evidence.ts';
import { judgeLockEvents, type TimedEvent } from './lock-events.ts';

interface Asked extends Operation {
  readonly q: {
    readonly c: string;
    readonly k: string;
    readonly op: 'acquire' | 'convert' | 'release';
    readonly mode: LockMode;
    readonly permits: number;
    readonly until?: number;
  };
  readonly a: { readonly mode: LockMode; readonly version: number; readonly until: number } | undefined;
}

export function judgeKinds(round: Round): readonly Finding[] {
  const uses = new Map<string, Asked[]>();
  for (const each of round.operations.filter(({ w }) => w === 'kinds') as unknown as readonly Asked[]) {
    uses.set(each.q.c, [...(uses.get(each.q.c) ?? []), each]);
  }
  const all = [...uses.values()].map((use) => use.toSorted((a, b) => a.t0 - b.t0));
  return judgeLockEvents([...capacities(all), ...all.flatMap(eventsOf)]);
}

function capacities(uses: readonly (readonly Asked[])[]): readonly TimedEvent[] {
  const locks = new Set(uses.flatMap((use) => use.flatMap(({ q }) => (q.mode === 'permits' ? [q.k] : []))));
  return [...locks].map((lock) => ({ t: 0, event: { type: 'capacity', lock, capacity: CAPACITY, settled: false } }));
}

function eventsOf([acquire, ...more]: readonly Asked[]): readonly TimedEvent[] {
  if (acquire === undefined) return [];
  const { k: lock, c: owner, mode, permits } = acquire.q;
  const asked: TimedEvent = { t: acquire.t0, event: { type: 'asked', lock, owner, mode } };
  if (acquire.how !== 'done' || acquire.a === undefined || acquire.t1 === null) {
    return [asked, { t: acquire.t1 ?? acquire.t0 + 1, event: { type: 'gone', lock, owner } }];
  }
  const leftNs = Math.max(leftAt(acquire, more), acquire.t1 + 1);
  const granted = ({ t1, a }: Asked): readonly TimedEvent[] =>
    t1 === null || a === undefined || a.until === 0
      ? []
      : [
          {
            t: t1,
            event: { type: 'granted', lock, owner, mode: a.mode, version: a.version, ...(permits > 0 && { permits }) },
          },
        ];
  const conversions = more.filter(({ q, t1 }) => q.op === 'convert' && (t1 ?? leftNs) < leftNs);
  return [
    asked,
    ...granted(acquire),
    ...conversions.flatMap((each): readonly TimedEvent[] => [
      { t: each.t0, event: { type: 'converting', lock, owner } },
      ...granted(each),
    ]),
    { t: leftNs, event: { type: 'left', lock, owner } },
  ];
}

/** When the holder stopped relying on the lock. */
function leftAt(acquire: Asked, more: readonly Asked[]): number {
  const vouched = [acquire, ...more].map(({ a, q }) => Math.max(a?.until ?? 0, q.until ?? 0));
  const ends = more.flatMap(({ q, a, t0 }) => (q.op === 'release' || (a?.until ?? 0) === 0 ? [t0] : []));
  return Math.min(Math.max(...vouched), ...ends);
}
