/**
 * Judges locks with terms: by what their holders rely on (`LockCheck`), and by when those end that are not released
 * (`LapseCheck`).
 *
 * A holder relies on a lock from its grant until it begins to release it, or until the last moment for which the SDK
 * guaranteed it. After it requests other terms, nothing is certain until it checks again.
 */
import { type Finding, LapseCheck, type LapseEvent } from '../../checkers/index.ts';
import { NS_PER_MS } from '../journal/lines.ts';
import type { Operation, Round } from './evidence.ts';
import { judgeLockEvents, type TimedEvent } from './lock-events.ts';
import { byOwner, judgeTimed, notesOf, operationsOf, type Timed } from './timed.ts';

interface Asked extends Operation {
  readonly q: {
    readonly c: string;
    readonly k: string;
    readonly op: 'acquire' | 'change' | 'release' | 'orphan';
    readonly delayMs: number;
    readonly until?: number;
  };
  readonly a: { readonly version: number; readonly until: number; readonly limit?: number } | undefined;
}

interface Looked {
  readonly c: string;
  readonly looked: number;
  readonly limit?: number;
}

type Noted = ReturnType<typeof notesOf<Looked>>[number];

/** What the holder is certain of from some moment on. `until` 0: nothing. */
interface Certain {
  readonly t: number;
  readonly until: number;
  readonly limit: number | undefined;
}

/** One who was granted a lock. */
interface Use {
  readonly acquire: Asked;
  readonly grantedNs: number;
  readonly version: number;
  readonly certain: readonly Certain[];
  /** It begins to release the lock, or abandons it. */
  readonly end: Asked | undefined;
}

/** Journals record times slightly after the event. */
const ROUNDING_MS = 1;

export function judgeTerms(round: Round): readonly Finding[] {
  const looked = new Map<string, Noted[]>();
  for (const noted of notesOf<Looked>(round, 'terms')) looked.set(noted.n.c, [...(looked.get(noted.n.c) ?? []), noted]);
  const all = byOwner(operationsOf<Asked>(round, 'terms'));
  const uses = all.flatMap((asked) => useOf(asked, looked.get(asked[0]?.q.c ?? '') ?? []));
  return [
    ...judgeLockEvents([
      ...all.flatMap(([acquire]) => (acquire === undefined ? [] : askedOf(acquire))),
      ...uses.flatMap(reliedOf),
    ]),
    ...judgeTimed(new LapseCheck(), uses.flatMap(lapsesOf)),
  ];
}

function useOf([acquire, ...more]: readonly Asked[], looked: readonly Noted[]): readonly Use[] {
  const a = acquire?.a;
  if (acquire?.q.op !== 'acquire' || acquire.how !== 'done' || a === undefined || acquire.t1 === null) return [];
  const certain: Certain[] = [
    { t: acquire.t1, until: a.until, limit: a.limit },
    ...more.flatMap(({ q, t0 }) => (q.op === 'change' ? [{ t: t0, until: 0, limit: undefined }] : [])),
    ...looked.map(({ t, n }) => ({ t, until: n.looked, limit: n.limit })),
  ];
  const end = more.find(({ q }) => q.op === 'release' || q.op === 'orphan');
  if (end?.q.op === 'orphan') certain.push({ t: end.t0, until: end.q.until ?? 0, limit: undefined });
  certain.sort((x, y) => x.t - y.t);
  return [{ acquire, grantedNs: acquire.t1, version: a.version, certain, end }];
}

function askedOf({ q: { k: lock, c: owner }, t0, t1, how }: Asked): readonly TimedEvent[] {
  const asked: TimedEvent = { t: t0, event: { type: 'asked', lock, owner, mode: 'exclusive' } };
  return how === 'done' ? [asked] : [asked, { t: t1 ?? t0 + 1, event: { type: 'gone', lock, owner } }];
}

function reliedOf({ acquire, grantedNs, version, certain, end }: Use): readonly TimedEvent[] {
  const { k: lock, c: owner } = acquire.q;
  const last = certain.findLast(({ until }) => until > 0);
  const unsure = certain.find(({ t, until }) => until === 0 && t > (last?.t ?? 0));
  const leftNs = Math.min(last?.until ?? 0, unsure?.t ?? Number.POSITIVE_INFINITY, end?.t0 ?? Number.POSITIVE_INFINITY);
  return [
    { t: grantedNs, event: { type: 'granted', lock, owner, mode: 'exclusive', version } },
    { t: Math.max(leftNs, grantedNs + 1), event: { type: 'left', lock, owner } },
  ];
}

function lapsesOf({ acquire, grantedNs, version, certain, end }: Use): readonly Timed<LapseEvent>[] {
  const { k: lock, delayMs } = acquire.q;
  const atMs = grantedNs / NS_PER_MS + ROUNDING_MS;
  const granted = { type: 'granted', lock, version, atMs, delayMs } as const;
  let limitNs = Number.POSITIVE_INFINITY;
  const vouched = certain.map(({ t, until, limit }): Timed<LapseEvent> => {
    if (limit !== undefined) limitNs = Math.max(limit, limitNs === Number.POSITIVE_INFINITY ? 0 : limitNs);
    const times = { atMs: t / NS_PER_MS, untilMs: until / NS_PER_MS, limitMs: limitNs / NS_PER_MS + ROUNDING_MS };
    return { t, event: { type: 'vouched', lock, version, ...times } };
  });
  const given: readonly Timed<LapseEvent>[] =
    end?.q.op === 'release' ? [{ t: end.t0, event: { type: 'given', lock, version } }] : [];
  return [{ t: grantedNs, event: granted }, ...vouched, ...given];
}
