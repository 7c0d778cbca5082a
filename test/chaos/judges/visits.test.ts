import { describe, expect, test } from 'vitest';
import type { Right, Rights } from '../users/rights.ts';
import type { AuditedEvent, Note, Operation, Round } from './evidence.ts';
import { VisitsJudge } from './visits.ts';
import { judgeWrites } from './writes.ts';

const MS = 1e6;
const USER = 'visitor-1';
const KEY = 'visited/0/1';

const ALL: Rights = { password: 1, read: true, write: true, lock: true };
const NONE: Rights = { password: 1, read: false, write: false, lock: false };
const GONE: Rights = { ...NONE, password: null };

/** `toMs` null: not acknowledged. */
function change(how: string, after: Rights, fromMs: number, toMs: number | null): Operation {
  return operation({ op: 'change', user: USER, how, after }, fromMs, toMs, toMs === null ? 'unknown' : 'done');
}

function operation(q: object, fromMs: number, toMs: number | null, how: Operation['how'], code?: string): Operation {
  return {
    process: 'c1',
    w: 'visits',
    q,
    t0: fromMs * MS,
    t1: toMs === null ? null : toMs * MS,
    how,
    code,
    a: undefined,
  };
}

interface Asked {
  readonly needs?: Right;
  /** Null: a certificate. */
  readonly password?: number | null;
  readonly op?: string;
  readonly v?: string;
}

function visit(fromMs: number, toMs: number, code?: string, asked: Asked = {}): Operation {
  const { needs = 'write', password = 1, op = 'put', v = 'v1' } = asked;
  const q = { c: 'c1.visitor', k: KEY, op, user: USER, password, needs, ...(op === 'put' && { v }) };
  return { ...operation(q, fromMs, toMs, code === undefined ? 'done' : 'refused', code), a: { ok: true, revision: 5 } };
}

function sight(ms: number): Note {
  return { process: 'c1', w: 'visits', t: ms * MS, n: { sights: ['v1'], user: USER, password: 1 } };
}

function roundOf(operations: readonly Operation[], notes: readonly Note[] = [], r = 0): Round {
  return { r, operations, notes, events: [] };
}

function judged(...rounds: readonly Round[]): readonly string[] {
  const judge = new VisitsJudge();
  return [...rounds.flatMap((round) => judge.take(round)), ...judge.finish()].map(({ property }) => property);
}

const BEGIN = change('begin', ALL, 0, 10);
const TAKEN = change('role taken', NONE, 100, 150);
const LET_IN = ['visits: what is revoked is refused'];
const REFUSED = ['visits: nobody is refused who is allowed'];
const DENIED = 'PERMISSION_DENIED';

interface Row {
  readonly name: string;
  readonly given: readonly Operation[];
  readonly notes?: readonly Note[];
}

describe('a judge of visits accepts', () => {
  test.each<Row>([
    { name: 'what is allowed', given: [BEGIN, visit(20, 30)] },
    { name: 'a request that began before a revocation was acknowledged', given: [BEGIN, TAKEN, visit(149, 300)] },
    {
      name: 'a refusal from the time on at which a revocation was asked for',
      given: [BEGIN, TAKEN, visit(90, 101, DENIED)],
    },
    {
      name: 'either answer while a change is not acknowledged',
      given: [BEGIN, change('role taken', NONE, 100, null), visit(500, 510), visit(500, 510, DENIED)],
    },
    {
      name: 'a refusal of a log-in with an earlier password',
      given: [
        BEGIN,
        change('password changed', { ...ALL, password: 2 }, 100, 150),
        visit(200, 210, 'UNAUTHENTICATED'),
        visit(200, 210, undefined, { password: 2 }),
      ],
    },
    {
      name: 'a certificate, whatever the password is',
      given: [
        BEGIN,
        change('password changed', { ...ALL, password: 2 }, 100, 150),
        visit(200, 210, undefined, { password: null }),
      ],
    },
    {
      name: 'other failures at any time',
      given: [BEGIN, TAKEN, visit(20, 30, 'UNAVAILABLE'), visit(200, 210, 'UNAVAILABLE')],
    },
    {
      name: 'a read of a user who may no longer write',
      given: [
        BEGIN,
        change('access to keys taken', { ...ALL, write: false }, 100, 150),
        visit(200, 210, undefined, { needs: 'read', op: 'get' }),
      ],
    },
    {
      name: 'an event of a put from before the revocation',
      given: [BEGIN, TAKEN, visit(140, 145)],
      notes: [sight(300)],
    },
  ])('$name', ({ given, notes }) => {
    expect(judged(roundOf(given, notes))).toEqual([]);
  });

  test('a request that a change of the next round explains', () => {
    const given = change('role given', ALL, 10_050, 10_080);
    expect(judged(roundOf([BEGIN, TAKEN, visit(9_900, 10_060)]), roundOf([given], [], 1))).toEqual([]);
  });
});

