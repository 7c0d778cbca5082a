import { expect, test } from 'vitest';
import { nodeInfo } from '../../test/support/scheduling-bed.ts';
import { ClusterModel } from './cluster-model.ts';
import { costOfJoining, isolationCost } from './labels.ts';

const LEVELS = ['zone', 'rack', 'host'];
const model = new ClusterModel();
const places: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  1: { zone: 'a', rack: 'r1', host: 'h1' },
  2: { zone: 'a', rack: 'r1', host: 'h2' },
  3: { zone: 'a', rack: 'r2', host: 'h3' },
  4: { zone: 'b', rack: 'r1', host: 'h4' },
  5: { zone: 'c', rack: 'r1', host: 'h5' },
  6: { zone: 'a', rack: 'r1', host: 'h1' },
  7: {},
};
for (const [nodeId, labels] of Object.entries(places)) model.setNode(nodeInfo(Number(nodeId), { labels }));

const cost = (...nodeIds: readonly number[]): number => isolationCost(model, nodeIds, LEVELS);

test('replicas in zones of their own cost nothing', () => expect(cost(1, 4, 5)).toBe(0));

test('the narrower the level that two share, the more it costs', () => {
  const sorted = [cost(1, 4), cost(1, 3), cost(1, 2), cost(1, 6)];
  expect(sorted).toEqual([...sorted].sort((a, b) => a - b));
  expect(new Set(sorted).size).toBe(4);
});

test('one shared rack costs more than all shared zones of seven replicas', () => {
  expect(cost(1, 2)).toBeGreaterThan((7 * 6 * cost(1, 3)) / 2);
});

test('a node without labels is not known to be apart from any', () => expect(cost(1, 7)).toBe(cost(1, 6)));

test('joining costs what the set costs more afterwards', () => {
  expect(costOfJoining(model, 3, [1, 4], LEVELS)).toBe(cost(1, 4, 3) - cost(1, 4));
});

test('without levels nothing costs anything', () => expect(isolationCost(model, [1, 6, 7], [])).toBe(0));
