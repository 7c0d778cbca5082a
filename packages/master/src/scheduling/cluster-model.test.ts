import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nodeInfo, rangeInfo } from '../../test/support/scheduling-bed.ts';
import { addTotals, ClusterModel, leaderTotals, NO_TOTALS, type RangeInfo, replicaTotals } from './cluster-model.ts';

describe('reports of ranges', () => {
  const known = rangeInfo(1, { voters: [1, 2, 3], confVersion: 5, version: 2, term: 7, bytes: 1 });
  const reports = [
    { name: 'a later term counts', report: { confVersion: 5, version: 2, term: 8 }, taken: true },
    { name: 'the same term counts', report: { confVersion: 5, version: 2, term: 7 }, taken: true },
    { name: 'an earlier term does not count', report: { confVersion: 5, version: 2, term: 6 }, taken: false },
    {
      name: 'a later membership counts whatever its term',
      report: { confVersion: 6, version: 2, term: 1 },
      taken: true,
    },
    { name: 'an earlier membership does not count', report: { confVersion: 4, version: 2, term: 9 }, taken: false },
    {
      name: 'a later split counts before the membership',
      report: { confVersion: 1, version: 3, term: 1 },
      taken: true,
    },
    { name: 'an earlier split does not count', report: { confVersion: 9, version: 1, term: 9 }, taken: false },
  ];

  test.each(reports)('$name', ({ report, taken }) => {
    const model = new ClusterModel();
    model.setRange(known);
    expect(model.setRange(rangeInfo(1, { voters: [1, 2, 3], bytes: 2, ...report }))).toBe(taken);
    expect(model.range(1)?.bytes).toBe(taken ? 2 : 1);
  });
});

describe('keys', () => {
  const model = new ClusterModel();
  model.setRange(rangeInfo(3, { voters: [1], start: 'm', end: 't' }));
  model.setRange(rangeInfo(1, { voters: [1], start: '', end: 'g' }));
  model.setRange(rangeInfo(2, { voters: [1], start: 'g', end: 'm' }));
  model.setRange(rangeInfo(4, { voters: [1], start: 'u', end: '' }));

  test('ranges are listed by start key', () => expect(model.idsInKeyOrder()).toEqual([1, 2, 3, 4]));

  test('a neighbour begins where a range ends; behind a hole there is none', () => {
    expect([1, 2, 3, 4].map((id) => model.neighbour(id)?.descriptor.rangeId)).toEqual([2, 3, undefined, undefined]);
  });

  test('the order follows splits and merges', () => {
    const changed = new ClusterModel();
    changed.setRange(rangeInfo(1, { voters: [1] }));
    expect(changed.idsInKeyOrder()).toEqual([1]);
    changed.setRange(rangeInfo(1, { voters: [1], end: 'm', version: 2 }));
    changed.setRange(rangeInfo(2, { voters: [1], start: 'm', version: 2 }));
    expect(changed.idsInKeyOrder()).toEqual([1, 2]);
    changed.removeRange(1);
    expect(changed.idsInKeyOrder()).toEqual([2]);
  });
});

test('a node that is named before it is known has its ranges when it is', () => {
  const model = new ClusterModel();
  model.setRange(rangeInfo(1, { voters: [7, 8] }));
  expect(model.node(7)).toBeUndefined();
  model.setNode(nodeInfo(7));
  expect(model.node(7)?.totals.replicas).toBe(1);
  expect(model.node(7)?.info.nodeId).toBe(7);
});

const change = fc.record({
  rangeId: fc.integer({ min: 1, max: 5 }),
  voters: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
  confVersion: fc.integer({ min: 1, max: 4 }),
  bytes: fc.nat({ max: 100 }),
  writesPerS: fc.nat({ max: 100 }),
  gone: fc.boolean(),
});

test('what a node carries is always what its ranges say (C1)', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const model = new ClusterModel();
      for (let nodeId = 1; nodeId <= 4; nodeId++) model.setNode(nodeInfo(nodeId));
      for (const { gone, rangeId, ...given } of changes) {
        if (gone) model.removeRange(rangeId);
        else model.setRange(rangeInfo(rangeId, given));
      }
      for (const node of model.nodes()) {
        const all = [...model.ranges()];
        const held = all.filter((range) => range.descriptor.replicas.some(({ nodeId }) => nodeId === node.info.nodeId));
        const led = all.filter((range) => range.leader === node.info.nodeId);
        expect(node.totals).toEqual(sum(held, led));
        expect([...node.ranges].sort()).toEqual(held.map(({ descriptor }) => descriptor.rangeId).sort());
        expect([...node.leads].sort()).toEqual(led.map(({ descriptor }) => descriptor.rangeId).sort());
      }
    }),
  );
});

function sum(held: readonly RangeInfo[], led: readonly RangeInfo[]) {
  const replicas = held.reduce((totals, range) => addTotals(totals, replicaTotals(range)), NO_TOTALS);
  return led.reduce((totals, range) => addTotals(totals, leaderTotals(range)), replicas);
}
