import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NOW_MS, rangeInfo, schedulingBed, upNodes } from '../../../test/support/scheduling-bed.ts';
import type { Plan } from '../operator.ts';
import type { Scheduling } from '../scheduling.ts';
import { leaderCount } from './leader-count.ts';
import { leaderLoad } from './leader-load.ts';
import { LEADER_LOAD, LEADERS, type Metric } from './metrics.ts';
import type { Scheduler } from './scheduler.ts';

const SETTINGS = {
  ...{ replicas: 2, loadGapMin: 1, operatorsMax: 10_000, balanceOperatorsMax: 10_000, transfersPerNodeMax: 1_000 },
};

/** One range for each `[leader, other voter, reads per second]`. */
function bed(
  nodes: number,
  ranges: readonly (readonly [leader: number, other: number, readsPerS: number])[],
): Scheduling {
  const infos = ranges.map(([leader, other, readsPerS], i) => rangeInfo(i + 1, { voters: [leader, other], readsPerS }));
  return schedulingBed({ nodes: upNodes(nodes), ranges: infos, settings: SETTINGS });
}

function run(scheduling: Scheduling, scheduler: Scheduler): readonly (readonly Plan[])[] {
  const proposals = scheduler.propose(scheduling.view(NOW_MS));
  const proposed: (readonly Plan[])[] = [];
  let next = proposals.next();
  while (!next.done) {
    proposed.push(next.value);
    next = proposals.next('admitted' in scheduling.controller.admit(next.value, NOW_MS));
  }
  return proposed;
}

function values(scheduling: Scheduling, metric: Metric): readonly number[] {
  return [...scheduling.model.nodes()].map(({ info }) => metric.total(scheduling.controller.expected(info.nodeId)));
}

const spread = (all: readonly number[]): number => Math.max(...all) - Math.min(...all);
const squares = (all: readonly number[]): number => all.reduce((sum, value) => sum + value ** 2, 0);

test('a hot range goes, and a leader with little load comes back over a node in between (B2)', () => {
  // Nodes 1 and 2 share the hot ranges; what 2 leads could go to 3, and what 3 leads to 1.
  const scheduling = bed(3, [
    [1, 2, 1_000],
    [1, 2, 1_000],
    [2, 3, 10],
    [2, 3, 10],
    [3, 1, 10],
    [3, 1, 10],
  ]);
  const [plans = []] = run(scheduling, leaderLoad);
  expect(plans.map(({ steps }) => steps)).toEqual([
    [{ type: 'transferLeader', nodeId: 2 }],
    [{ type: 'transferLeader', nodeId: 3 }],
    [{ type: 'transferLeader', nodeId: 1 }],
  ]);
  expect(values(scheduling, LEADERS)).toEqual([2, 2, 2]);
});

test('counts are made even along a path where no two nodes with enough difference share a range', () => {
  const scheduling = bed(3, [
    [1, 2, 0],
    [1, 2, 0],
    [1, 2, 0],
    [2, 3, 0],
    [2, 3, 0],
    [3, 2, 0],
  ]);
  const [plans = []] = run(scheduling, leaderCount);
  expect(plans.map(({ steps }) => steps)).toEqual([
    [{ type: 'transferLeader', nodeId: 2 }],
    [{ type: 'transferLeader', nodeId: 3 }],
  ]);
  expect(values(scheduling, LEADERS)).toEqual([2, 2, 2]);
});

const led = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 4 }), fc.nat({ max: 1_000 }))
  .map(([leader, step, readsPerS]) => [leader, ((leader + step - 1) % 5) + 1, readsPerS] as const);

test('what spreads the load of leaders lowers its squares, and keeps their numbers in their band (B1, B2)', () => {
  fc.assert(
    fc.property(fc.array(led, { minLength: 1, maxLength: 40 }), (ranges) => {
      const scheduling = bed(5, ranges);
      run(scheduling, leaderCount);
      const fresh = bed(
        5,
        ranges.map((range, i) => rangeAfter(scheduling, i + 1, range)),
      );
      const [counts, loads] = [values(fresh, LEADERS), values(fresh, LEADER_LOAD)];
      const proposed = run(fresh, leaderLoad);
      const worthMoves = LEADERS.gap(ranges.length / 5, fresh.settings);
      expect(spread(values(fresh, LEADERS))).toBeLessThan(Math.max(worthMoves, spread(counts) + 1));
      if (proposed.length > 0) expect(squares(values(fresh, LEADER_LOAD))).toBeLessThan(squares(loads));
    }),
    { seed: 1, numRuns: 200 },
  );
});

/** The range, led by whom an operator gives it to. */
function rangeAfter(
  scheduling: Scheduling,
  rangeId: number,
  [leader, other, readsPerS]: readonly [number, number, number],
): readonly [number, number, number] {
  return scheduling.controller.isBusy(rangeId) ? [other, leader, readsPerS] : [leader, other, readsPerS];
}
