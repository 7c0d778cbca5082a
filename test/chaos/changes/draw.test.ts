import { SeededRandom } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { describe, expect, test } from 'vitest';
import { drawChange, type Layout } from './draw.ts';
import { keyPlace } from './places.ts';
import type { ChangeKind, WantedChange } from './range-desk.ts';

const ROUND = 3;
/** From key to key, the first one from before all keys. */
function rangesAt(keys: readonly string[], nodesOf: (i: number) => readonly number[]): readonly admin.Range[] {
  const starts = [Buffer.of(), ...keys.map((key) => Buffer.from(keyPlace(key).start))];
  return starts.map((start, i) => ({
    ...{
      id: i + 1,
      start,
      end: starts[i + 1] ?? Buffer.of(),
      confVersion: 1,
      version: 1,
      leaderNode: nodesOf(i)[0] ?? 0,
    },
    replicas: nodesOf(i).map((nodeId) => ({
      ...{ id: 100 * i + nodeId, nodeId, type: 'voter', state: 'replicate' },
      ...{ logBehind: 0, commitBehind: 0, bytes: 0, silentMs: 0 },
    })),
    ...{ revisionSource: 'master', state: undefined, load: undefined },
  }));
}

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'];
const TOGETHER = rangesAt(KEYS, () => [1, 2, 3]);
const APART = rangesAt(KEYS, (i) => (i % 2 === 0 ? [1, 2, 3] : [2, 3, 4]));

function draws(kind: ChangeKind, given: Partial<Layout>): readonly WantedChange[] {
  const layout: Layout = { round: ROUND, ranges: TOGETHER, stores: [1, 2, 3, 4], isFree: () => true, ...given };
  return Array.from({ length: 200 }, (_, seed) => drawChange(kind, layout, new SeededRandom(seed))).filter(
    (change) => change !== undefined,
  );
}

describe('what is drawn can be done', () => {
  test('a split is inside of its range', () => {
    const found = draws('split', {});
    expect(found.length).toBeGreaterThan(100);
    for (const { range, how } of found) {
      const at = how.$case === 'split' ? how.value.at : Buffer.of();
      expect(Buffer.compare(range.start, at)).toBe(-1);
      expect(range.end.length === 0 || Buffer.compare(at, range.end) < 0).toBe(true);
    }
  });

  test('a merge is of neighbours on the same nodes', () => {
    const found = draws('merge', {});
    expect(found).toHaveLength(200);
    for (const { range, other } of found) expect(other?.start).toEqual(range.end);
    expect(draws('merge', { ranges: APART })).toEqual([]);
  });

  test('a move is to a node without a replica, and brings neighbours together as a rule', () => {
    const found = draws('move', { ranges: APART });
    expect(found).toHaveLength(200);
    let together = 0;
    for (const { range, how } of found) {
      if (how.$case !== 'move') throw new Error(how.$case);
      const [from, to] = [Number(how.value.fromNode), Number(how.value.toNode)];
      const nodes = range.replicas.map(({ nodeId }) => nodeId);
      expect([nodes.includes(from), nodes.includes(to)]).toEqual([true, false]);
      if ((from === 1 && to === 4) || (from === 4 && to === 1)) together += 1;
    }
    expect(together).toBeGreaterThan(150);
    expect(draws('move', { stores: [1, 2, 3] })).toEqual([]);
  });

  test('a transfer is to another replica', () => {
    const found = draws('transfer', {});
    expect(found).toHaveLength(200);
    for (const { how } of found) expect(how.$case === 'transfer' && [2n, 3n].includes(how.value.toNode)).toBe(true);
  });

  test('ranges to which something is done already are left alone, and so is everything with too many or too few', () => {
    for (const kind of ['split', 'merge', 'move', 'transfer'] as const) {
      expect(draws(kind, { isFree: () => false })).toEqual([]);
    }
    expect(draws('merge', { ranges: TOGETHER.slice(0, 3) })).toEqual([]);
    const many = rangesAt(
      Array.from({ length: 40 }, (_, i) => `a${10 + i}`),
      () => [1, 2, 3],
    );
    expect(draws('split', { ranges: many })).toEqual([]);
  });
});
