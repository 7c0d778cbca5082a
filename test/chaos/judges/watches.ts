import { type Finding, runCheck, violation, WatchCheck, type WatchEvent } from '../../checkers/index.ts';
import type { SeenEvent } from '../workloads/watches.ts';
import type { Operation, Round } from './evidence.ts';

interface Asked extends Operation {
  readonly q: { readonly watch: string; readonly from: number; readonly prefix: string };
  readonly a: { readonly upTo?: number; readonly compacted?: true } | undefined;
}

/**
 * Watches reported every event completely, in order and once. The true events come from the auditor's watch, which is
 * itself judged by the writes. `compacted`: the highest revision of a requested compaction.
 */
export function judgeWatches(round: Round, compacted: number): readonly Finding[] {
  const events: WatchEvent[] = round.events
    .filter(({ key }) => key.startsWith('register/'))
    .map(({ revision, key, value }) => ({ type: 'changed', ...changeOf([revision, key, value]) }));
  const asked = round.operations.filter(({ w }) => w === 'watches') as unknown as readonly Asked[];
  const found: Finding[] = [];
  for (const { q, a } of asked) {
    const { watch, from, prefix } = q;
    events.push({ type: 'opened', watch, from, start: prefix, end: `${prefix.slice(0, -1)}0` });
    for (const seen of seenBy(round, watch)) events.push({ type: 'event', watch, ...changeOf(seen) });
    if (a?.upTo !== undefined) events.push({ type: 'closed', watch, upTo: a.upTo });
    if (a?.compacted === true && from > compacted) {
      const detail = `watch ${watch} from ${from} was told that this is compacted; asked for was ${compacted} at most`;
      found.push(violation('watch: compacted', detail));
    }
  }
  return [...found, ...runCheck(new WatchCheck({ allChangesKnown: true }), events)];
}

/** The revision up to which a compaction in this round was requested. */
export function compactionOf(round: Round): number {
  return Math.max(0, ...round.notes.map(({ n }) => ('compaction' in n ? Number(n.compaction) : 0)));
}

function seenBy({ notes }: Round, watch: string): readonly SeenEvent[] {
  return notes.flatMap(({ w, n }) => {
    if (w !== 'watches' || !('watch' in n) || n.watch !== watch || !('events' in n)) return [];
    return n.events as readonly SeenEvent[];
  });
}

function changeOf([revision, key, value]: SeenEvent) {
  return value === null
    ? ({ revision, key, kind: 'delete' } as const)
    : ({ revision, key, kind: 'put', value } as const);
}
