/** Declares tests that a cluster of eight ranges answers random requests as a real etcd does. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import type { Profile } from './requests/generate.ts';
import { Bench, textOfFinding } from './run.ts';
import { missingEtcd } from './servers/etcd-process.ts';

const TRIES_MAX = 100;

export interface Plan {
  readonly profile: Profile;
  readonly seed: number;
  readonly requests: number;
}

/** Many more seeds: npm run fuzz:etcd (docs/testing/etcd-diff.md). */
export function answersAsEtcdDoes(plans: readonly Plan[]): void {
  describeWith(missingEtcd(), 'a cluster of eight ranges answers as etcd does', () => {
    let bench: Bench;
    beforeAll(async () => {
      bench = await Bench.start({ nodes: 3, layout: 'eight', seed: 1 });
    });
    afterAll(() => bench?.stop());

    test.each(plans)('$requests requests, $profile, seed $seed', async (plan) => {
      const { finding, list } = await bench.run(plan);
      if (finding === undefined) return;
      const short = await bench.shrink(list, finding, TRIES_MAX);
      expect.fail(textOfFinding(...short));
    });
  });
}
