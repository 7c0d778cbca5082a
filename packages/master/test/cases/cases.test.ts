import { expect, test } from 'vitest';
import { BALANCE_CASES } from './balance-cases.ts';
import type { Case } from './clusters.ts';
import { FAILURE_CASES } from './failure-cases.ts';
import { MERGE_CASES } from './merge-cases.ts';
import { PLACEMENT_CASES } from './placement-cases.ts';
import { type SimulatedCluster, TICK_MS } from './simulated-cluster.ts';

/** Also for a machine that is busy with other things. */
const TIMEOUT_MS = 120_000;

test.each([...BALANCE_CASES, ...FAILURE_CASES, ...PLACEMENT_CASES, ...MERGE_CASES])(
  '$name',
  { timeout: TIMEOUT_MS },
  (row) => {
    const cluster = row.cluster();
    const settledInS = settle(cluster, row);
    const { operators } = cluster;
    const told = describe(cluster);
    expect(row.problems(cluster), told).toEqual([]);
    expect(operators, told).toBeLessThanOrEqual(row.operatorsMax);
    for (let s = 0; s < row.stillS; s++) cluster.tick();
    expect(cluster.operators, `it settled after ${settledInS} s, but went on: ${describe(cluster)}`).toBe(operators);
    expect(row.problems(cluster)).toEqual([]);
    expect(cluster.violations).toEqual([]);
  },
);

/** Seconds until the last operator ended, all events being past. */
function settle(cluster: SimulatedCluster, row: Case): number {
  const lastEvent = Math.max(0, ...Object.keys(row.events ?? {}).map(Number));
  const quietMs = cluster.scheduling.settings.moveCooldownMs + cluster.scheduling.settings.replicaDownAfterMs;
  let settledInS = 0;
  for (let s = 1; s - Math.max(lastEvent, settledInS) <= Math.min(quietMs, 300_000) / TICK_MS; s++) {
    row.events?.[s]?.(cluster);
    const before = cluster.operators;
    cluster.tick();
    if (cluster.operators !== before || cluster.scheduling.controller.active().length > 0) settledInS = s;
    if (settledInS > row.settlesInS) break;
  }
  expect(settledInS, describe(cluster)).toBeLessThanOrEqual(row.settlesInS);
  return settledInS;
}

function describe(cluster: SimulatedCluster): string {
  const { controller, schedulers } = cluster.scheduling;
  const past = controller
    .history(8)
    .map(({ rangeId, reason, status, outcome }) => `${rangeId}: ${reason} → ${status} (${outcome})`);
  const said = schedulers.list(cluster.nowMs).map(({ name, last }) => `${name}: ${last}`);
  return [`${cluster.operators} operators`, ...past, ...said].join('\n');
}
