import { describe, expect, test } from 'vitest';
import { judgeBarriers } from './barriers.ts';
import { judgeElections } from './elections.ts';
import type { Note, Operation, Round } from './evidence.ts';
import { judgeListeners } from './listeners.ts';
import { judgeTerms } from './terms.ts';

const MS = 1e6;

/** What was asked, from so many ms to so many; null: there was no answer. */
function operation(w: Operation['w'], q: object, fromMs: number, toMs: number | null, a?: object): Operation {
  const how = toMs === null ? 'unknown' : 'done';
  return { process: 'c1', w, q, t0: fromMs * MS, t1: toMs === null ? null : toMs * MS, how, code: undefined, a };
}

const note = (w: Note['w'], t: number, n: object): Note => ({ process: 'c1', w, t: t * MS, n });
const round = (operations: readonly Operation[], notes: readonly Note[] = []): Round => ({
  ...{ r: 1, operations, notes, events: [] },
});

/** A lock that is acquired, and may be given back. */
function term(c: string, [version, fromMs, untilMs]: readonly [number, number, number], more: object = {}): Operation {
  const q = { c, k: 'terms/1/0', op: 'acquire', delayMs: 0, ...more };
  return operation('terms', q, fromMs - 5, fromMs, { version, until: untilMs * MS });
}
const ends = (c: string, op: string, fromMs: number, untilMs: number): Operation =>
  operation('terms', { c, k: 'terms/1/0', op, until: untilMs * MS }, fromMs, fromMs + 5);
const looked = (c: string, t: number, untilMs: number, more: object = {}): Note =>
  note('terms', t, { c, k: 'terms/1/0', looked: untilMs * MS, ...more });

describe('locks with terms of their own', () => {
  test.each<{ name: string; round: Round; finds: readonly string[] }>([
    {
      name: 'one after the other',
      round: round([term('a', [1, 10, 90]), ends('a', 'release', 50, 90), term('b', [2, 60, 99])]),
      finds: [],
    },
    {
      name: 'one after the time of another one',
      round: round([term('a', [1, 10, 90]), term('b', [2, 95, 99])]),
      finds: [],
    },
    {
      name: 'one before the time of another one',
      round: round([term('a', [1, 10, 90]), term('b', [2, 80, 99])]),
      finds: ['lock: one holder', 'lapse: kept'],
    },
    {
      name: 'one before the time of another one that was left to it',
      round: round([term('a', [1, 10, 90]), ends('a', 'orphan', 20, 90), term('b', [2, 80, 99])]),
      finds: ['lapse: kept'],
    },
    {
      name: 'one before the delay of another one has passed',
      round: round([term('a', [1, 10, 90], { delayMs: 50 }), term('b', [2, 120, 199])]),
      finds: ['lapse: kept'],
    },
    {
      name: 'other terms, after which the time is shorter',
      round: round([term('a', [1, 10, 90]), ends('a', 'change', 20, 0), term('b', [2, 60, 99])], [looked('a', 30, 50)]),
      finds: [],
    },
    {
      name: 'a limit that is not kept',
      round: round([term('a', [1, 10, 90])], [looked('a', 15, 90, { limit: 40 * MS }), looked('a', 60, 90)]),
      finds: ['lapse: bounded'],
    },
  ])('$name', ({ round, finds }) => {
    expect(judgeTerms(round).map(({ property }) => property)).toEqual(finds);
  });
});

