/**
 * Counts grants of unknown outcome of a lock instead of searching for their places.
 *
 * If the clients of a lock often give up, there are many such grants: each may have held the lock for a moment, at any
 * time. All that they can explain is the refusal of another client. This module determines in advance which refusals
 * need such a hidden holder, and whether there are enough hidden holders. Then neither these grants nor these refusals
 * are left to the search. The method is exact: what is left has an explanation if and only if the whole history has
 * one.
 *
 * It applies if every client refers only to versions that it was told (otherwise the search does it all):
 * L1. Every answered check and release names a version, and began after an acquire was answered with that version.
 *     There is no `force`, which names no version.
 * L2. A client with an acquire of unknown outcome has no other acquire. It may release without naming a version, at any
 *     time from that acquire on. With such a release, its grant can hide in any place. Without one, it can hide only
 *     after all others, because nothing would ever free the lock again.
 *
 * Why it is correct:
 * L3. Known grants follow one another in the order of their versions. A hidden holder holds the lock between two of
 *     them, before the first, or after the last. It has one acquire, so it hides in only one of these places.
 * L4. A known holder is certainly gone once a release of it has succeeded, or once a client was told that it no longer
 *     holds the lock. The next holder certainly does not hold the lock before it asks. The time between the two, if
 *     any, is a *gap*. A refusal needs a hidden holder if all of it is within a gap, because then there is no known
 *     holder. Any other refusal needs none: take an explanation, and move the end of the known grant before the refusal
 *     towards the beginning of the gap, or the known grant after it towards the end of the gap (without a gap, move
 *     both until they meet). Only answers about these two grants could contradict this. An answer that says "gone" ends
 *     no earlier than the gap begins, so it moves along. Now the refusal has a place within one of the two grants.
 * L5. One hidden holder explains all refusals of its gap if it asked before the first of them ended: it may hold the
 *     lock from that moment to the end of the gap, and contradicts no answer. Therefore gaps and hidden holders must be
 *     paired. A holder that asked in time for a gap also asked in time for every gap with a later first end. Therefore
 *     pairing both in time order finds a pairing if there is one.
 * L6. If a gap gets no hidden holder, its refusals stay, and the search fails with them.
 */
import type { HistoryRecord } from './history.ts';

export interface Counted {
  /** The operations without grants of unknown outcome, and without what they explain. */
  readonly ops: readonly HistoryRecord[];
}

interface Grant {
  readonly version: number;
  readonly askedAt: number;
  readonly answeredAt: number;
  /** L4. When the grant is certainly over. */
  goneBy: number;
}

interface Gap {
  readonly from: number;
  readonly to: number;
  readonly refusals: HistoryRecord[];
}

/** The request times of acquires with an unknown outcome, sorted. */
interface Hidden {
  readonly anywhere: readonly number[];
  readonly atTheEnd: readonly number[];
}

/** Undefined: a client refers to a version that it was not told (L1, L2). */
export function countUnseen(ops: readonly HistoryRecord[]): Counted | undefined {
  const grants = grantsOf(ops);
  const hidden = grants === undefined ? undefined : hiddenOf(ops);
  if (grants === undefined || hidden === undefined) return undefined;
  const explained = explainedBy(hidden, gapsOf(grants, ops));
  return { ops: ops.filter((op) => !explained.has(op) && (op.t1 !== null || isReleaseOfVersion(op))) };
}

/** L1. By version. Undefined if L1 does not hold. */
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

/** L2. Undefined if L2 does not hold. */
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

/** L4. Gaps that contain refusals, with these refusals. */
function gapsOf(grants: readonly Grant[], ops: readonly HistoryRecord[]): readonly Gap[] {
  // If known grants can follow one another at all, gaps are in order and do not overlap.
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
