import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NOW_MS, rangeInfo, schedulingBed, upNodes } from '../../../test/support/scheduling-bed.ts';
import type { RangeInfo } from '../cluster-model.ts';
import type { Plan } from '../operator.ts';
import type { Scheduling } from '../scheduling.ts';
import { MetricScheduler } from './metric-scheduler.ts';
import { BYTES, type Metric, REPLICA_LOAD, REPLICAS } from './metrics.ts';

const SETTINGS = { replicas: 1, bytesGapMin: 1, loadGapMin: 1, operatorsMax: 10_000, balanceOperatorsMax: 10_000 };
const NO_LIMITS = { receivesPerNodeMax: 100, sendsPerNodeMax: 100 };

const COUNT = new MetricScheduler({ name: 'count', settings: [], desc: '', metric: REPLICAS, keep: [], prefer: [] });
const BY_BYTES = new MetricScheduler({
  name: 'bytes',
  settings: [],
  desc: '',
  metric: BYTES,
  keep: [REPLICAS],
  prefer: [],
});
const BY_LOAD = new MetricScheduler({
  name: 'load',
  settings: [],
  desc: '',
  metric: REPLICA_LOAD,
  keep: [REPLICAS, BYTES],
  prefer: [],
});

/** One range for each `[node, bytes, writes per second]`. */
function bed(
  nodes: number,
  ranges: readonly (readonly [node: number, bytes: number, writesPerS?: number])[],
): Scheduling {
  const infos: readonly RangeInfo[] = ranges.map(([node, bytes, writesPerS = 0], i) =>
    rangeInfo(i + 1, { voters: [node], bytes, writesPerS }),
  );
  return schedulingBed({ nodes: upNodes(nodes), ranges: infos, settings: { ...SETTINGS, ...NO_LIMITS } });
}

/** What a scheduler proposes, all of it admitted. */
function run(scheduling: Scheduling, scheduler: MetricScheduler): readonly (readonly Plan[])[] {
  const proposals = scheduler.propose(scheduling.view(NOW_MS));
  const proposed: (readonly Plan[])[] = [];
  let next = proposals.next();
  while (!next.done) {
    proposed.push(next.value);
    next = proposals.next('admitted' in scheduling.controller.admit(next.value, NOW_MS));
  }
  return proposed;
}

function gapOf(scheduling: Scheduling, metric: Metric): { readonly is: number; readonly worthMoves: number } {
  const values = [...scheduling.model.nodes()].map(({ info }) =>
    metric.total(scheduling.controller.expected(info.nodeId)),
  );
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { is: Math.max(...values) - Math.min(...values), worthMoves: metric.gap(mean, scheduling.settings) };
}

describe('bytes', () => {
  test('are exchanged where a single move would upset the numbers of replicas (B2)', () => {
    const scheduling = bed(2, [
      [1, 500],
      [1, 500],
      [1, 500],
      [1, 500],
      [2, 10],
      [2, 10],
      [2, 10],
      [2, 10],
    ]);
    const proposed = run(scheduling, BY_BYTES);
    expect(proposed.map((plans) => plans.length)).toEqual([2, 2]);
    expect(gapOf(scheduling, BYTES).is).toBe(0);
    expect(gapOf(scheduling, REPLICAS).is).toBe(0);
  });

  test('move alone where that keeps the numbers of replicas even', () => {
    const scheduling = bed(2, [
      [1, 500],
      [1, 500],
      [1, 500],
      [2, 10],
      [2, 10],
    ]);
    expect(run(scheduling, BY_BYTES).map((plans) => plans.length)).toEqual([1]);
  });

  test('stay where nothing that moves would leave less of a difference (B3)', () => {
    expect(
      run(
        bed(2, [
          [1, 1_000],
          [2, 10],
        ]),
        BY_BYTES,
      ),
    ).toEqual([]);
  });
});

test('loads are exchanged against ranges of the same size', () => {
  const scheduling = bed(2, [
    [1, 500, 900],
    [1, 10, 900],
    [2, 500, 1],
    [2, 10, 1],
  ]);
  const [plans = []] = run(scheduling, BY_LOAD);
  expect(plans.map(({ rangeId }) => rangeId).sort()).toEqual([1, 3]);
  expect(gapOf(scheduling, BYTES).is).toBe(0);
});

const placed = fc.array(
  fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 1_000 }), fc.nat({ max: 1_000 })),
  { minLength: 1, maxLength: 40 },
);

test.each([
  { name: 'bytes', scheduler: BY_BYTES, metric: BYTES, first: [REPLICAS] },
  { name: 'loads', scheduler: BY_LOAD, metric: REPLICA_LOAD, first: [REPLICAS, BYTES] },
])('what spreads $name leaves what comes first in its band, and never makes a difference larger', (row) => {
  const { scheduler, metric, first } = row;
  fc.assert(
    fc.property(placed, (ranges) => {
      const scheduling = bed(5, ranges);
      const before = new Map([metric, ...first].map((one) => [one, gapOf(scheduling, one).is]));
      run(scheduling, scheduler);
      for (const one of first) {
        const { is, worthMoves } = gapOf(scheduling, one);
        expect(is).toBeLessThanOrEqual(Math.max(before.get(one) ?? 0, worthMoves));
        if ((before.get(one) ?? 0) < worthMoves) expect(is).toBeLessThan(worthMoves);
      }
      expect(gapOf(scheduling, metric).is).toBeLessThanOrEqual(before.get(metric) ?? 0);
    }),
    { seed: 1, numRuns: 200 },
  );
});

test('numbers of replicas become as even as they can be', () => {
  fc.assert(
    fc.property(placed, (ranges) => {
      const scheduling = bed(5, ranges);
      run(scheduling, COUNT);
      const { is, worthMoves } = gapOf(scheduling, REPLICAS);
      expect(is).toBeLessThan(worthMoves);
    }),
    { seed: 1, numRuns: 200 },
  );
});
