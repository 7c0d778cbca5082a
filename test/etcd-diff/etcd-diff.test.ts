import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import type { Profile } from './requests/generate.ts';
import { Bench, textOfFinding } from './run.ts';
import { missingEtcd } from './servers/etcd-process.ts';

const TRIES_MAX = 100;
const SEEDS: readonly { readonly profile: Profile; readonly seed: number; readonly requests: number }[] = [
  { profile: 'mixed', seed: 1, requests: 250 },
  { profile: 'mixed', seed: 2, requests: 250 },
  { profile: 'txn', seed: 3, requests: 200 },
  { profile: 'kv', seed: 4, requests: 200 },
];

// Many more of them: npm run fuzz:etcd (docs/testing/etcd-diff.md).
describeWith(missingEtcd(), 'a cluster of eight ranges answers as etcd does', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.start({ nodes: 3, layout: 'eight', seed: 1 });
  });
  afterAll(() => bench?.stop());

  test.each(SEEDS)('$requests requests, $profile, seed $seed', async (plan) => {
    const { finding, list } = await bench.run(plan);
    if (finding === undefined) return;
    const short = await bench.shrink(list, finding, TRIES_MAX);
    expect.fail(textOfFinding(...short));
  });
});
