/**
 * Counts how often something was in progress while the ranges of its keys changed. Without such overlaps, a history
 * proves nothing about changes of ranges.
 *
 * O1. Only completed changes count, and a subject counts only if it has keys in a range that changed.
 * O2. `met`: both were in progress at some moment. `through`: the subject began before the change was requested and
 *     ended after the change was complete, so that the whole change happened during it.
 * O3. A waiter is in progress while another client is known to hold the lock that it requested.
 */
import { compareBytes, type Span } from '@remora/base';
import { keyPlace, leasePlace, lockPlace, prefixPlace } from '../changes/places.ts';
import { CHANGES, type ChangeKind, type RecordedChange } from '../changes/range-desk.ts';
import type { Operation, Round } from './evidence.ts';

export const SUBJECTS = ['waiter', 'watch', 'lease', 'transaction'] as const;
export type Subject = (typeof SUBJECTS)[number];

export interface Overlap {
  readonly change: ChangeKind;
  readonly subject: Subject;
  readonly met: number;
  readonly through: number;
}

/** How long changes are remembered. An operation of a later round never overlaps an older one. */
const REMEMBERED_NS = 60e9;

interface Window {
  readonly change: ChangeKind;
  readonly spans: readonly Span[];
  readonly t0: number;
  readonly t1: number;
}

interface Lived {
  readonly subject: Subject;
  readonly places: readonly Span[];
  /** From its begin to its end. */
  readonly t0: number;
  readonly t1: number;
  /** When it counts as in progress. Absent: all the time. */
  readonly during?: readonly (readonly [t0: number, t1: number])[];
}

export class Overlaps {
  readonly #counts = new Map<string, { met: number; through: number }>();
  #windows: Window[] = [];

  /** Rounds must be passed in order. */
  take(round: Round): void {
    this.#windows.push(...round.operations.flatMap(windowOf));
    for (const lived of livesOf(round)) for (const window of this.#windows) this.#compare(lived, window);
    const newest = Math.max(0, ...this.#windows.map(({ t1 }) => t1));
    this.#windows = this.#windows.filter(({ t1 }) => t1 > newest - REMEMBERED_NS);
  }

  get all(): readonly Overlap[] {
    return CHANGES.flatMap((change) =>
      SUBJECTS.map((subject) => ({ change, subject, ...(this.#counts.get(`${change} ${subject}`) ?? NONE) })),
    );
  }

  #compare({ subject, places, t0, t1, during = [[t0, t1]] }: Lived, window: Window): void {
    const meets = during.some(([from, to]) => from < window.t1 && to > window.t0);
    if (!meets || !places.some((place) => window.spans.some((span) => intersect(place, span)))) return;
    const name = `${window.change} ${subject}`;
    const count = this.#counts.get(name) ?? { ...NONE };
    count.met += 1;
    if (t0 <= window.t0 && t1 >= window.t1) count.through += 1;
    this.#counts.set(name, count);
  }
}

const NONE = { met: 0, through: 0 } as const;

function intersect(a: Span, b: Span): boolean {
  return isBefore(a.start, b.end) && isBefore(b.start, a.end);
}

/** An empty end is after all keys. */
function isBefore(key: Uint8Array, end: Uint8Array): boolean {
  return end.length === 0 || compareBytes(key, end) < 0;
}

function windowOf({ w, q, how, t0, t1 }: Operation): readonly Window[] {
  if (w !== 'changes' || how !== 'done' || t1 === null) return [];
  const { change, spans } = q as RecordedChange;
  const bytes = spans.map(([start, end]) => ({ start: Buffer.from(start, 'hex'), end: Buffer.from(end, 'hex') }));
  return [{ change, spans: bytes, t0, t1 }];
}

function livesOf({ operations }: Round): readonly Lived[] {
  const of = (w: Operation['w']) => operations.filter((operation) => operation.w === w);
  return [
    ...of('txns').flatMap(transactionOf),
    ...of('watches').flatMap(watchOf),
    ...leasesOf(of('leases')),
    ...waitersOf(of('locks')),
  ];
}

function transactionOf({ q, t0, t1 }: Operation): readonly Lived[] {
  if (t1 === null) return [];
  const { ops } = q as { readonly ops: readonly { readonly k: string }[] };
  return [{ subject: 'transaction', places: ops.map(({ k }) => keyPlace(k)), t0, t1 }];
}

function watchOf({ q, t0, t1 }: Operation): readonly Lived[] {
  if (t1 === null) return [];
  const { prefix } = q as { readonly prefix: string };
  return [{ subject: 'watch', places: [prefixPlace(prefix)], t0, t1 }];
}

/**
 * From its grant to the last event that shows it alive. It counts in the range of its record and in that of its key.
 */
function leasesOf(operations: readonly Operation[]): readonly Lived[] {
  const lives = new Map<string, { id: string | undefined; t0: number; t1: number }>();
  for (const { q, a, t1 } of operations) {
    if (t1 === null) continue;
    const { op, key } = q as { readonly op: string; readonly key: string };
    const id = a !== undefined && 'id' in a ? String(a.id) : undefined;
    const life = lives.get(key);
    if (op === 'grant' && id !== undefined) lives.set(key, { id, t0: t1, t1 });
    else if (life !== undefined) life.t1 = Math.max(life.t1, t1);
  }
  return [...lives].map(([key, { id, t0, t1 }]) => {
    const places = [keyPlace(key), ...(id === undefined ? [] : [leasePlace(BigInt(id))])];
    return { subject: 'lease', places, t0, t1 };
  });
}

interface LockQuestion {
  readonly c: string;
  readonly k: string;
  readonly op: string;
  readonly wait?: number;
}

/** O3. */
function waitersOf(operations: readonly Operation[]): readonly Lived[] {
  const asked = operations.map((operation) => ({ ...operation, q: operation.q as LockQuestion }));
  const released = new Map(asked.flatMap(({ q, t0 }) => (q.op === 'release' ? [[q.c, t0]] : [])));
  const holds = asked.flatMap(({ q, how, a, t1 }) => {
    const until = released.get(q.c);
    const granted = q.op === 'acquire' && how === 'done' && a !== undefined && 'ok' in a && a.ok === true;
    return granted && t1 !== null && until !== undefined ? [{ ...q, from: t1, until }] : [];
  });
  return asked.flatMap(({ q, t0, t1 }): readonly Lived[] => {
    if (q.op !== 'acquire' || !q.wait || t1 === null) return [];
    const during = holds.flatMap(({ c, k, from, until }) =>
      k === q.k && c !== q.c && from < t1 && until > t0 ? [[Math.max(from, t0), Math.min(until, t1)] as const] : [],
    );
    return [{ subject: 'waiter', places: [lockPlace(q.k)], t0, t1, during }];
  });
}
