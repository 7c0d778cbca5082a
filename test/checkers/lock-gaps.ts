/**
 * Grants of unknown outcome of a lock, counted instead of searched.
 *
 * A lock whose askers often give up has many of them: each may have held the lock for a moment, whenever that was. All
 * that they can explain is that somebody else was refused. Here it is settled beforehand which refusals need such a
 * hidden holder and whether there are enough; then neither they nor these refusals are left to the search. Exact: what
 * is left has an explanation if and only if the whole history has one.
 *
 * It is done where everybody speaks of what it was told (otherwise the search does it all):
 * L1. Every answered check and release names a version, and began after an acquire was answered with that version.
 *     Nobody takes the lock by force, as that names none.
 * L2. Whoever has an acquire of unknown outcome has no other, and at most releases it without naming a version, at any
 *     time from that acquire on, or never. With such a release it can hide in any place, without one only behind all
 *     others: nothing would ever free the lock again.
 *
 * Why it is right:
 * L3. Known grants follow one another in the order of their versions; hidden holders hold between two of them, or
 *     before the first, or behind the last. A hidden holder has one acquire, so it hides in one of these places only.
 * L4. A known holder is certainly gone when a release of it has succeeded, or somebody was told that it no longer
 *     holds; the next one certainly does not hold before it asks. The time between the two, if any, is a *gap*. A
 *     refusal needs a hidden holder if all of it lies within a gap: there is no known one. Any other refusal needs
 *     none: take an explanation, and move the end of the known grant before it towards the begin of the gap, or of the
 *     known grant behind it towards the end of the gap (where there is no gap, both until they meet). Only answers
 *     about these two grants could mind; an answer that says "gone" ends no earlier than the gap begins, so it moves
 *     along. Now the refusal has a place within one of the two.
 * L5. One hidden holder explains all refusals of its gap, if it asked before the first of them ended: it may hold from
 *     that moment to the end of the gap, and minds nobody. So gaps and hidden holders are to be paired. Whoever asked
 *     in time for a gap did so for every gap with a later first end: pairing both in the order of time finds a pairing
 *     if there is one.
 * L6. Where a gap gets no hidden holder, its refusals stay, and the search fails with them.
 */
import type { HistoryRecord } from './history.ts';

export interface Counted {
  /** Without grants of unknown outcome, and without what they explain. */
  readonly ops: readonly HistoryRecord[];
}

interface Grant {
  readonly version: number;
  readonly askedAt: number;
  readonly answeredAt: number;
  /** L4. When it is certainly over. */
  goneBy: number;
}

interface Gap {
  readonly from: number;
  readonly to: number;
  readonly refusals: HistoryRecord[];
}

/** When acquires of unknown outcome were asked, in that order. */
interface Hidden {
  readonly anywhere: readonly number[];
  readonly atTheEnd: readonly number[];
}

/** Undefined: somebody speaks of what it was not told (L1, L2). */
export function countUnseen(ops: readonly HistoryRecord[]): Counted | undefined {
  const grants = grantsOf(ops);
  const hidden = grants === undefined ? undefined : hiddenOf(ops);
  if (grants === undefined || hidden === undefined) return undefined;
  const explained = explainedBy(hidden, gapsOf(grants, ops));
  return { ops: ops.filter((op) => !explained.has(op) && (op.t1 !== null || isReleaseOfVersion(op))) };
}

/** L1. By their versions; undefined where it does not hold. */
function grantsOf(ops: readonly HistoryRecord[]): readonly Grant[] | undefined {
  const grants = new Map<unknown, Grant>();
  for (const { op, ok, out, t0, t1 } of ops) {
    if (op !== 'acquire' || t1 === null || !ok) continue;
    if (typeof out !== 'number' || grants.has(out)) return undefined;
    grants.set(out, { version: out, askedAt: t0, answeredAt: t1, goneBy: Number.POSITIVE_INFINITY });
  }
  for (const op of ops) {
    if (op.op === 'force') return undefined;
    if (op.op === 'acquire' || (op.t1 === null && !isReleaseOfVersion(op))) continue;
    const grant = grants.get(op.v);
    if (grant === undefined) return undefined;
    if (op.t1 === null) continue;
    if (op.t0 <= grant.answeredAt) return undefined;
    if (op.op === 'release' || op.out !== true) grant.goneBy = Math.min(grant.goneBy, op.t1);
  }
  return [...grants.values()].sort((a, b) => a.version - b.version);
}

