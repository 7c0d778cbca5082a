import { describe, expect, test } from 'vitest';
import { Afterwards } from './afterwards.ts';
import type { AuditedEvent, Note, Operation, Round } from './evidence.ts';
import { judgeRound } from './judge-round.ts';

const MS = 1e6;
const [X, L, T, K, S] = ['register/1/0', 'list/1/0', 'txn/1/0', 'lock/1/0', 'lease/1/k1'];

function operation(w: Operation['w'], q: object, fromMs: number, toMs: number | null, a?: object): Operation {
  const how = toMs === null ? 'unknown' : 'done';
  return { process: 'c1', w, q, t0: fromMs * MS, t1: toMs === null ? null : toMs * MS, how, code: undefined, a };
}

function event(revision: number, key: string, value: string | null, ms = 0): AuditedEvent {
  return { t: ms * MS, revision, key, value };
}

function note(w: Note['w'], n: object): Note {
  return { process: 'c1', w, t: 0, n };
}

const get = (c: string) => ({ c, k: X, op: 'get' });
const acquired = operation('locks', { c: 'o1', k: K, op: 'acquire' }, 100, 110, {
  ok: true,
  out: 20,
  until: 5_000 * MS,
});
const released = operation('locks', { c: 'o1', k: K, op: 'release', v: 20, until: 5_000 * MS }, 200, 210, { ok: true });
const acquiredNext = operation('locks', { c: 'o2', k: K, op: 'acquire' }, 105, 215, {
  ok: true,
  out: 21,
  until: 5_000 * MS,
});
const releasedNext = operation('locks', { c: 'o2', k: K, op: 'release', v: 21, until: 5_000 * MS }, 300, 310, {
  ok: true,
});

const [K2, FENCED] = ['lock/1/1', 'fence/1/1'];
const UNTIL = 5_000 * MS;

/** A holder of another lock, from so many ms on, who writes under it. */
function holder(c: string, out: number, fromMs: number): readonly Operation[] {
  return [
    operation('locks', { c, k: K2, op: 'acquire' }, fromMs, fromMs + 1, { ok: true, out, until: UNTIL }),
    operation('fences', { k: K2, v: out, late: false }, fromMs + 2, fromMs + 3, { revision: out + 2, until: UNTIL }),
    operation('locks', { c, k: K2, op: 'release', v: out, until: UNTIL }, fromMs + 4, fromMs + 5, { ok: true }),
  ];
}

const lateWrite: Operation = {
  ...operation('fences', { k: K2, v: 30, late: true }, 120, 121, { until: 0 }),
  ...{ how: 'refused', code: 'FENCED' },
};
const isFenced = ({ w, q }: Operation, v: number): boolean => w === 'fences' && 'v' in q && q.v === v;

/** Uses of a lock that readers share, and of permits, each from so many ms on. */
const kind = (c: string, op: string, fromMs: number, toMs: number | null, more: object, a?: object): Operation =>
  operation('kinds', { c, k: 'kinds/1/rw', op, ...more }, fromMs, toMs, a);
const reads = (c: string, version: number, fromMs: number, waitMs = 5): readonly Operation[] => [
  kind(
    c,
    'acquire',
    fromMs,
    fromMs + waitMs,
    { mode: 'shared', permits: 0 },
    { mode: 'shared', version, until: UNTIL },
  ),
  kind(c, 'release', fromMs + 90, fromMs + 95, { until: UNTIL }),
];
const upgraded = kind('k1', 'convert', 150, 210, {}, { mode: 'exclusive', version: 53, until: UNTIL });
const permits = (c: string, version: number, fromMs: number): Operation =>
  operation(
    'kinds',
    { c, k: 'kinds/1/sem', op: 'acquire', mode: 'permits', permits: 1 },
    ...([fromMs, fromMs + 5, { mode: 'permits', version, until: UNTIL }] as const),
  );
const KINDS: readonly Operation[] = [
  kind('k1', 'acquire', 100, 105, { mode: 'shared', permits: 0 }, { mode: 'shared', version: 51, until: UNTIL }),
  ...reads('k2', 52, 110),
  upgraded,
  kind('k1', 'release', 250, 255, { until: UNTIL }),
  ...reads('k3', 54, 205, 55),
  ...[permits('s1', 61, 100), permits('s2', 62, 110), permits('s3', 63, 120)],
];

const [C, B, BP] = ['counter/1/0', 'bank/1/a0', 'bank/1/'];
const add = (c: string, fromMs: number, toMs: number | null, a?: object, name?: string): Operation =>
  operation('counters', { op: 'add', c, k: C, by: 1, ...(name !== undefined && { name }) }, fromMs, toMs, a);
