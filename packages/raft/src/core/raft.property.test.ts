import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TestCluster } from '../../test/support/core/core-cluster.ts';
import { perform } from '../../test/support/core/schedule.ts';
import type { RaftConfig } from './config.ts';

/** Without bias: fast-check prefers small numbers, which would be deliveries only. */
const schedule = fc.noBias(fc.array(fc.nat({ max: 2 ** 31 - 1 }), { minLength: 400, maxLength: 1200, size: 'max' }));

/**
 * A cluster heals within this many ticks. Without PreVote, candidates may depose each other many times before one of
 * them is elected: a run was found that takes more than 200.
 */
const HEALS_TICKS = 1_000;

/** Every run with membership changes has met all of them. */
const CHANGE_KINDS = [
  ...['simple', 'joint', 'jointAuto', 'leave', 'learner', 'promotion', 'demotion', 'removal'],
  ...['none', 'leaderLeft'],
];

interface Shape {
  readonly name: string;
  readonly voters: number;
  readonly learners?: number;
  /** Membership changes happen. */
  readonly changes?: boolean;
  readonly spares?: number;
  readonly sparesKnow?: 'none';
  readonly runs: number;
  readonly config?: Partial<RaftConfig>;
  readonly mergedHeartbeats?: boolean;
  readonly evict?: boolean;
  readonly firstLeader?: number;
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
  // Its schedules begin with an election, so that a quorum is seldom counted on in them: it takes many until one is.
  {
    name: 'three replicas and a learner that begin with a leader',
    voters: 3,
    learners: 1,
    runs: 1_500,
    firstLeader: 2,
  },
  { name: 'changing members', voters: 3, spares: 3, changes: true, runs: 150 },
  { name: 'changing members, from one', voters: 1, learners: 1, spares: 3, changes: true, runs: 80 },
  {
    name: 'changing members, that keep no durable entry in memory',
    voters: 3,
    spares: 3,
    changes: true,
    runs: 50,
    evict: true,
  },
  {
    name: 'changing members, without PreVote',
    voters: 3,
    spares: 2,
    changes: true,
    runs: 60,
    config: { preVote: false },
  },
  {
    name: 'changing members, who join without membership, with merged heartbeats',
    voters: 3,
    spares: 2,
    sparesKnow: 'none',
    changes: true,
    runs: 60,
    mergedHeartbeats: true,
  },
];

describe('Raft holds its promises over lossy networks, late fsyncs and crashes, and recovers', () => {
  for (const shape of SHAPES) {
    test(shape.name, () => {
      let reads = 0;
      let waits = 0;
      const changes = new Set<string>();
      fc.assert(
        fc.property(fc.nat(), schedule, (seed, steps) => {
          const cluster = new TestCluster({ ...shape, seed });
          // Begin with a working cluster, so that most of a schedule is not spent on the first election.
          if (shape.firstLeader === undefined) expect(cluster.heals(100)).toBe(true);
          for (const step of steps) perform(cluster, step, shape.changes === true);
          reads += cluster.readsAnswered;
          waits += cluster.waits;
          for (const kind of cluster.changes) changes.add(kind);
          expect(cluster.heals(HEALS_TICKS)).toBe(true);
        }),
        { numRuns: shape.runs, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
      );
      if (shape.voters > 1) expect(waits).toBeGreaterThan(0);
      if (shape.changes === true && shape.evict !== true) expect(changes).toEqual(new Set(CHANGE_KINDS));
      if (shape.evict === true && shape.changes !== true) expect(reads).toBeGreaterThan(1000);
    });
  }
});
