/**
 * Judges what users were allowed and refused while their rights changed.
 *
 * V1. What was answered was allowed at some time between request and answer, by a state of the users that was possible
 *     at that time. A state is possible from the request for the change that brings it until the acknowledgement of the
 *     change that ends it. So after an acknowledged revocation, no later request passes.
 * V2. What was refused as not permitted, or as not logged in, was refused by such a state. So what a user may do is not
 *     refused without a cause.
 * V3. A wait for a lock ends when its user may no longer take it. The time between request and answer begins with the
 *     release of the lock: it was not granted before.
 * V4. A watch ends when its user may no longer read. An event is shown between the request of its put and the time at
 *     which the watch showed it.
 * V5. Users whose rights do not change are never refused.
 *
 * What was refused had no effect, what was acknowledged is not lost, and an unknown outcome is not reported as refused:
 * `writes.ts` A1 to A5 judge the puts of these users, too.
 */
import { type Finding, violation } from '../../checkers/index.ts';
import { NS_PER_MS, ROUND_MS } from '../journal/lines.ts';
import type { RecordedRights, Right, Rights } from '../users/rights.ts';
import type { RecordedSights, RecordedVisit } from '../workloads/visits.ts';
import type { Note, Operation, Round } from './evidence.ts';

export interface VisitFigures {
  /** Requests that were allowed and passed, and those that were not allowed and refused, with certainty. */
  readonly letIn: number;
  readonly refused: number;
  /** Requests during changes: either was right. */
  readonly either: number;
  /** Acknowledged changes. */
  readonly changes: number;
}

const DENIALS = ['PERMISSION_DENIED', 'UNAUTHENTICATED'];
const ROUND_NS = ROUND_MS * NS_PER_MS;
const NOBODY: Rights = { password: null, read: false, write: false, lock: false };

/** A state of a user, and when it is possible. */
interface State {
  readonly rights: Rights;
  readonly how: string;
  readonly fromNs: number;
  untilNs: number;
}

/** Something that was allowed or refused between two times. */
interface Verdict {
  readonly what: string;
  readonly user: string;
  readonly password: number | null;
  readonly needs: Right;
  readonly allowed: boolean;
  readonly fromNs: number;
  readonly toNs: number;
}

export class VisitsJudge {
  readonly #states = new Map<string, State[]>();
  /** Verdicts that end after the rounds so far: later changes may explain them. */
  #waiting: Verdict[] = [];
  readonly #figures = { letIn: 0, refused: 0, either: 0, changes: 0 };

  get figures(): VisitFigures {
    return this.#figures;
  }

