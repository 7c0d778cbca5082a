/**
 * Judges writes that require a lock, by the answers that their clients received and by the complete history of the
 * keys.
 *
 * F1. Everything that is written under a grant has a revision between the grant's version and that of the next known
 *     grant.
 * F2. A key is never written under an older grant than its previous write.
 * F3. An acknowledged write is there, at the revision that was reported. A refused write is not there.
 * F4. A write is not refused while its client holds the lock by its own reckoning and nobody broke the lock.
 */
import type { Finding } from '../../checkers/index.ts';
import { fencedKey } from '../workloads/fences.ts';
import type { AuditedEvent, Operation, Round } from './evidence.ts';
import { askedOf } from './records.ts';
import { violations } from './verdicts.ts';

interface FencedWrite extends Operation {
  readonly q: { readonly k: string; readonly v: number; readonly late: boolean };
  readonly a: { readonly revision?: number; readonly until: number } | undefined;
}

export function judgeFences(round: Round): readonly Finding[] {
  const writes = round.operations.filter(({ w }) => w === 'fences') as unknown as readonly FencedWrite[];
  const events = round.events.filter(({ key }) => key.startsWith('fence/'));
  return [
    ...violations('fences: before the next grant', misplaced(round, events)),
    ...violations('fences: versions grow', backwards(events)),
    ...violations('fences: told as it is', misled(writes, events)),
    ...violations('fences: a holder writes', refused(round, writes)),
  ];
}

/** F1. */
function* misplaced(round: Round, events: readonly AuditedEvent[]): Generator<string> {
  const grants = new Map<string, number[]>();
  for (const { q, a } of askedOf(round, 'locks')) {
    if (q.op !== 'acquire' || typeof a?.out !== 'number') continue;
    const key = fencedKey(q.k);
    grants.set(key, [...(grants.get(key) ?? []), a.out]);
  }
  for (const { key, value, revision } of events) {
    const version = Number(value);
    const next = grants.get(key)?.find((other) => other > version && other < revision);
    const told = `${key} was written at revision ${revision} under version ${version}`;
    if (revision <= version) yield `${told}, which was granted later`;
    else if (next !== undefined) yield `${told}, when ${next} had been granted`;
  }
}

/** F2. */
function* backwards(events: readonly AuditedEvent[]): Generator<string> {
  const newest = new Map<string, number>();
  for (const { key, value, revision } of events) {
    const before = newest.get(key) ?? 0;
    if (Number(value) < before) yield `${key} was written under ${value} at revision ${revision}, after ${before}`;
    newest.set(key, Math.max(before, Number(value)));
  }
}

/** F3. A grant may write more than once: only their numbers distinguish the writes of one version. */
function* misled(writes: readonly FencedWrite[], events: readonly AuditedEvent[]): Generator<string> {
  const there = new Map(events.map(({ revision, key, value }) => [revision, `${key} ${value}`]));
  const may = new Map<string, number>();
  for (const { q, a, how } of writes) {
    const name = `${fencedKey(q.k)} ${q.v}`;
    if (how !== 'refused') may.set(name, (may.get(name) ?? 0) + 1);
    if (how !== 'done' || there.get(a?.revision ?? 0) === name) continue;
    yield `${name} was acknowledged at revision ${a?.revision}, and is not there`;
  }
  for (const name of there.values()) {
    const left = (may.get(name) ?? 0) - 1;
    may.set(name, left);
    if (left < 0) yield `${name} is there more often than it may be`;
  }
}

/** F4. */
function* refused(round: Round, writes: readonly FencedWrite[]): Generator<string> {
  const forced = new Set(askedOf(round, 'locks').flatMap(({ q }) => (q.op === 'force' ? [q.k] : [])));
  for (const { q, a, code, t1 } of writes) {
    const held = t1 !== null && (a?.until ?? 0) > t1;
    if (code !== 'FENCED' || !held || forced.has(q.k)) continue;
    yield `a write under ${q.k}, version ${q.v}, was refused as stale while its holder could rely on it`;
  }
}