describe('elections', () => {
  const of = (c: string, op: string, fromMs: number, more: object, a?: object): Operation =>
    operation('elections', { c, k: 'elect/1', op, ...more }, fromMs, fromMs + 5, a);
  const told = (t: number, version: number, leader: string, count: number): Note =>
    note('elections', t, { c: 'o', k: 'elect/1', told: { leader, count, version } });
  const led = [
    of('a', 'campaign', 10, {}, { version: 1, leads: true }),
    of('a', 'proclaim', 20, { count: 1 }, { version: 1, leads: true }),
    of('a', 'resign', 30, { leads: true }),
  ];
  const next = of('b', 'campaign', 35, {}, { version: 2, leads: true });
  const who = of('q', 'who', 40, {}, { told: { leader: 'b', count: 0, version: 2 } });
  const observed = [told(16, 1, 'a', 0), told(26, 1, 'a', 1), told(41, 2, 'b', 0)];

  test.each<{ name: string; round: Round; finds: readonly string[] }>([
    { name: 'one leader after the other', round: round([...led, next, who], observed), finds: [] },
    {
      name: 'two leaders at a time',
      round: round([...led, of('b', 'campaign', 20, {}, { version: 2, leads: true })]),
      finds: ['lock: one holder'],
    },
    {
      name: 'what is observed out of order',
      round: round([...led, next], [...observed, told(42, 1, 'a', 1)]),
      finds: ['election: observed in order'],
    },
    {
      name: 'what is told to who asks when it is over',
      round: round([...led, next, of('q', 'who', 50, {}, { told: { leader: 'a', count: 1, version: 1 } })]),
      finds: ['election: the present leader is told'],
    },
  ])('$name', ({ round, finds }) => {
    expect(judgeElections(round).map(({ property }) => property)).toEqual(finds);
  });
});

describe('barriers', () => {
  const of = (c: string, op: string, fromMs: number, toMs: number, more: object = {}, a?: object): Operation =>
    operation('barriers', { c, k: 'b', op, ...more }, fromMs, toMs, a);
  const held = [of('h', 'hold', 0, 5, {}, { until: 90 * MS }), of('h', 'lift', 50, 55, { until: 90 * MS })];
  const met = (c: string): readonly Operation[] => [
    of(c, 'enter', 10, 20, { parties: 2 }),
    of(c, 'leave', 30, 40, { inside: true }),
  ];

  test.each<{ name: string; round: Round; finds: readonly string[] }>([
    { name: 'who waits until it is lifted', round: round([...held, of('w', 'pass', 10, 60)]), finds: [] },
    {
      name: 'who passes while it is held',
      round: round([...held, of('w', 'pass', 10, 40)]),
      finds: ['barrier: nobody passes it'],
    },
    { name: 'two who meet', round: round([...met('a'), ...met('b')]), finds: [] },
    { name: 'one who meets nobody', round: round(met('a')), finds: ['barrier: only together'] },
    {
      name: 'one who leaves when another one is inside',
      round: round([...met('a'), of('b', 'enter', 10, 20, { parties: 2 }), of('b', 'leave', 60, 70, { inside: true })]),
      finds: ['barrier: all leave together'],
    },
  ])('$name', ({ round, finds }) => {
    expect(judgeBarriers(round).map(({ property }) => property)).toEqual(finds);
  });
});

describe('listeners', () => {
  const id = { namespace: 'default', name: '31' };
  const state = { type: 'state', lock: id, revision: 1 };
  const queued = (revision: number, token: string): object => ({
    ...{ type: 'queued', lock: id, revision },
    waiter: {
      owner: { session: { lease: '7', incarnation: 1 }, token },
      position: 1,
      sinceMs: 0,
      mode: 'exclusive',
      permits: 0,
    },
  });
  const heard = (c: string, ...events: readonly object[]): Note => note('listeners', 9, { c, k: 'l', heard: events });

  test('two who hear the same', () => {
    const events = [state, queued(2, 'a'), queued(3, 'b')];
    expect(judgeListeners(round([], [heard('x', ...events), heard('y', ...events)]))).toEqual([]);
  });

  test('one who hears less than another one', () => {
    const [all, less] = [heard('x', state, queued(2, 'a'), queued(3, 'b')), heard('y', state, queued(3, 'b'))];
    expect(judgeListeners(round([], [all, less]))).toMatchObject([
      { property: 'lock story: complete, and the same for all' },
    ]);
  });
});