const sum = (value: number, repeated = false): object => ({ value, revision: 70 + value, repeated });
const counterRead = operation('counters', { op: 'end', c: 'reader', k: C, by: 1 }, 900, 910, {
  ...{ value: 3, records: [['n', 2]] },
});
const compared = operation(
  'mirrors',
  { op: 'compare', mirror: 'm1', prefix: BP, revision: 80, content: 'one' },
  ...([100, 110, { content: 'one' }] as const),
);
const reached = operation('mirrors', { op: 'reach', mirror: 'm1', prefix: BP, asked: 82 }, 200, 210, {
  ...{ revision: 82, has: true },
});
/** An STM that reads an account and changes another one: the account that is not changed is its second. */
const stm = (c: string, own: string, other: string, fromMs: number, reads: readonly (readonly string[])[]): Operation =>
  operation(
    'bank',
    {
      c,
      ops: [
        { k: own, op: 'get' },
        { k: other, op: 'get' },
        { k: own, op: 'append', v: `${c}=0` },
      ],
    },
    ...([fromMs, fromMs + 10, { ok: true, reads }] as const),
  );
const SDK: readonly Operation[] = [
  ...[add('i1', 0, 10, sum(1)), add('i2', 5, null), add('i3', 20, null, undefined, 'n')],
  ...[add('i4', 40, 50, sum(2, true), 'n'), add('i5', 60, 70, sum(3)), counterRead],
  ...[stm('s1', B, 'bank/1/a1', 0, [[], []]), stm('s2', 'bank/1/a1', B, 20, [[], ['s1=0']])],
  ...[compared, reached],
];

/** A round in which every kind of load did a little, and all went well. */
const HEALTHY: Round = {
  r: 1,
  operations: [
    operation('registers', { c: 'a', k: X, op: 'put', v: 'v1' }, 0, 10, { ok: true, revision: 1 }),
    operation('registers', { c: 'a', k: X, op: 'cas', x: 'v1', v: 'v2' }, 20, 30, { ok: true, revision: 2 }),
    operation('registers', { c: 'b', k: X, op: 'put', v: 'maybe' }, 31, null),
    operation('registers', { c: 'b', k: X, op: 'cas', x: 'other', v: 'v3' }, 32, 33, { ok: false }),
    operation('registers', { c: 'b', k: X, op: 'del' }, 35, 40, { ok: true, revision: 3 }),
    operation('registers', { c: 'a', k: X, op: 'put', v: 'v4' }, 45, 50, { ok: true, revision: 4 }),
    operation('registers', get('reader'), 900, 910, { ok: true, out: 'v4', modRevision: 4 }),
    operation('lists', { c: 'a', k: L, op: 'append', v: 'l1' }, 50, 60, { ok: true, revision: 5 }),
    operation('lists', { c: 'a', k: L, op: 'append', v: 'l2' }, 70, 80, { ok: true, revision: 6 }),
    operation('lists', { c: 'reader', k: L, op: 'get' }, 900, 910, { ok: true, out: 'l2', modRevision: 6 }),
    operation('txns', { c: 'a', ops: [{ k: T, op: 'append', v: 't1' }] }, 50, 60, { ok: true, reads: [] }),
    operation(
      'txns',
      {
        c: 'a',
        ops: [
          { k: T, op: 'get' },
          { k: T, op: 'append', v: 't2' },
        ],
      },
      70,
      80,
      {
        ok: true,
        reads: [['t1']],
      },
    ),
    operation('txns', { c: 'reader', ops: [{ k: T, op: 'get' }] }, 900, 910, { ok: true, reads: [['t1', 't2']] }),
    ...[acquired, released, acquiredNext, releasedNext],
    ...[...holder('o5', 30, 100), ...holder('o6', 40, 110), lateWrite],
    ...KINDS,
    ...SDK,
    operation('leases', { op: 'grant', key: S }, 0, 10, { ttlMs: 1_000 }),
    operation('leases', { op: 'keepAlive', key: S }, 500, 510, {}),
    operation('watches', { watch: 'w1', from: 1, prefix: 'register/1/' }, 0, 500, { upTo: 6 }),
  ],
  notes: [
    note('locks', { accepted: { lock: K, version: 20, value: 1 } }),
    note('locks', { accepted: { lock: K, version: 21, value: 2 } }),
    note('watches', {
      watch: 'w1',
      events: [
        [1, X, 'v1'],
        [2, X, 'v2'],
        [3, X, null],
        [4, X, 'v4'],
      ],
    }),
  ],
  events: [
    event(1, X, 'v1'),
    event(2, X, 'v2'),
    event(3, X, null),
    event(4, X, 'v4'),
    event(5, L, 'l1'),
    event(6, L, 'l2'),
    event(7, T, 't1'),
    event(8, T, 't1 t2'),
    event(9, S, 'x', 20),
    event(10, S, null, 1_600),
    event(32, FENCED, '30'),
    event(42, FENCED, '40'),
  ],
};

