/**
 * Locks exclude: by the answers of the cluster (a lock is an object with one holder, `lockModel`), by what holders
 * themselves rely on (`LockCheck`), and by what the locks protect, a number that each holder raises by one.
 *
 * What holders rely on: from its grant until it begins to give the lock back, or until the last moment that the SDK
 * vouched for when it had no chance to look again. Whoever breaks a lock takes that away from the moment of asking.
 *
 * Who gave up (LOCK_TIMEOUT, a lost answer, a client that is gone) may have been granted the lock for a moment, and was
 * never told; its cancel, or the end of its session, took it back when nobody looked. As the moment of neither is known
 * to any client, both the grant and its end may be at any time from the asking on: nothing is called a second holder
 * that might not be one. That hides no second holder: who was told that it holds the lock is placed in any case, and
 * nobody else is, but where somebody was refused and no known holder explains it (`lock-gaps.ts`).
 */
import { checkLinearizable, type Finding, type HistoryRecord, lockModel, violation } from '../../checkers/index.ts';
import type { Round } from './evidence.ts';
import { judgeLockEvents, type TimedEvent } from './lock-events.ts';
import { type Asked, askedOf, inOrder, recordOf } from './records.ts';
import { findingOf } from './verdicts.ts';

/** One owner's use of a lock. */
interface Use {
  readonly acquire: Asked;
  readonly checks: readonly Asked[];
  readonly release: Asked | undefined;
}

/** A write that the resource accepted. */
interface Accepted {
  readonly lock: string;
  readonly version: number;
  readonly value: number;
}

export function judgeLocks(round: Round): readonly Finding[] {
  const asked = askedOf(round, 'locks');
  // Who breaks a lock is told as a release, of unknown outcome, of each grant that it may have ended: a history with
  // `force` is searched in full, whereas in one without hidden holders are counted (lock-gaps.ts).
  const forces = asked.filter(({ q }) => isForce(q.op));
  const uses = usesOf(asked);
  const history = inOrder(uses.flatMap((use) => historyOf(use, forces)));
  const events = uses.flatMap((use) => eventsOf(use, forces));
  return [
    ...findingOf('locks', checkLinearizable(lockModel, history)),
    ...judgeLockEvents(events),
    ...judgeResource(round),
  ];
}

function isForce(op: string): boolean {
  return op === 'force';
}

function usesOf(asked: readonly Asked[]): readonly Use[] {
  const uses = new Map<string, { acquire?: Asked; readonly checks: Asked[]; release?: Asked }>();
  for (const each of asked) {
    if (isForce(each.q.op)) continue;
    const use = uses.get(each.q.c) ?? { checks: [] };
    uses.set(each.q.c, use);
    if (each.q.op === 'acquire') use.acquire = each;
    else if (each.q.op === 'release') use.release = each;
    else use.checks.push(each);
  }
  return [...uses.values()].flatMap(({ acquire, checks, release }) =>
    acquire === undefined ? [] : [{ acquire, checks, release }],
  );
}

function isGranted({ acquire: { how, a } }: Use): boolean {
  return how === 'done' && a?.ok === true;
}

/** Somebody may have broken this use of the lock. */
function broken({ acquire, release }: Use, forces: readonly Asked[]): Asked | undefined {
  const endNs = release?.t1 ?? Number.POSITIVE_INFINITY;
  return forces.find(
    ({ q, how, t0, t1 }) =>
      how !== 'refused' && q.k === acquire.q.k && t0 < endNs && (t1 ?? Number.POSITIVE_INFINITY) > acquire.t0,
  );
}

function historyOf(use: Use, forces: readonly Asked[]): readonly HistoryRecord[] {
  const { checks, release } = use;
  // Whoever gave up may have been granted it for a moment, as one whose outcome is unknown.
  const acquire: Asked = use.acquire.how === 'refused' ? { ...use.acquire, how: 'unknown' } : use.acquire;
  const records = [acquire, ...checks, ...(release === undefined ? [] : [release])].flatMap(
    (each) => recordOf(each) ?? [],
  );
  const { c, k } = acquire.q;
  const freed = { c, k, op: 'release', ok: false, t1: null } as const;
  // It may have been granted, and be given back by itself.
  if (acquire.how === 'unknown') return [...records, { ...freed, t0: acquire.t0 }];
  if (!isGranted(use)) return records;
  const v = acquire.a?.out ?? null;
  const force = broken(use, forces);
  if (force !== undefined) return [...records, { ...freed, v, t0: Math.max(force.t0, acquire.t0) }];
  // Without a release that the cluster took in time, the end of the session frees it.
  const released = release !== undefined && heldAt(release) && release.a?.ok !== false;
  return released ? records : [...records, { ...freed, v, t0: acquire.t0 }];
}

function eventsOf(use: Use, forces: readonly Asked[]): readonly TimedEvent[] {
  const { acquire, release } = use;
  const { k: lock, c: owner } = acquire.q;
  const asked: TimedEvent = { t: acquire.t0, event: { type: 'asked', lock, owner, mode: 'exclusive' } };
  const grantedNs = acquire.t1;
  if (!isGranted(use) || grantedNs === null) {
    return [asked, { t: acquire.t1 ?? acquire.t0 + 1, event: { type: 'gone', lock, owner } }];
  }
  const version = Number(acquire.a?.out);
  const vouchedNs = Math.max(release?.q.until ?? 0, ...[acquire, ...use.checks].map(({ a }) => a?.until ?? 0));
  const reliedNs = Math.min(vouchedNs, release?.t0 ?? Number.POSITIVE_INFINITY);
  const leftNs = Math.min(reliedNs, broken(use, forces)?.t0 ?? Number.POSITIVE_INFINITY);
  return [
    asked,
    { t: grantedNs, event: { type: 'granted', lock, owner, mode: 'exclusive', version } },
    { t: Math.max(leftNs, grantedNs + 1), event: { type: 'left', lock, owner } },
  ];
}

/** Whether the holder could rely on the lock when it gave it back. */
function heldAt({ q, t0 }: Asked): boolean {
  return (q.until ?? 0) >= t0;
}

/** Each holder wrote one more than what it had read: without a gap, and under growing versions. */
function judgeResource({ notes }: Round): readonly Finding[] {
  const found: Finding[] = [];
  const last = new Map<string, Accepted>();
  for (const { w, n } of notes) {
    if (w !== 'locks' || !('accepted' in n)) continue;
    const { lock, version, value } = n.accepted as Accepted;
    const before = last.get(lock);
    const what = `${value} was written under ${lock}, version ${version}`;
    if (before !== undefined && version <= before.version) {
      found.push(violation('locks: fencing', `${what}, after ${before.value} under version ${before.version}`));
    }
    if (value !== (before?.value ?? 0) + 1) {
      found.push(violation('locks: no lost update', `${what}, after ${before?.value ?? 0}`));
    }
    last.set(lock, { lock, version, value });
  }
  return found;
}
