// Clusters to which anything happens: what may never happen does not, and once they are left alone they mend and rest.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SettingName } from '../../src/scheduling/settings.ts';
import { settings } from './clusters.ts';
import { memberIds } from './sim-range.ts';
import { SimulatedCluster } from './simulated-cluster.ts';

type Event =
  | { readonly type: 'kill' | 'revive' | 'drain' | 'decommission' | 'maintain' | 'serve'; readonly pick: number }
  | { readonly type: 'join' }
  | { readonly type: 'heat'; readonly pick: number; readonly readsPerS: number; readonly bytes: number }
  | { readonly type: 'set'; readonly name: SettingName; readonly value: number }
  | { readonly type: 'scatter' };

const pick = fc.nat({ max: 1_000 });

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('kill' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('revive' as const), pick }) },
  fc.record({ type: fc.constantFrom('drain', 'decommission', 'maintain', 'serve'), pick }),
  fc.constant({ type: 'join' as const }),
  fc.record({
    type: fc.constant('heat' as const),
    pick,
    readsPerS: fc.nat({ max: 20_000 }),
    bytes: fc.nat({ max: 2 ** 30 }),
  }),
  fc.record({
    type: fc.constant('set' as const),
    name: fc.constant('replicas' as const),
    value: fc.constantFrom(1, 3, 5),
  }),
  fc.constant({ type: 'scatter' as const }),
);

const course = fc.record({
  seed: fc.nat({ max: 0xffff_ffff }),
  nodes: fc.integer({ min: 1, max: 8 }),
  zones: fc.integer({ min: 0, max: 4 }),
  ranges: fc.integer({ min: 1, max: 25 }),
  lossPercent: fc.constantFrom(0, 10, 30),
  events: fc.array(fc.tuple(fc.nat({ max: 90 }), event), { maxLength: 15 }),
});

type Course = typeof course extends fc.Arbitrary<infer T> ? T : never;

/** Retries of what failed come soon, so that a run need not be long. */
const BASE = settings({ retryAfterMs: 60_000, moveCooldownMs: 30_000 });
const RESTS_WITHIN_S = 4_000;
const RESTS_FOR_S = 400;

test('whatever happens, no promise is broken; left alone, the cluster mends and then rests', {
  timeout: 300_000,
}, () => {
  fc.assert(
    fc.property(course, (given) => {
      const cluster = clusterFor(given);
      for (const [pauseS, next] of given.events) {
        run(cluster, pauseS);
        carryOut(cluster, next);
      }
      heal(cluster);
      runUntilStill(cluster);
      expect(cluster.violations).toEqual([]);
      expect(faults(cluster)).toEqual([]);
    }),
    { seed: 1, numRuns: 40, endOnFailure: true },
  );
});

function clusterFor({ seed, nodes, zones, ranges, lossPercent }: Course): SimulatedCluster {
  const labels = (i: number): Record<string, string> => (zones === 0 ? {} : { zone: `z${i % zones}` });
  const cluster = new SimulatedCluster({
    nodes: Array.from({ length: nodes }, (_, i) => ({ labels: labels(i) })),
    settings: BASE,
    seed,
    lossPercent,
  });
  for (let i = 0; i < ranges; i++) {
    const first = cluster.random.int(nodes);
    const voters = Array.from({ length: Math.min(3, nodes) }, (_, j) => ((first + j) % nodes) + 1);
    cluster.addRange(voters, { bytes: cluster.random.int(2 ** 28), writesPerS: cluster.random.int(3_000) });
  }
  return cluster;
}

function run(cluster: SimulatedCluster, seconds: number): void {
  for (let s = 0; s < seconds; s++) cluster.tick();
}

function carryOut(cluster: SimulatedCluster, event: Event): void {
  const { scheduling } = cluster;
  switch (event.type) {
    case 'join':
      if (cluster.nodes.size < 10) cluster.addNode();
      return;
    case 'set':
      return scheduling.configure({ ...scheduling.settings, [event.name]: event.value });
    case 'scatter':
      return scheduling.schedulers.scatter.request([...cluster.ranges.keys()], cluster.nowMs);
    case 'heat':
      Object.assign(cluster.range((event.pick % cluster.ranges.size) + 1), event);
      return;
    default:
      return carryOutOn(cluster, (event.pick % cluster.nodes.size) + 1, event.type);
  }
}

function carryOutOn(
  cluster: SimulatedCluster,
  nodeId: number,
  what: Exclude<Event['type'], 'join' | 'set' | 'scatter' | 'heat'>,
): void {
  switch (what) {
    case 'kill':
      return cluster.kill(nodeId);
    case 'revive':
      return cluster.revive(nodeId);
    case 'drain':
      return cluster.setDuty(nodeId, 'draining');
    case 'decommission':
      return cluster.setDuty(nodeId, 'decommissioning');
    case 'maintain':
      return cluster.setDuty(nodeId, 'maintenance', cluster.nowMs + 100_000);
    case 'serve':
      return cluster.setDuty(nodeId, 'serving');
  }
}

/** All nodes run again. Those that were to be emptied still are, where enough others are left. */
function heal(cluster: SimulatedCluster): void {
  for (const nodeId of cluster.nodes.keys()) cluster.revive(nodeId);
  for (const { nodeId, duty } of cluster.nodes.values())
    if (duty !== 'decommissioning') cluster.setDuty(nodeId, 'serving');
  for (const { nodeId } of cluster.nodes.values()) {
    if (serving(cluster) >= cluster.scheduling.settings.replicas) break;
    cluster.setDuty(nodeId, 'serving');
  }
}

function serving(cluster: SimulatedCluster): number {
  return [...cluster.nodes.values()].filter(({ duty }) => duty === 'serving').length;
}

function runUntilStill(cluster: SimulatedCluster): void {
  let [operators, stillS] = [cluster.operators, 0];
  for (let s = 0; stillS < RESTS_FOR_S; s++) {
    expect(s, describe(cluster)).toBeLessThan(RESTS_WITHIN_S);
    cluster.tick();
    stillS = cluster.operators === operators ? stillS + 1 : 0;
    operators = cluster.operators;
  }
}

/** As many replicas as there can be, on nodes that are there to serve, and nothing under way. */
function faults(cluster: SimulatedCluster): readonly string[] {
  const wanted = Math.min(cluster.scheduling.settings.replicas, serving(cluster));
  const found = [...cluster.ranges.values()].flatMap((range) => {
    const members = [...memberIds(range)];
    const serves = members.every((nodeId) => cluster.node(nodeId).duty === 'serving');
    const whole = members.length === range.voters.size && members.length === wanted;
    return serves && whole
      ? []
      : [`range ${range.rangeId}: ${range.voters.size} voters, on nodes ${members.join(', ')}`];
  });
  return [
    ...found,
    ...cluster.scheduling.controller.active().map(({ operatorId }) => `operator ${operatorId} goes on`),
  ];
}

function describe(cluster: SimulatedCluster): string {
  const { controller, schedulers } = cluster.scheduling;
  const past = controller
    .history(12)
    .map(({ rangeId, reason, status, outcome }) => `${rangeId}: ${reason}: ${status} (${outcome})`);
  return [...past, ...schedulers.list(cluster.nowMs).map(({ name, last }) => `${name}: ${last}`)].join('\n');
}