/** The round with some of its parts replaced; undefined takes one away. */
function changed<K extends 'operations' | 'notes' | 'events'>(
  part: K,
  change: (each: Round[K][number], i: number) => Round[K][number] | undefined,
): Round {
  const parts = HEALTHY[part].flatMap((each, i) => change(each, i) ?? []);
  return { ...HEALTHY, [part]: parts };
}

function withOperations(...more: readonly Operation[]): Round {
  return { ...HEALTHY, operations: [...HEALTHY.operations, ...more] };
}

function withEvents(...more: readonly AuditedEvent[]): Round {
  return { ...HEALTHY, events: [...HEALTHY.events, ...more] };
}

/** The answer to an operation, put in the place of the true one. */
function answering(index: (each: Operation) => boolean, a: object): Round {
  return changed('operations', (each) => (index(each) ? { ...each, a: { ...each.a, ...a } } : each));
}

const judged = (round: Round) => judgeRound(round, { compacted: 0 }).map(({ property }) => property);

test('a round in which all went well is passed', () => {
  expect(judgeRound(HEALTHY, { compacted: 0 })).toEqual([]);
});

test('what has an unknown outcome may have happened', () => {
  const round = withEvents(event(11, X, 'maybe'));
  const seen = { ...round, operations: round.operations.filter(({ w }) => w !== 'watches'), notes: [] };
  expect(judgeRound(seen, { compacted: 0 })).toEqual([]);
});

/** Many that gave up while others used the lock; one of them held it, unseen, when somebody else was told "busy". */
const GIVEN_UP: readonly Operation[] = [
  ...Array.from({ length: 40 }, (_, i): Operation => {
    const asked = operation('locks', { c: `late${i}`, k: K, op: 'acquire' }, 100 + 4 * i, 150 + 4 * i);
    return { ...asked, t1: (150 + 4 * i) * MS, how: 'refused', code: 'LOCK_TIMEOUT' };
  }),
  operation('locks', { c: 'try', k: K, op: 'acquire' }, 320, 330, { ok: false }),
];

test('askers that gave up may have held the lock, one for each time that somebody was refused for no other reason', () => {
  expect(judgeRound(withOperations(...GIVEN_UP), { compacted: 0 })).toEqual([]);
});

