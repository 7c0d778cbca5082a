import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RaftConfig } from './config.ts';
import { TestCluster, type TestNode } from './test-cluster.ts';

/** One random number is one step: its low part says what happens, the rest to whom. */
function perform(cluster: TestCluster, number: number): void {
  const count = cluster.nodes.length;
  const rest = Math.floor(number / 100);
  const node = cluster.nodes[rest % count] as TestNode;
  const pick = Math.floor(rest / count);
  const other = cluster.nodes[pick % count] as TestNode;
  const roll = number % 100;
  if (roll < 26) for (let i = 0; i < 4; i++) cluster.deliver(pick + i * 7);
  else if (roll < 29) cluster.deliver(pick, true);
  else if (roll < 32) cluster.drop(pick);
  else if (roll < 48) cluster.sync(node);
  else if (roll < 50) for (const each of cluster.nodes) cluster.answerRead(each, pick);
  else if (roll < 58) for (let i = 0; i < 3; i++) cluster.apply(node);
  else if (roll < 70) for (const each of cluster.nodes) cluster.tick(each);
  else if (roll < 80) for (const each of cluster.nodes) cluster.propose(each);
  else if (roll < 83) for (const each of cluster.nodes) cluster.read(each);
  else if (roll < 84) cluster.crash(node, pick);
  else if (roll < 87) for (const each of cluster.nodes) cluster.restart(each);
  else if (roll < 88) cluster.cutLink(node, other);
  else if (roll < 90) cluster.healLinks();
  else if (roll < 93) cluster.compact(node, pick % 3);
  else if (roll < 96) cluster.moveSnapshot(pick, pick % 4 === 0);
  else if (roll < 97) cluster.transfer(node, other);
  else if (roll < 98) cluster.unreachable(node, other);
  else if (roll < 99)
    for (let i = 0; i < 12; i++) cluster.tick(node); // it wakes late, or is impatient
  else isolate(cluster, node);
}

function isolate(cluster: TestCluster, node: TestNode): void {
  for (const each of cluster.nodes) {
    cluster.cutLink(each, node);
    cluster.cutLink(node, each);
  }
}

/** Without bias: fast-check prefers small numbers, which would be deliveries only. */
const schedule = fc.noBias(fc.array(fc.nat({ max: 2 ** 31 - 1 }), { minLength: 400, maxLength: 1200, size: 'max' }));

interface Shape {
  readonly name: string;
  readonly voters: number;
  readonly learners?: number;
  readonly runs: number;
  readonly config?: Partial<RaftConfig>;
  readonly mergedHeartbeats?: boolean;
  readonly evict?: boolean;
}

const SHAPES: readonly Shape[] = [
  { name: 'one replica', voters: 1, runs: 50 },
  { name: 'three replicas', voters: 3, runs: 600 },
  { name: 'three replicas and a learner', voters: 3, learners: 1, runs: 300 },
  { name: 'five replicas', voters: 5, runs: 300 },
  {
    name: 'three replicas without PreVote and CheckQuorum',
    voters: 3,
    runs: 150,
    config: { preVote: false, checkQuorum: false },
  },
  {
    name: 'three replicas with merged heartbeats',
    voters: 3,
    runs: 150,
    mergedHeartbeats: true,
  },
  { name: 'three replicas that keep no durable entry in memory', voters: 3, runs: 300, evict: true },
  {
    name: 'three replicas and a learner that keep no durable entry in memory',
    voters: 3,
    learners: 1,
    runs: 150,
    evict: true,
  },
];

describe('Raft holds its promises over lossy networks, late fsyncs and crashes, and recovers', () => {
  for (const shape of SHAPES) {
    test(shape.name, () => {
      let reads = 0;
      fc.assert(
        fc.property(fc.nat(), schedule, (seed, steps) => {
          const cluster = new TestCluster({ ...shape, seed });
          // Begin with a working cluster, so that most of a schedule is not spent on the first election.
          expect(cluster.heals(100)).toBe(true);
          for (const step of steps) perform(cluster, step);
          reads += cluster.readsAnswered;
          expect(cluster.heals(200)).toBe(true);
        }),
        { numRuns: shape.runs, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
      );
      if (shape.evict === true) expect(reads).toBeGreaterThan(1000);
    });
  }
});
