import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { CounterCheck, type CounterEvent, runCheck } from '../index.ts';

const adds = (call: string, name?: string): CounterEvent => ({ type: 'adds', counter: 'k', call, name });
const added = (call: string, count: number, repeated = false): CounterEvent => ({
  ...{ type: 'added', call, count, revision: 10 * count, repeated },
});
const refused = (call: string): CounterEvent => ({ type: 'refused', call });
const reads = (call: string): CounterEvent => ({ type: 'reads', counter: 'k', call });
const read = (call: string, count: number): CounterEvent => ({ type: 'read', call, count });
const records = (...counts: readonly (readonly [string, number])[]): CounterEvent => ({
  ...{ type: 'records', counter: 'k', counts },
});
const judged = (events: readonly CounterEvent[]): readonly string[] =>
  runCheck(new CounterCheck(), events).map(({ property }) => property);

test.each<{ readonly name: string; readonly events: readonly CounterEvent[]; readonly expect: readonly string[] }>([
  {
    name: 'calls at the same time count in any order, and reads show any count between',
    events: [adds('a'), adds('b'), reads('r'), added('a', 2), read('r', 0), added('b', 1), reads('s'), read('s', 2)],
    expect: [],
  },
  {
    name: 'a call without an answer may have been counted, and late',
    events: [adds('a'), adds('b'), added('b', 1), adds('c'), added('c', 3)],
    expect: [],
  },
  {
    name: 'a repeated name is answered with its count',
    events: [adds('a', 'n'), adds('b', 'n'), adds('c'), added('c', 2), added('b', 1, true), records(['n', 1])],
    expect: [],
  },
  {
    name: 'a name that was made late, and not answered, is among the records',
    events: [adds('a', 'n'), adds('b', 'm'), reads('r'), read('r', 1), records(['n', 1])],
    expect: [],
  },
  {
    name: 'two with one count',
    events: [adds('a'), adds('b'), added('a', 1), added('b', 1)],
    expect: ['counter: no lost update'],
  },
  {
    name: 'a count that had been passed',
    events: [adds('x'), adds('a'), added('a', 2), adds('b'), added('b', 1)],
    expect: ['counter: in real time'],
  },
  {
    name: 'a stale read',
    events: [adds('a'), added('a', 1), reads('r'), read('r', 0)],
    expect: ['counter: in real time'],
  },
  {
    name: 'a revision that does not grow with the count',
    events: [adds('a'), adds('b'), added('a', 1), { type: 'added', call: 'b', count: 2, revision: 9, repeated: false }],
    expect: ['counter: revisions grow'],
  },
  {
    name: 'a name that counted twice',
    events: [adds('a', 'n'), adds('b', 'n'), added('a', 1), added('b', 2)],
    expect: ['counter: a name counts once', 'counter: nothing is made up'],
  },
  {
    name: 'two calls that both say that they made it',
    events: [adds('a', 'n'), adds('b', 'n'), added('a', 1), added('b', 1)],
    expect: ['counter: a name counts once'],
  },
  {
    name: 'a call that repeats what nobody has done',
    events: [adds('a', 'n'), refused('a'), adds('b', 'n'), added('b', 1, true)],
    expect: ['counter: nothing is made up'],
  },
  {
    name: 'a count that a refused call must have made',
    events: [adds('a'), refused('a'), adds('b'), added('b', 2)],
    expect: ['counter: nothing is made up'],
  },
  {
    name: 'a count that was reached before the call that is not answered had begun',
    events: [adds('b'), added('b', 2), adds('a')],
    expect: ['counter: nothing is made up'],
  },
  {
    name: 'a read above all that was asked for',
    events: [adds('a'), added('a', 1), reads('r'), read('r', 2)],
    expect: ['counter: nothing is made up'],
  },
  {
    name: 'a record of another count',
    events: [adds('a', 'n'), added('a', 1), adds('b', 'm'), records(['n', 2], ['m', 1])],
    expect: ['counter: a name counts once', 'counter: no lost update'],
  },
  {
    name: 'an answered name without a record',
    events: [adds('a', 'n'), added('a', 1), records()],
    expect: ['counter: nothing is lost'],
  },
  {
    name: 'a count that only a name without a record can have made',
    events: [adds('a', 'n'), reads('r'), read('r', 1), records()],
    expect: ['counter: nothing is made up'],
  },
  {
    name: 'a record that nobody asked for',
    events: [records(['n', 1])],
    expect: ['counter: nothing is made up'],
  },
])('$name', ({ events, expect: found }) => {
  expect(judged(events)).toEqual(found);
});

/** Calls on a true counter: each takes effect between its two events, or is not answered. */
function trueRun(seed: number): readonly CounterEvent[] {
  const random = new SeededRandom(seed);
  const events: CounterEvent[] = [];
  const open: { readonly call: string; count: number | undefined }[] = [];
  let value = 0;
  for (let i = 0; i < 60; i++) {
    const kind = random.int(6);
    const one = open[random.int(Math.max(1, open.length))];
    if (kind < 2) {
      open.push({ call: `c${i}`, count: undefined });
      events.push(adds(`c${i}`));
    } else if (kind === 2) {
      events.push(reads(`r${i}`), read(`r${i}`, value));
    } else if (one !== undefined && kind < 5) {
      one.count ??= ++value;
    } else if (one !== undefined) {
      if (one.count === undefined) events.push(refused(one.call));
      else if (random.int(4) > 0) events.push(added(one.call, one.count));
      open.splice(open.indexOf(one), 1);
    }
  }
  return [...events, reads('end'), read('end', value)];
}

describe('runs of a true counter', () => {
  const seeds = Array.from({ length: 200 }, (_, i) => i + 1);
  test('hold every promise', () => {
    for (const seed of seeds) expect(judged(trueRun(seed)), `seed ${seed}`).toEqual([]);
  });

  test('in which a lost update, or one increment more, is put are found out', () => {
    for (const seed of seeds) {
      const events = trueRun(seed);
      const answers = events.filter((event) => event.type === 'added');
      const last = answers.at(-1);
      if (last === undefined) continue;
      const twice = events.map((event) => (event === last ? { ...last, count: answers[0]?.count ?? 0 } : event));
      if (answers.length > 1) expect(judged(twice), `seed ${seed}`).not.toEqual([]);
      const asked = events.filter(({ type }) => type === 'adds').length;
      expect(judged([...events, reads('z'), read('z', asked + 1)]), `seed ${seed}`).not.toEqual([]);
    }
  });
});