describe('a judge of visits finds', () => {
  test.each<Row & { readonly found: readonly string[] }>([
    {
      name: 'V1: a request that began after an acknowledged revocation',
      given: [BEGIN, TAKEN, visit(151, 160)],
      found: LET_IN,
    },
    { name: 'V1: a request before there is such a user', given: [BEGIN, visit(-20, -10)], found: LET_IN },
    {
      name: 'V1: an earlier password',
      given: [BEGIN, change('password changed', { ...ALL, password: 2 }, 100, 150), visit(200, 210)],
      found: LET_IN,
    },
    {
      name: 'V1: a log-in of a deleted user',
      given: [
        BEGIN,
        change('user taken', GONE, 100, 150),
        visit(200, 210, undefined, { op: 'logIn', needs: 'exists' }),
      ],
      found: LET_IN,
    },
    {
      name: 'V1: a certificate of a deleted user',
      given: [BEGIN, change('user taken', GONE, 100, 150), visit(200, 210, undefined, { password: null })],
      found: LET_IN,
    },
    {
      name: 'V1: a write of a user who may only read',
      given: [BEGIN, change('access to keys taken', { ...ALL, write: false }, 100, 150), visit(200, 210)],
      found: LET_IN,
    },
    { name: 'V2: a refusal of what is allowed', given: [BEGIN, visit(20, 30, DENIED)], found: REFUSED },
    {
      name: 'V2: a refusal that begins after a grant was acknowledged',
      given: [BEGIN, TAKEN, change('role given', ALL, 200, 250), visit(251, 260, DENIED)],
      found: REFUSED,
    },
    {
      name: 'V2: a refusal that ends before a revocation was asked for',
      given: [BEGIN, TAKEN, visit(90, 99, 'UNAUTHENTICATED')],
      found: REFUSED,
    },
    {
      name: 'V3: a lock that was released after the revocation of its waiter',
      given: [
        BEGIN,
        TAKEN,
        { ...visit(90, 300, undefined, { op: 'wait', needs: 'lock' }), a: { ok: true, since: 200 * MS } },
      ],
      found: LET_IN,
    },
    {
      name: 'V4: an event of a put that began after the revocation',
      given: [BEGIN, TAKEN, visit(160, 170, 'UNAVAILABLE')],
      notes: [sight(180)],
      found: LET_IN,
    },
    {
      name: 'V5: a refusal of other users',
      given: [{ ...operation({ op: 'get' }, 1, 2, 'refused', `x, ${DENIED}`), w: 'lists' }],
      found: REFUSED,
    },
  ])('$name', ({ given, notes, found }) => {
    expect(judged(roundOf(given, notes))).toEqual(found);
  });
});

describe('the judge of writes finds, among the puts of visitors', () => {
  const event: AuditedEvent = { t: 30 * MS, revision: 5, key: KEY, value: 'v1' };

  test.each([
    { name: 'an acknowledged put that is lost', given: visit(20, 30), events: [], found: 'writes: nothing is lost' },
    {
      name: 'a put that was refused and is there',
      given: visit(20, 30, DENIED),
      events: [event],
      found: 'writes: nothing else happened',
    },
    {
      name: 'a put that nobody asked for',
      given: visit(20, 30, DENIED),
      events: [{ ...event, value: 'v2' }],
      found: 'writes: nothing else happened',
    },
  ])('$name', ({ given, events, found }) => {
    const findings = judgeWrites({ ...roundOf([given]), events });
    expect(findings.map(({ property }) => property)).toEqual([found]);
  });

  test('nothing where a put of unknown outcome happened', () => {
    const unknown: Operation = { ...visit(20, 30), how: 'unknown', t1: null, a: undefined };
    expect(judgeWrites({ ...roundOf([unknown]), events: [event] })).toEqual([]);
  });
});
