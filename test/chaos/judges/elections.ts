/**
 * Elections: there is one leader at a time, judged by what leaders are certain of when they check (`LockCheck`).
 * Observers and queries get the truth (`ElectionCheck`).
 */
import { ElectionCheck, type ElectionEvent, type Finding, type Told } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';
import { judgeLockEvents, type TimedEvent } from './lock-events.ts';
import { byOwner, judgeTimed, notesOf, operationsOf, type Timed } from './timed.ts';

interface Asked extends Operation {
  readonly q: {
    readonly c: string;
    readonly k: string;
    readonly op: 'campaign' | 'proclaim' | 'resign' | 'who';
    readonly count?: number;
    readonly leads?: boolean;
  };
  readonly a: { readonly version?: number; readonly leads?: boolean; readonly told?: Told | null } | undefined;
}

interface Noted {
  readonly c: string;
  readonly k: string;
  readonly told: Told | null;
}

export function judgeElections(round: Round): readonly Finding[] {
  const asked = operationsOf<Asked>(round, 'elections');
  const observed = notesOf<Noted>(round, 'elections').map(({ t, n: { c, k, told } }): Timed<ElectionEvent> => {
    return { t, event: { type: 'observed', election: k, observer: c, told: told ?? undefined } };
  });
  return [
    ...judgeLockEvents(byOwner(asked).flatMap(leadershipOf)),
    ...judgeTimed(new ElectionCheck(), [...asked.flatMap(eventsOf), ...observed]),
  ];
}

function eventsOf({ q: { c, k: election, op, count = 0 }, a, t0, t1, how }: Asked): readonly Timed<ElectionEvent>[] {
  const answered = how === 'done' && t1 !== null;
  switch (op) {
    case 'campaign':
    case 'proclaim': {
      const says: Timed<ElectionEvent> = { t: t0, event: { type: 'says', election, leader: c, count } };
      if (!answered || a?.version === undefined) return [says];
      const { version } = a;
      return [says, { t: t1, event: { type: 'acknowledged', election, leader: c, count, version } }];
    }
    case 'who':
      if (!answered) return [];
      return [
        { t: t0, event: { type: 'asks', election, asker: c } },
        { t: t1, event: { type: 'answered', election, asker: c, told: a?.told ?? undefined } },
      ];
    case 'resign':
      return [];
  }
}

/** Until the last moment at which it was certain that it led. */
function leadershipOf([campaign, ...more]: readonly Asked[]): readonly TimedEvent[] {
  if (campaign?.q.op !== 'campaign') return [];
  const { k: lock, c: owner } = campaign.q;
  const asked: TimedEvent = { t: campaign.t0, event: { type: 'asked', lock, owner, mode: 'exclusive' } };
  const { a, t1 } = campaign;
  if (campaign.how !== 'done' || a?.version === undefined || t1 === null) {
    return [asked, { t: t1 ?? campaign.t0 + 1, event: { type: 'gone', lock, owner } }];
  }
  const looks = more.flatMap(({ q, a, t0, t1 }) => {
    if (q.op === 'resign') return q.leads === true ? [t0] : [];
    return a?.leads === true && t1 !== null ? [t1] : [];
  });
  return [
    asked,
    { t: t1, event: { type: 'granted', lock, owner, mode: 'exclusive', version: a.version } },
    { t: Math.max(t1 + 1, ...looks), event: { type: 'left', lock, owner } },
  ];
}