const PLANTED: readonly { readonly name: string; readonly round: Round; readonly finds: string }[] = [
  {
    name: 'two increments with one sum',
    round: withOperations(add('i6', 65, 75, { ...sum(3), revision: 79 })),
    finds: 'counter: no lost update',
  },
  {
    name: 'an increment that was repeated, and counted twice',
    round: withOperations(add('i6', 80, 90, sum(4), 'n')),
    finds: 'counter: a name counts once',
  },
  {
    name: 'a sum that nobody can have made',
    round: answering((each) => each === counterRead, { value: 5 }),
    finds: 'counter: nothing is made up',
  },
  {
    name: 'a sum between the steps',
    round: answering((each) => each === counterRead, { value: 2.5 }),
    finds: 'counter: nothing is made up',
  },
  {
    name: 'an increment whose record is gone',
    round: answering((each) => each === counterRead, { records: [] }),
    finds: 'counter: nothing is lost',
  },
  {
    name: 'two STMs that did not see each other',
    round: withOperations(
      stm('s3', B, 'bank/1/a1', 40, [['s1=0'], ['s2=0']]),
      stm('s4', 'bank/1/a1', B, 40, [['s2=0'], ['s1=0']]),
    ),
    finds: 'STMs',
  },
  {
    name: 'a run that saw another sum of all accounts',
    round: answering(({ q }) => 'c' in q && q.c === 's2', { wrong: '5 accounts have 499 together' }),
    finds: 'the sum of all accounts',
  },
  {
    name: 'a copy that differs from a read of its revision',
    round: answering((each) => each === compared, { content: 'two' }),
    finds: 'mirror: as stored',
  },
  {
    name: 'a copy that has reached a write, and lacks it',
    round: answering((each) => each === reached, { has: false }),
    finds: 'mirror: as stored',
  },
  {
    name: 'a copy that never reaches a write',
    round: answering((each) => each === reached, { revision: 81, has: false }),
    finds: 'mirror: reached',
  },
  {
    name: 'a copy whose revision goes back',
    round: changed('operations', (each) =>
      each === compared ? { ...each, t0: 300 * MS, t1: 310 * MS, q: { ...each.q, revision: 70 } } : each,
    ),
    finds: 'mirror: revisions grow',
  },
  {
    name: 'a copy that ended',
    round: { ...HEALTHY, notes: [...HEALTHY.notes, note('mirrors', { mirror: 'm1', ended: 'closed' })] },
    finds: 'mirror: goes on',
  },
  {
    name: 'an acknowledged write that is not among the events',
    round: changed('events', (each) => (each.value === 'v2' ? undefined : each)),
    finds: 'writes: nothing is lost',
  },
  {
    name: 'a write that was applied twice',
    round: withEvents(event(11, L, 'l1')),
    finds: 'writes: nothing else happened',
  },
  {
    name: 'a write that nobody asked for',
    round: withEvents(event(11, L, 'l9')),
    finds: 'writes: nothing else happened',
  },
  {
    name: 'a compare that failed, and wrote',
    round: withEvents(event(11, X, 'v3')),
    finds: 'writes: nothing else happened',
  },
  { name: 'a delete that nobody asked for', round: withEvents(event(11, X, null)), finds: 'writes: deletes' },
  {
    name: 'an acknowledged delete that is not among the events',
    round: changed('events', (each) => (each.key === X && each.value === null ? undefined : each)),
    finds: 'writes: deletes',
  },
  {
    name: 'a revision that is smaller than one told before',
    round: changed('operations', (each) =>
      'v' in each.q && each.q.v === 'l2' ? { ...each, a: { ok: true, revision: 1 } } : each,
    ),
    finds: 'writes: revisions grow in real time',
  },
  {
    name: 'a stale read of a register',
    round: withOperations(operation('registers', get('c'), 60, 70, { ok: true, out: 'v1' })),
    finds: 'registers',
  },
  {
    name: 'a read of a list that misses an element',
    round: answering(({ w, q }) => w === 'lists' && 'c' in q && q.c === 'reader', { modRevision: 5 }),
    finds: 'lists',
  },
  {
    name: 'a list in which an element is twice',
    round: changed('events', (each) => (each.value === 'l2' ? { ...each, value: 'l1' } : each)),
    finds: 'lists: applied once',
  },
  {
    name: 'a transaction that read half of what was there',
    round: answering(({ w, q }) => w === 'txns' && 'c' in q && q.c === 'reader', { reads: [['t2']] }),
    finds: 'transactions',
  },
  {
    name: 'a lock that was granted while another held it, as the cluster tells it',
    round: changed('operations', (each) =>
      each === acquiredNext ? { ...each, t1: 150 * MS } : each === released ? { ...each, t0: 200 * MS } : each,
    ),
    finds: 'locks',
  },
  {
    name: 'a lock that was granted while its last holder, who vanished, could still rely on it',
    round: changed('operations', (each) => (each === released ? undefined : each)),
    finds: 'lock: one holder',
  },
  {
    name: 'a lock that was granted twice beside many that gave up',
    round: withOperations(
      ...GIVEN_UP,
      operation('locks', { c: 'o3', k: K, op: 'acquire' }, 220, 230, { ok: true, out: 22, until: 240 * MS }),
    ),
    finds: 'locks',
  },
  {
    name: 'a refusal while nobody held the lock, before anybody gave up',
    round: withOperations(
      ...GIVEN_UP.map((each) => ({ ...each, t0: each.t0 + 400 * MS, t1: (each.t1 ?? 0) + 400 * MS })),
      operation('locks', { c: 'early', k: K, op: 'acquire' }, 320, 330, { ok: false }),
    ),
    finds: 'locks',
  },
  {
    name: 'a fencing version that does not grow',
    round: answering((each) => each === acquiredNext || each === releasedNext, { out: 20 }),
    finds: 'lock: versions grow',
  },
  {
    name: 'two holders that each added one to the same number',
    round: changed('notes', (each, i) =>
      i === 1 ? note('locks', { accepted: { lock: K, version: 21, value: 1 } }) : each,
    ),
    finds: 'locks: no lost update',
  },
  {
    name: 'a write under an old fencing version that was accepted',
    round: changed('notes', (each, i) =>
      i === 1 ? note('locks', { accepted: { lock: K, version: 19, value: 2 } }) : each,
    ),
    finds: 'locks: fencing',
  },
  {
    name: 'a reader beside a writer',
    round: changed('operations', (each) => (each.t1 === 260 * MS ? { ...each, t1: 230 * MS } : each)),
    finds: 'lock: one holder',
  },
  {
    name: 'an upgrade beside another reader',
    round: changed('operations', (each) => (each === upgraded ? { ...each, t1: 190 * MS } : each)),
    finds: 'lock: one holder',
  },
  {
    name: 'an upgrade with the version of a reader',
    round: answering((each) => each === upgraded, { version: 52 }),
    finds: 'lock: versions grow',
  },
  {
    name: 'more permits than there are',
    round: withOperations(permits('s4', 64, 130)),
    finds: 'lock: permits',
  },
  {
    name: 'a write under a lock, behind the next grant',
    round: changed('events', (each) => (each.value === '30' ? { ...each, revision: 41 } : each)),
    finds: 'fences: before the next grant',
  },
  {
    name: 'a write under an older grant than the one before',
    round: withEvents(event(43, FENCED, '30')),
    finds: 'fences: versions grow',
  },
  {
    name: 'a write under a lock that was acknowledged, and is not there',
    round: changed('events', (each) => (each.value === '40' ? undefined : each)),
    finds: 'fences: told as it is',
  },
  {
    name: 'a write under a lock that was refused, and is there',
    round: withEvents(event(33, FENCED, '30')),
    finds: 'fences: told as it is',
  },
  {
    name: 'a holder whose write was refused as stale',
    round: changed('operations', (each) => (isFenced(each, 40) ? { ...each, how: 'refused', code: 'FENCED' } : each)),
    finds: 'fences: a holder writes',
  },
  {
    name: 'a lease that ended before its time',
    round: changed('events', (each) => (each.key === S && each.value === null ? { ...each, t: 1_000 * MS } : each)),
    finds: 'lease: not early',
  },
  {
    name: 'a lease that was renewed after its end',
    round: withOperations(operation('leases', { op: 'keepAlive', key: S }, 1_700, 1_710, {})),
    finds: 'lease: over is over',
  },
  {
    name: 'a key that outlived its lease',
    round: { ...HEALTHY, notes: [...HEALTHY.notes, note('leases', { leases: 0, keys: [S] })] },
    finds: 'lease: no orphan',
  },
  {
    name: 'a watch that missed a change',
    round: changed('notes', (each) =>
      each.w === 'watches'
        ? note('watches', {
            watch: 'w1',
            events: [
              [1, X, 'v1'],
              [3, X, null],
              [4, X, 'v4'],
            ],
          })
        : each,
    ),
    finds: 'watch: complete',
  },
  {
    name: 'a watch that was told "compacted" though nothing was',
    round: answering(({ w }) => w === 'watches', { upTo: undefined, compacted: true }),
    finds: 'watch: compacted',
  },
];

