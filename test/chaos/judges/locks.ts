/**
 * Judges that locks exclude, in three ways: by the answers of the cluster (a lock is an object with one holder,
 * `lockModel`), by what holders themselves rely on (`LockCheck`), and by the resource that the lock protects, a number
 * that each holder increments.
 *
 * A holder relies on a lock from its grant until it begins to release it, or, if it could not check again, until the
 * last moment for which the SDK guaranteed it. A break of the lock ends this when the break is requested.
 *
 * A client that gave up (LOCK_TIMEOUT, a lost answer, a client that is gone) may have been granted the lock for a
 * moment without learning it. Its cancel, or the end of its session, then released the lock. No client knows the
 * moments of such a grant and its end, so both may be at any time from the request on, and such a client is never
 * called a second holder. This hides no real second holder: a client that was told that it holds the lock is always
 * placed. Others are placed only where a refusal is not explained by any known holder (`lock-gaps.ts`).
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
  // A break of a lock is recorded as a release, of unknown outcome, of each grant that it may have ended. A history
  // with `force` would be searched in full, whereas without it hidden holders are only counted (lock-gaps.ts).
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

/** Another client may have broken this use of the lock. */
function broken({ acquire, release }: Use, forces: readonly Asked[]): Asked | undefined {
  const endNs = release?.t1 ?? Number.POSITIVE_INFINITY;
  return forces.find(
    ({ q, how, t0, t1 }) =>
      how !== 'refused' && q.k === acquire.q.k && t0 < endNs && (t1 ?? Number.POSITIVE_INFINITY) > acquire.t0,
  );
}

function historyOf(use: Use, forces: readonly Asked[]): readonly HistoryRecord[] {
  const { checks, release } = use;
  // A client that gave up may have been granted the lock for a moment, like one with an unknown outcome.
  const acquire: Asked = use.acquire.how === 'refused' ? { ...use.acquire, how: 'unknown' } : use.acquire;
  const records = [acquire, ...checks, ...(release === undefined ? [] : [release])].flatMap(
    (each) => recordOf(each) ?? [],
  );
  const { c, k } = acquire.q;
  const freed = { c, k, op: 'release', ok: false, t1: null } as const;
  // It may have been granted and released automatically.
  if (acquire.how === 'unknown') return [...records, { ...freed, t0: acquire.t0 }];
  if (!isGranted(use)) return records;
  const v = acquire.a?.out ?? null;
  const force = broken(use, forces);
  if (force !== undefined) return [...records, { ...freed, v, t0: Math.max(force.t0, acquire.t0) }];
  // If the cluster accepted no release in time, the end of the session frees the lock.
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

/** Whether the holder could rely on the lock when it released it. */
function heldAt({ q, t0 }: Asked): boolean {
  return (q.until ?? 0) >= t0;
}

/** Each holder wrote the number that it had read plus one: without gaps, and with growing versions. */
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
