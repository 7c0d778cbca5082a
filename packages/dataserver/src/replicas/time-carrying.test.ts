import { expect, test } from 'vitest';
import { TimeCarriers, type TimedRange } from './time-carrying.ts';

const CARRY_MS = 30_000;

interface Given {
  readonly name: string;
  readonly nodes: readonly number[];
  /** How long ago its last entry was. */
  readonly idleMs: number;
  readonly outcomes?: number;
}

function timed({ name, nodes, idleMs, outcomes = 0 }: Given): TimedRange & { readonly name: string } {
  const replicas = nodes.map((nodeId, i) => ({ nodeId, replicaId: 10 + i, type: 'voter' as const }));
  const timeMs = 1_000_000;
  return {
    name,
    timeMs,
    state: { descriptor: { replicas }, rangeTimeMs: timeMs - idleMs, outcomes: { count: outcomes } },
  };
}

const rows: readonly { readonly name: string; readonly given: readonly Given[]; readonly expect: readonly string[] }[] =
  [
    {
      name: 'of the idle ranges on the same nodes, one writes its time (TC1)',
      given: [
        { name: 'a', nodes: [1, 2, 3], idleMs: 50_000 },
        { name: 'b', nodes: [3, 1, 2], idleMs: 40_000 },
        { name: 'c', nodes: [1, 2, 3], idleMs: 60_000 },
      ],
      expect: ['b'],
    },
    {
      name: 'none does while another range on these nodes is written to',
      given: [
        { name: 'a', nodes: [1, 2, 3], idleMs: 50_000 },
        { name: 'b', nodes: [1, 2, 3], idleMs: 30_000 },
      ],
      expect: [],
    },
    {
      name: 'ranges on other nodes do not count',
      given: [
        { name: 'a', nodes: [1, 2, 3], idleMs: 50_000 },
        { name: 'b', nodes: [1, 2, 4], idleMs: 1_000 },
      ],
      expect: ['a'],
    },
    {
      name: 'a range with outcomes writes its own time (TC3)',
      given: [
        { name: 'a', nodes: [1, 2, 3], idleMs: 50_000, outcomes: 2 },
        { name: 'b', nodes: [1, 2, 3], idleMs: 1_000 },
        { name: 'c', nodes: [1, 2, 3], idleMs: 20_000, outcomes: 1 },
      ],
      expect: ['a'],
    },
  ];

for (const { name, given, expect: expected } of rows) {
  test(name, () => {
    const carriers = new TimeCarriers<TimedRange & { readonly name: string }>(() => true);
    expect(carriers.due(given.map(timed), CARRY_MS).map((range) => range.name)).toEqual(expected);
  });
}

test('a range that is not visited any more still writes its time, until another node leads it', () => {
  const [a, b] = [
    timed({ name: 'a', nodes: [1, 2, 3], idleMs: 40_000 }),
    timed({ name: 'b', nodes: [1, 2, 3], idleMs: 50_000 }),
  ];
  const led = new Set([a, b]);
  const carriers = new TimeCarriers<typeof a>((range) => led.has(range));
  const due = (...visited: (typeof a)[]) => carriers.due(visited, CARRY_MS).map(({ name }) => name);
  expect([due(a), due(), due(b)]).toEqual([['a'], ['a'], ['a']]);
  led.delete(a);
  expect([due(), due(b), due()]).toEqual([[], ['b'], ['b']]);
});
