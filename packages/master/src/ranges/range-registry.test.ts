import { ServiceError } from '@remora/base';
import { currentRanges, type RangeDescriptor } from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { coverageFaults } from '../scheduling/cluster-check.ts';
import { ENDED_MAX, RangeRegistry } from './range-registry.ts';

function range(rangeId: number, start: string, end: string, more: Partial<RangeDescriptor> = {}): RangeDescriptor {
  const replicas = [1, 2, 3].map((nodeId) => ({ replicaId: 100 * rangeId + nodeId, nodeId, type: 'voter' as const }));
  const [from, to] = [Buffer.from(start), Buffer.from(end)];
  const epoch = { confVersion: 1, version: 1 };
  return { rangeId, start: from, end: to, epoch, replicas, revisionSource: 'master', ...more };
}

const at = (version: number, confVersion = 1) => ({ epoch: { confVersion, version } });

function registryOf(...ranges: readonly RangeDescriptor[]): RangeRegistry {
  const registry = new RangeRegistry();
  for (const each of ranges) registry.describe(each);
  return registry;
}

/** As `id:start-end`, in the order of their keys. */
function shown(registry: RangeRegistry): string {
  const texts = registry.all().map(({ rangeId, start, end }) => `${String(start)}-${String(end)}:${rangeId}`);
  return texts.sort().join(' ');
}

const ids = () => {
  let [nextRange, nextReplica] = [50, 5_000];
  return {
    rangeId: () => nextRange++,
    replicaIds: (count: number) => {
      nextReplica += count;
      return nextReplica - count;
    },
  };
};

describe('ranges as the masters know them', () => {
  const rows = [
    { name: 'what is known already', news: range(2, '', ''), expected: undefined },
    { name: 'a later membership', news: range(2, '', '', at(1, 2)), expected: 'members' },
    { name: 'a later version', news: range(2, '', 'm', at(2)), expected: 'all' },
    { name: 'a range that was never heard of', news: range(3, 'm', '', at(2)), expected: 'all' },
  ];
  test.each(rows)('of $name, $expected is news (RR1)', ({ news, expected }) => {
    expect(registryOf(range(2, '', '')).newsOf(news)).toBe(expected);
  });

  test('of a range that was split, either half may be heard of first', () => {
    const [left, right] = [range(2, '', 'm', at(2)), range(3, 'm', '', at(2))];
    for (const told of [
      [left, right],
      [right, left],
    ]) {
      expect(shown(registryOf(range(2, '', ''), ...told))).toBe('-m:2 m-:3');
    }
  });

  test('a later membership does not bring back bounds that are gone', () => {
    const registry = registryOf(range(2, '', 'm', at(2)));
    registry.changeMembers(range(2, '', '', { ...at(1, 7), replicas: [] }));
    expect(registry.get(2)).toMatchObject({
      epoch: { confVersion: 7, version: 2 },
      end: Buffer.from('m'),
      replicas: [],
    });
  });

  test('a range whose first key a later version has was merged away, and does not come back (RR3, RR4)', () => {
    const registry = registryOf(range(2, '', 'm', at(2)), range(3, 'm', '', at(2)), range(2, '', '', at(3)));
    expect(shown(registry)).toBe('-:2');
    expect(registry.mergedInto(3)).toBe(2);
    registry.describe(range(3, 'm', '', at(2, 9)));
    expect(shown(registry)).toBe('-:2');
    expect(registry.newsOf(range(3, 'm', '', at(2, 9)))).toBeUndefined();
  });

  test('so was one that is heard of only after what it was merged into', () => {
    const registry = registryOf(range(2, '', '', at(3)), range(3, 'm', '', at(2)));
    expect(shown(registry)).toBe('-:2');
    expect(registry.mergedInto(3)).toBe(2);
  });

  test('a range of an earlier version that only reaches into another one lives on', () => {
    const registry = registryOf(range(2, '', ''), range(3, 'm', '', at(2)));
    expect(shown(registry)).toBe('-:2 m-:3');
    registry.describe(range(2, '', 'm', at(2)));
    expect(shown(registry)).toBe('-m:2 m-:3');
  });

  test('survive a restart, with what was asked for and what has ended', () => {
    const registry = registryOf(range(2, '', 'm', at(2)), range(3, 'm', '', at(2)), range(2, '', '', at(3)));
    const asked = registry.askSplit(range(2, '', '', at(3)), ids());
    const restored = new RangeRegistry();
    restored.restore(registry.image());
    expect(restored.askSplit(range(2, '', '', at(3)), ids())).toEqual(asked);
    expect(restored.mergedInto(3)).toBe(2);
    expect(shown(restored)).toBe('-:2');
  });
});

