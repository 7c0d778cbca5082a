// Nodes that pause by turns, as people are allowed to have it, while all kinds of things move.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { requireDecommissionable, requireMaintainable } from '../../src/scheduling/requests.ts';
import { settings } from './clusters.ts';
import { SimulatedCluster } from './simulated-cluster.ts';

type Event =
  | { readonly type: 'maintain' | 'serve' | 'decommission'; readonly pick: number }
  | { readonly type: 'join' }
  | { readonly type: 'scatter' }
  | { readonly type: 'replicas'; readonly value: number };

const pick = fc.nat({ max: 1_000 });

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant('maintain' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('serve' as const), pick }) },
  fc.record({ type: fc.constant('decommission' as const), pick }),
  { weight: 2, arbitrary: fc.constant({ type: 'join' as const }) },
  { weight: 2, arbitrary: fc.constant({ type: 'scatter' as const }) },
  fc.record({ type: fc.constant('replicas' as const), value: fc.constantFrom(3, 5) }),
);

const course = fc.record({
  seed: fc.nat({ max: 0xffff_ffff }),
  nodes: fc.integer({ min: 3, max: 8 }),
  ranges: fc.integer({ min: 1, max: 12 }),
  lossPercent: fc.constantFrom(0, 10),
  events: fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), event), { minLength: 3, maxLength: 20 }),
});

type Course = typeof course extends fc.Arbitrary<infer T> ? T : never;

const maintain = (pick: number): Event => ({ type: 'maintain', pick });

/** What was found once. */
const FOUND: readonly Course[] = [
  {
    ...{ seed: 0, nodes: 4, ranges: 2, lossPercent: 0 },
    events: [
      [1, maintain(134)],
      [1, { type: 'replicas', value: 3 }],
      [1, maintain(349)],
      [1, maintain(0)],
    ],
  },
  {
    ...{ seed: 0, nodes: 3, ranges: 6, lossPercent: 0 },
    events: [
      [3, { type: 'join' }],
      [28, { type: 'join' }],
      [1, maintain(0)],
      [9, maintain(403)],
      [1, { type: 'join' }],
      [1, { type: 'decommission', pick: 0 }],
      [1, maintain(0)],
    ],
  },
];

test('nodes that may pause at the same time are never a majority of a range', { timeout: 300_000 }, () => {
  fc.assert(
    fc.property(course, (given) => {
      const cluster = clusterFor(given);
      for (const [pauseS, next] of given.events) {
        for (let s = 0; s < pauseS; s++) {
          cluster.tick();
          expect(endangered(cluster)).toEqual([]);
        }
        carryOut(cluster, next);
      }
      for (let s = 0; s < 60; s++) {
        cluster.tick();
        expect(endangered(cluster)).toEqual([]);
      }
    }),
    { seed: 1, numRuns: 60, examples: FOUND.map((found) => [found]), endOnFailure: true },
  );
});

function clusterFor({ seed, nodes, ranges, lossPercent }: Course): SimulatedCluster {
  const base = settings({ retryAfterMs: 60_000, moveCooldownMs: 30_000 });
  const cluster = new SimulatedCluster({
    nodes: Array.from({ length: nodes }, () => ({})),
    settings: base,
    seed,
    lossPercent,
  });
  for (let i = 0; i < ranges; i++) {
    const first = cluster.random.int(nodes);
    const voters = Array.from({ length: 3 }, (_, j) => ((first + j) % nodes) + 1);
    cluster.addRange(voters, { bytes: cluster.random.int(2 ** 29), writesPerS: cluster.random.int(3_000) });
  }
  return cluster;
}

function carryOut(cluster: SimulatedCluster, event: Event): void {
  const { scheduling } = cluster;
  if (event.type === 'join') return cluster.nodes.size < 10 ? void cluster.addNode() : undefined;
  if (event.type === 'scatter') return scheduling.schedulers.scatter.request([...cluster.ranges.keys()], cluster.nowMs);
  if (event.type === 'replicas') return scheduling.configure({ ...scheduling.settings, replicas: event.value });
  const nodeId = (event.pick % cluster.nodes.size) + 1;
  const { duty } = cluster.node(nodeId);
  const view = scheduling.view(cluster.nowMs);
  try {
    if (event.type === 'serve') cluster.setDuty(nodeId, 'serving');
    if (event.type === 'maintain' && duty === 'serving') {
      requireMaintainable(view, nodeId);
      cluster.setDuty(nodeId, 'maintenance', cluster.nowMs + 86_400_000);
    }
    if (event.type === 'decommission' && duty === 'serving') {
      requireDecommissionable(view, nodeId);
      cluster.setDuty(nodeId, 'decommissioning');
    }
  } catch {
    // refused
  }
}

/** Ranges that would lose their quorum if all that may pause did. */
function endangered(cluster: SimulatedCluster): readonly string[] {
  return [...cluster.ranges.values()].flatMap(({ rangeId, voters }) => {
    const nodes = [...voters.keys()];
    const stay = nodes.filter((nodeId) => cluster.node(nodeId).duty !== 'maintenance');
    return stay.length > nodes.length / 2 ? [] : [`range ${rangeId} on ${nodes}, of which only ${stay} stay`];
  });
}
