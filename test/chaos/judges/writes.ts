/**
 * Compares the answers that clients received about their writes with the complete history of the keys.
 *
 * A1. An acknowledged write is there, at the reported revision. A2. No write is there twice. A3. A refused write, or
 * one whose comparison failed, is not there. A4. Every change was requested, for that key. A5. If a write was
 * acknowledged before another began, its revision is smaller. No two share a revision.
 */
import type { Finding } from '../../checkers/index.ts';
import { isVisited } from '../users/rights.ts';
import type { AuditedEvent, Round } from './evidence.ts';
import { type Asked, askedOf } from './records.ts';
import { violations } from './verdicts.ts';

const WRITES: readonly string[] = ['put', 'cas', 'append'];

export function judgeWrites(round: Round): readonly Finding[] {
  const asked = [...askedOf(round, 'registers'), ...askedOf(round, 'lists'), ...askedOf(round, 'visits')];
  const writes = new Map(asked.filter(({ q }) => WRITES.includes(q.op)).map((each) => [String(each.q.v), each]));
  return [
    ...violations('writes: nothing else happened', notAskedFor(round.events, writes)),
    ...violations('writes: nothing is lost', lost(round.events, writes)),
    ...violations('writes: deletes', deletes(round.events, asked)),
    ...violations('writes: revisions grow in real time', revisionsInOrder(asked)),
  ];
}

/** Whether a write without an acknowledgement may still have happened. */
function mayHappen({ how, a }: Asked): boolean {
  return how === 'unknown' || (how === 'done' && a?.ok === true);
}

/** A2, A3, A4. */
function* notAskedFor(events: readonly AuditedEvent[], writes: ReadonlyMap<string, Asked>): Generator<string> {
  const seen = new Set<string>();
  for (const { key, value, revision } of events) {
    if (value === null || !isAudited(key)) continue;
    const write = writes.get(value);
    const told = `${key} was given ${value} at revision ${revision}`;
    if (write?.q.k !== key) yield `${told}, which nobody asked for`;
    else if (!mayHappen(write)) yield `${told}, which was ${write.how === 'done' ? 'not to be' : 'refused'}`;
    if (seen.has(value)) yield `${told}, again: applied twice`;
    seen.add(value);
  }
}

/** A1. */
function* lost(events: readonly AuditedEvent[], writes: ReadonlyMap<string, Asked>): Generator<string> {
  const revisions = new Map(events.flatMap(({ value, revision }) => (value === null ? [] : [[value, revision]])));
  for (const [value, { q, a, how }] of writes) {
    if (how !== 'done' || a?.ok !== true) continue;
    const revision = revisions.get(value);
    if (revision === undefined) yield `${q.k} was not given ${value}: an acknowledged write is lost`;
    else if (a.revision !== undefined && a.revision !== revision) {
      yield `${value} was written at revision ${revision}, and its client was told ${a.revision}`;
    }
  }
}

/**
 * Deletes have no value that identifies them: there are at least the acknowledged ones, and no more than may have
 * happened.
 */
function* deletes(events: readonly AuditedEvent[], asked: readonly Asked[]): Generator<string> {
  const happened = new Map(events.filter(({ value }) => value === null).map(({ key, revision }) => [revision, key]));
  const left = new Map<string, number>();
  for (const { q, how, a } of asked) {
    if (q.op !== 'del' || how === 'refused') continue;
    left.set(q.k, (left.get(q.k) ?? 0) + 1);
    if (a?.revision !== undefined && happened.get(a.revision) !== q.k) {
      yield `a delete of ${q.k} was acknowledged at revision ${a.revision}, and is lost`;
    }
  }
  for (const key of happened.values()) {
    if (!isAudited(key)) continue;
    const rest = (left.get(key) ?? 0) - 1;
    left.set(key, rest);
    if (rest === -1) yield `${key} was deleted more often than anybody asked for`;
  }
}

/** A5. */
function* revisionsInOrder(asked: readonly Asked[]): Generator<string> {
  const told = asked.flatMap(({ q, t0, t1, a }) =>
    t1 === null || a?.revision === undefined ? [] : [{ name: `${q.op} ${q.v ?? q.k}`, t0, t1, revision: a.revision }],
  );
  const owners = new Map<number, string>();
  for (const { name, revision } of told) {
    const other = owners.get(revision);
    if (other !== undefined) yield `${name} and ${other} share revision ${revision}`;
    owners.set(revision, name);
  }
  const ended = told.toSorted((a, b) => a.t1 - b.t1);
  let next = 0;
  let newest: (typeof told)[number] | undefined;
  for (const write of told.toSorted((a, b) => a.t0 - b.t0)) {
    for (let each = ended[next]; each !== undefined && each.t1 < write.t0; each = ended[++next]) {
      if (each.revision > (newest?.revision ?? 0)) newest = each;
    }
    if (newest !== undefined && newest.revision > write.revision) {
      yield `${write.name} got revision ${write.revision}, and ${newest.name} had been acknowledged with ${newest.revision}`;
    }
  }
}

function isAudited(key: string): boolean {
  return key.startsWith('register/') || key.startsWith('list/') || isVisited(key);
}