/** L2. Undefined where it does not hold. */
function hiddenOf(ops: readonly HistoryRecord[]): Hidden | undefined {
  const acquires = new Map<string | number, HistoryRecord[]>();
  for (const op of ops) {
    if (op.op === 'acquire') acquires.set(op.c, [...(acquires.get(op.c) ?? []), op]);
  }
  const released = new Set<HistoryRecord>();
  for (const op of ops) {
    if (op.op !== 'release' || typeof op.v === 'number') continue;
    const [acquire] = acquires.get(op.c) ?? [];
    if (acquire?.t1 !== null || op.t0 > acquire.t0) return undefined;
    released.add(acquire);
  }
  const anywhere: number[] = [];
  const atTheEnd: number[] = [];
  for (const all of acquires.values()) {
    for (const acquire of all) {
      if (acquire.t1 !== null) continue;
      if (all.length > 1) return undefined;
      (released.has(acquire) ? anywhere : atTheEnd).push(acquire.t0);
    }
  }
  return { anywhere: inOrder(anywhere), atTheEnd: inOrder(atTheEnd) };
}

/** L4. Gaps in which somebody was refused, with these refusals. */
function gapsOf(grants: readonly Grant[], ops: readonly HistoryRecord[]): readonly Gap[] {
  // Where known grants can follow one another at all, gaps come in order, one behind the other.
  const gaps: Gap[] = [];
  let from = Number.NEGATIVE_INFINITY;
  for (const { askedAt, goneBy } of grants) {
    if (from < askedAt) gaps.push({ from, to: askedAt, refusals: [] });
    from = goneBy;
  }
  if (from < Number.POSITIVE_INFINITY) gaps.push({ from, to: Number.POSITIVE_INFINITY, refusals: [] });
  const refusals = ops.filter(({ op, ok, t1 }) => op === 'acquire' && t1 !== null && !ok);
  let at = 0;
  for (const refusal of refusals.sort((a, b) => a.t0 - b.t0)) {
    while ((gaps[at + 1]?.from ?? Number.POSITIVE_INFINITY) < refusal.t0) at += 1;
    const gap = gaps[at];
    if (gap !== undefined && gap.from < refusal.t0 && firstEnd([refusal]) < gap.to) gap.refusals.push(refusal);
  }
  return gaps.filter((gap) => gap.refusals.length > 0);
}

/** L5. The refusals of all gaps that get a hidden holder. */
function explainedBy({ anywhere, atTheEnd }: Hidden, gaps: readonly Gap[]): ReadonlySet<HistoryRecord> {
  const explained = new Set<HistoryRecord>();
  let next = 0;
  for (const { to, refusals } of gaps.toSorted((a, b) => firstEnd(a.refusals) - firstEnd(b.refusals))) {
    const inTime = (askedAt: number | undefined): boolean => askedAt !== undefined && askedAt <= firstEnd(refusals);
    if (to !== Number.POSITIVE_INFINITY || !inTime(atTheEnd[0])) {
      if (!inTime(anywhere[next])) continue;
      next += 1;
    }
    for (const refusal of refusals) explained.add(refusal);
  }
  return explained;
}

function firstEnd(refusals: readonly HistoryRecord[]): number {
  return refusals.reduce((first, { t1 }) => Math.min(first, t1 ?? first), Number.POSITIVE_INFINITY);
}

function isReleaseOfVersion({ op, v }: HistoryRecord): boolean {
  return op === 'release' && typeof v === 'number';
}

function inOrder(times: readonly number[]): readonly number[] {
  return times.toSorted((a, b) => a - b);
}