describe('ids of splits', () => {
  test('are the same when they are asked for again, and others at another epoch (RR5)', () => {
    const registry = registryOf(range(2, '', ''));
    const source = ids();
    const first = registry.askSplit(range(2, '', ''), source);
    expect(first).toMatchObject({ childId: 50, replicas: [{ replicaId: 5_000, nodeId: 1 }, {}, { nodeId: 3 }] });
    expect(registry.askSplit(range(2, '', ''), source)).toEqual(first);
    const later = registry.askSplit(range(2, '', '', at(1, 2)), source);
    expect(later.childId).toBe(51);
    expect(() => registry.askSplit(range(2, '', ''), source)).toThrow(ServiceError);
  });

  test('make the child known as soon as its parent is known to be cut (RR5)', () => {
    const registry = registryOf(range(2, '', ''));
    registry.askSplit(range(2, '', ''), ids());
    registry.describe(range(2, '', 'm', at(2)));
    expect(shown(registry)).toBe('-m:2 m-:50');
    expect(registry.get(50)).toMatchObject({
      epoch: { confVersion: 1, version: 2 },
      replicas: [{ replicaId: 5_000 }, {}, {}],
    });
  });

  test('do not make up a child when the range grew instead, or more has happened since', () => {
    const grown = registryOf(range(2, '', 'm'), range(3, 'm', ''));
    grown.askSplit(range(2, '', 'm'), ids());
    grown.describe(range(2, '', '', at(2)));
    expect(shown(grown)).toBe('-:2');
    const cutTwice = registryOf(range(2, '', ''));
    cutTwice.askSplit(range(2, '', ''), ids());
    cutTwice.describe(range(2, '', 'c', at(3)));
    expect(shown(cutTwice)).toBe('-c:2');
  });

  test('of a range that has ended, or has gone on, are refused with what is known', () => {
    const registry = registryOf(range(2, '', 'm', at(2)), range(3, 'm', '', at(2)), range(2, '', '', at(3)));
    expect(() => registry.askSplit(range(3, 'm', '', at(2)), ids())).toThrow('range 3 has ended');
    try {
      registry.askSplit(range(2, '', 'm', at(2)), ids());
      expect.unreachable();
    } catch (error) {
      expect(currentRanges(error as ServiceError)).toMatchObject([{ rangeId: 2, epoch: { version: 3 } }]);
    }
  });
});

/** A key space that is cut and merged at random; every descriptor that there ever was. */
function historyOf(steps: readonly (readonly [split: boolean, at: number, key: number])[]) {
  let living = [range(2, '', '')];
  const told = [...living];
  let nextId = 3;
  for (const [split, place, key] of steps) {
    const i = place % living.length;
    const [one, next] = [living[i], living[i + 1]];
    if (one === undefined) continue;
    if (split) {
      const text = String.fromCharCode(97 + (key % 26));
      const inside = text > String(one.start) && (one.end.length === 0 || text < String(one.end));
      if (!inside) continue;
      const { version } = one.epoch;
      const [left, right] = [
        { ...one, end: Buffer.from(text), ...at(version + 1) },
        range(nextId++, text, String(one.end), at(version + 1)),
      ];
      living = living.toSpliced(i, 1, left, right);
      told.push(left, right);
    } else if (next !== undefined) {
      const version = Math.max(one.epoch.version, next.epoch.version) + 1;
      const union = range(one.rangeId, String(one.start), String(next.end), at(version));
      living = living.toSpliced(i, 2, union);
      told.push(union);
    }
  }
  return { living, told };
}

test('whatever is heard of splits and merges, in whatever order, in the end the ranges are those that live', () => {
  const step = fc.tuple(fc.boolean(), fc.nat(20), fc.nat(100));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.infiniteStream(fc.nat()), (steps, order) => {
      const { living, told } = historyOf(steps);
      const keys = told.map((each) => ({ each, key: order.next().value }));
      const shuffled = keys.sort((a, b) => a.key - b.key).map(({ each }) => each);
      const registry = registryOf(...shuffled, ...living);
      expect(shown(registry)).toBe(shown(registryOf(...living)));
      expect(coverageFaults(registry.all().toSorted((a, b) => Buffer.compare(a.start, b.start)))).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

describe('ranges that have ended', () => {
  /** Range 2 is split at "m" and takes the other half over again, so many times. */
  function afterMerges(count: number): RangeRegistry {
    const registry = registryOf(range(2, '', ''));
    for (let i = 0; i < count; i++) {
      registry.describe(range(2, '', 'm', at(2 * i + 2)));
      registry.describe(range(3 + i, 'm', '', at(2 * i + 2)));
      registry.describe(range(2, '', '', at(2 * i + 3)));
    }
    return registry;
  }

  test('are remembered up to a number, the last ones (RR4)', () => {
    const registry = afterMerges(ENDED_MAX + 5);
    expect(registry.image().ended).toHaveLength(ENDED_MAX);
    expect([registry.mergedInto(3), registry.mergedInto(7), registry.mergedInto(8)]).toEqual([undefined, undefined, 2]);
    expect(shown(registry)).toBe('-:2');
  });

  test('are found to have ended again, when somebody tells of one that is forgotten', () => {
    const registry = afterMerges(ENDED_MAX + 5);
    const late = range(3, 'm', '', at(2));
    expect(registry.newsOf(late)).toBe('all');
    registry.describe(late);
    expect(shown(registry)).toBe('-:2');
    expect(registry.mergedInto(3)).toBe(2);
    expect(registry.image().ended).toHaveLength(ENDED_MAX);
  });

  test('point on to where a forgotten one went, so that no chain of merges is cut', () => {
    const registry = new RangeRegistry();
    const filling = Array.from({ length: ENDED_MAX - 2 }, (_, i) => ({ rangeId: 100 + i, into: 2 }));
    const ended = [{ rangeId: 3, into: 2 }, { rangeId: 4, into: 3 }, ...filling];
    registry.restore({ ranges: [range(2, '', '', at(9))], asked: [], chosen: [], ended });
    registry.describe(range(2, '', 'm', at(10)));
    registry.describe(range(5, 'm', '', at(10)));
    registry.describe(range(2, '', '', at(11)));
    expect([registry.mergedInto(3), registry.mergedInto(4), registry.mergedInto(5)]).toEqual([undefined, 2, 2]);
  });
});
