import { afterAll, beforeAll, describe, it } from 'vitest';
import { etcd3Scenarios } from './etcd3-scenarios.ts';
import { Cluster } from './harness.ts';

describe('the npm client etcd3 against a cluster', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start();
  });
  afterAll(() => cluster?.stop());

  for (const n of [1, 2, 3]) {
    for (const scenario of etcd3Scenarios) {
      it.concurrent(`through node ${n}: ${scenario.name}`, () => scenario.run([cluster.node(n).client]));
    }
  }
});