describe('a fault put into what was recorded is found:', () => {
  test.each(PLANTED)('$name', ({ round, finds }) => {
    expect(judged(round)).toContain(finds);
  });
});

describe('after a round was judged', () => {
  const remembered = () => {
    const afterwards = new Afterwards();
    afterwards.remember(HEALTHY);
    return afterwards;
  };
  const left = [
    [X, 'v4'],
    [L, 'l2'],
    [T, 't1 t2'],
  ] as const;

  test('its keys hold at the end what they held then', () => {
    expect(remembered().left(1, left)).toEqual([]);
  });

  test.each([
    { name: 'a key that is gone', pairs: left.slice(1) },
    { name: 'an older value', pairs: [[X, 'v2'], ...left.slice(1)] as const },
    { name: 'a key that came from nowhere', pairs: [...left, ['register/1/5', 'v5']] as const },
  ])('$name is found', ({ pairs }) => {
    expect(remembered().left(1, pairs)).toMatchObject([{ property: 'writes: nothing is lost' }]);
  });

  test('only writes of unknown outcome may still happen, and then they are what is left', () => {
    const afterwards = remembered();
    expect(afterwards.late(1, [event(20, X, 'maybe')])).toEqual([]);
    expect(afterwards.left(1, left)).toMatchObject([{ property: 'writes: nothing is lost' }]);
    expect(afterwards.left(1, [[X, 'maybe'], ...left.slice(1)])).toEqual([]);
    expect(afterwards.late(1, [event(21, X, 'v1')])).toMatchObject([{ property: 'writes: nothing else happened' }]);
  });
});
