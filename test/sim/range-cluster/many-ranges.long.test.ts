import { utf8 } from '@remora/base';
import type { BackendReply } from '@remora/gateway';
import { type CommandResult, type KvOp, rangeOp } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { put } from '../../../packages/dataserver/test/support/state-bed.ts';
import { seedsToRun } from '../common/seeds.ts';
import { GATEWAY_NODE, RangeCluster } from './bed.ts';
import { MANY_RANGES } from './plans.ts';
import { type RunResult, runSeed } from './run.ts';

/**
 * `SIM_SEED=17 npx vitest run --project long test/sim/range-cluster/many` replays one run; `SIM_SEEDS=1000` runs more.
 */
const { seeds } = seedsToRun(6);

describe.each(MANY_RANGES)('$name, under load and misfortune, keep every promise', ({ plan }) => {
  const results: RunResult[] = [];

  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed, plan);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
    expect(result.events).toBeGreaterThan(5);
    expect(result.acknowledged).toBeGreaterThan(10);
  });

  test.runIf(seeds.length >= 5)('the runs met what they are for: lost answers, grants, splits, merges', () => {
    const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
    expect(sum((result) => result.granted)).toBeGreaterThan(0);
    expect(sum((result) => result.unknown)).toBeGreaterThan(0);
    expect(sum((result) => result.splits)).toBeGreaterThanOrEqual(plan.splits.length);
    expect(sum((result) => result.merges)).toBeGreaterThanOrEqual(plan.merges === undefined ? 0 : 10);
  });
});

describe('a transaction whose keys a split puts apart', () => {
  async function send(bed: RangeCluster, node: number, requestId: string): Promise<string> {
    const backend = bed.node(node).running?.backend;
    let answer = 'none';
    const success: readonly KvOp[] = ['k0', 'k2'].map((key) => put(key, requestId));
    const deadlineMs = 60_000; // in range time, which has just begun
    backend?.command(
      { type: 'txn', txn: { compare: [], success, failure: [] } },
      { timeoutMs: 3_000, requestId, deadlineMs },
      (error, reply: BackendReply<CommandResult> | undefined) => {
        answer = error?.code ?? `at ${reply?.revision}`;
      },
    );
    await bed.run(4_000);
    return answer;
  }

  async function values(bed: RangeCluster): Promise<readonly string[]> {
    let found: readonly string[] = [];
    const op = rangeOp({ key: utf8('k'), end: utf8('l') });
    bed
      .node(GATEWAY_NODE)
      .running?.backend.query({ type: 'range', op, serializable: false }, { timeoutMs: 3_000 }, (_error, reply) => {
        if (reply?.result.type === 'range') found = reply.result.kvs.map(({ value }) => Buffer.from(value).toString());
      });
    await bed.run(1_000);
    return found;
  }

  test('is applied once: its retry is answered by either part, through any gateway; later ones change both', async () => {
    const bed = new RangeCluster(1, { borders: [], splits: ['k1'] });
    await bed.start();
    const first = await send(bed, 1, 'early');
    expect(first).toMatch(/^at /);
    while (bed.ranges.splits === 0) {
      bed.ranges.splitSomewhere();
      await bed.run(2_000);
    }
    expect(await send(bed, 1, 'early')).toBe(first);
    expect(await send(bed, GATEWAY_NODE, 'early')).toBe(first);
    expect(await values(bed)).toEqual(['early', 'early']);
    const second = await send(bed, GATEWAY_NODE, 'late');
    expect(second).toMatch(/^at /);
    expect(await send(bed, 1, 'late')).toBe(second);
    expect(await values(bed)).toEqual(['late', 'late']);
    expect(await send(bed, 2, 'early')).toBe(first);
  });
});
