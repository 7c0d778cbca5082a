import { describe, expect, test } from 'vitest';
import { RevisionMap } from './revision-map.ts';

type Call = readonly [kind: 'exact' | 'moment', left: number, right: number];

function told(calls: readonly Call[]): readonly (string | undefined)[] {
  const map = new RevisionMap();
  return calls.map(([kind, left, right]) => map[kind](left, right));
}

const GOOD: readonly { readonly name: string; readonly calls: readonly Call[] }[] = [
  {
    name: 'numbers may be left out',
    calls: [
      ['exact', 2, 5],
      ['exact', 3, 90],
      ['exact', 2, 5],
    ],
  },
  {
    name: 'changes may be met in any order',
    calls: [
      ['exact', 7, 70],
      ['exact', 2, 20],
      ['exact', 5, 50],
    ],
  },
  {
    name: 'one moment has several names',
    calls: [
      ['exact', 2, 5],
      ['moment', 2, 5],
      ['moment', 2, 9],
      ['exact', 3, 10],
    ],
  },
  {
    name: 'a change may be met after the moments around it',
    calls: [
      ['moment', 2, 5],
      ['moment', 3, 9],
      ['exact', 3, 7],
    ],
  },
];

const BAD: readonly { readonly name: string; readonly calls: readonly Call[] }[] = [
  {
    name: 'one revision with two partners',
    calls: [
      ['exact', 2, 5],
      ['exact', 2, 6],
    ],
  },
  {
    name: 'two revisions with one partner',
    calls: [
      ['exact', 2, 5],
      ['exact', 3, 5],
    ],
  },
  {
    name: 'two changes in another order',
    calls: [
      ['exact', 2, 5],
      ['exact', 3, 4],
    ],
  },
  {
    name: 'a header below a change that it shows',
    calls: [
      ['exact', 2, 5],
      ['moment', 2, 4],
    ],
  },
  {
    name: 'a header at a change that comes later',
    calls: [
      ['exact', 3, 5],
      ['moment', 2, 5],
    ],
  },
  {
    name: 'a later change at a revision that a header had',
    calls: [
      ['moment', 2, 9],
      ['exact', 3, 9],
    ],
  },
  {
    name: 'a change above a header that covers it',
    calls: [
      ['moment', 3, 9],
      ['exact', 3, 10],
    ],
  },
  {
    name: 'moments in another order',
    calls: [
      ['moment', 2, 9],
      ['moment', 3, 9],
    ],
  },
  {
    name: 'moments in another order, met from the later one',
    calls: [
      ['moment', 3, 9],
      ['moment', 2, 9],
    ],
  },
  { name: 'a revision on one side only', calls: [['moment', 3, 0]] },
];

describe('revisions of two servers correspond', () => {
  test.each(GOOD)('$name', ({ calls }) => {
    expect(told(calls)).toEqual(calls.map(() => undefined));
  });

  test.each(BAD)('refused: $name', ({ calls }) => {
    const all = told(calls);
    expect(all.slice(0, -1)).toEqual(calls.slice(1).map(() => undefined));
    expect(all.at(-1)).toBeTypeOf('string');
  });

  test('a spread change has a span of revisions for itself', () => {
    const map = new RevisionMap();
    expect(map.exact(2, 10)).toBeUndefined();
    expect(map.spread(3, { low: 11, high: 15 })).toBeUndefined();
    expect(map.exact(3, 12)).toBeUndefined();
    expect(map.exact(4, 15)).toBeTypeOf('string');
    expect(map.exact(3, 16)).toBeTypeOf('string');
    expect(map.moment(3, 14)).toBeTypeOf('string');
    expect(map.exact(4, 16)).toBeUndefined();
    expect(map.changeAt(15)).toEqual({ left: 3, low: 11, high: 15 });
    expect(map.changeAt(14)?.left).toBe(2);
  });
});