  /** Rounds must be passed in order. */
  take(round: Round): readonly Finding[] {
    const operations = round.operations.filter(({ w }) => w === 'visits');
    const changes = operations.filter(isChange).sort((a, b) => a.t0 - b.t0);
    for (const change of changes) this.#change(change);
    this.#waiting.push(...verdictsOf(operations), ...sightsOf(round));
    const knownUpToNs = (round.r + 1) * ROUND_NS;
    const known = this.#waiting.filter(({ toNs }) => toNs < knownUpToNs);
    this.#waiting = this.#waiting.filter(({ toNs }) => toNs >= knownUpToNs);
    return [...deniedLoad(round), ...known.flatMap((verdict) => this.#judge(verdict))];
  }

  /** After the last round: no more changes follow. */
  finish(): readonly Finding[] {
    const last = this.#waiting;
    this.#waiting = [];
    return last.flatMap((verdict) => this.#judge(verdict));
  }

  #change({ q, t0, t1 }: Operation & { readonly q: RecordedRights }): void {
    const states = this.#states.get(q.user) ?? [
      { rights: NOBODY, how: 'nothing', fromNs: Number.NEGATIVE_INFINITY, untilNs: Number.POSITIVE_INFINITY },
    ];
    const before = states.at(-1);
    // A change without an acknowledgement may still be made.
    if (before !== undefined) before.untilNs = t1 ?? Number.POSITIVE_INFINITY;
    states.push({ rights: q.after, how: q.how, fromNs: t0, untilNs: Number.POSITIVE_INFINITY });
    this.#states.set(q.user, states);
    if (t1 !== null) this.#figures.changes += 1;
  }

  #judge(verdict: Verdict): readonly Finding[] {
    const { user, fromNs, toNs, allowed } = verdict;
    const states = this.#states.get(user) ?? [];
    const possible = states.filter((state) => state.fromNs <= toNs && state.untilNs >= fromNs);
    const allow = possible.filter(({ rights }) => isAllowed(rights, verdict));
    if (allow.length > 0 && allow.length < possible.length) this.#figures.either += 1;
    else if (allowed === allow.length > 0) this.#figures[allowed ? 'letIn' : 'refused'] += 1;
    else return [this.#findingOf(verdict, possible)];
    return [];
  }

  #findingOf({ what, needs, fromNs, toNs, allowed }: Verdict, possible: readonly State[]): Finding {
    const times = `between ${ms(fromNs)} and ${ms(toNs)} ms`;
    const why = possible.map(({ how, fromNs: from }) => `${how} (asked for at ${ms(from)} ms)`).join(', ');
    const property = allowed ? 'visits: what is revoked is refused' : 'visits: nobody is refused who is allowed';
    return violation(property, `${what}, which needs ${needs}, was ${allowed ? 'let in' : 'refused'} ${times}: ${why}`);
  }
}

function isAllowed(rights: Rights, { password, needs }: Verdict): boolean {
  if (rights.password === null || (password !== null && password !== rights.password)) return false;
  return needs === 'exists' || rights[needs];
}

function isChange(operation: Operation): operation is Operation & { readonly q: RecordedRights } {
  return 'op' in operation.q && operation.q.op === 'change';
}

function isDenied({ how, code }: Operation): boolean {
  return how === 'refused' && code !== undefined && DENIALS.includes(code);
}

/** V1, V2, V3. */
function verdictsOf(operations: readonly Operation[]): readonly Verdict[] {
  return operations.flatMap((operation) => {
    const { how, t0, t1, a } = operation;
    if (isChange(operation) || t1 === null || (how !== 'done' && !isDenied(operation))) return [];
    const { user, password, needs, op, k } = operation.q as RecordedVisit;
    const { since = t0, answered = t1 } = (a ?? {}) as { readonly since?: number; readonly answered?: number };
    const what = `${op} ${k} of ${user}, ${password === null ? 'by certificate' : `password ${password}`}`;
    return [{ what, user, password, needs, allowed: how === 'done', fromNs: Math.max(t0, since), toNs: answered }];
  });
}

/** V4. */
function sightsOf({ operations, notes }: Round): readonly Verdict[] {
  const puts = new Map(
    operations.flatMap(({ w, q, t0 }) => (w === 'visits' && 'v' in q ? [[String(q.v), t0] as const] : [])),
  );
  return notes.flatMap(({ w, t, n }: Note) => {
    if (w !== 'visits') return [];
    const { sights, user, password } = n as RecordedSights;
    return sights.flatMap((v) => {
      const fromNs = puts.get(v);
      if (fromNs === undefined) return []; // The judge of writes reports it.
      const what = `an event of ${v} in a watch of ${user}`;
      return [{ what, user, password, needs: 'read', allowed: true, fromNs, toNs: t } as const];
    });
  });
}

/** V5. */
function deniedLoad({ operations }: Round): readonly Finding[] {
  return operations.flatMap(({ process, w, code, how }) => {
    if (w === 'visits' || how === 'done' || !DENIALS.some((denial) => code?.includes(denial))) return [];
    return [violation('visits: nobody is refused who is allowed', `a request of ${w} of ${process}: ${code}`)];
  });
}

function ms(ns: number): string {
  return Number.isFinite(ns) ? (ns / NS_PER_MS).toFixed(1) : 'the beginning';
}
