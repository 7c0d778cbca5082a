import { afterAll, beforeAll, describe, it } from 'vitest';
import { recipeScenarios } from './etcd-recipes.ts';
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

  for (const [i, scenario] of recipeScenarios.entries()) {
    const n = 1 + (i % 3);
    it.concurrent(`lock and election services, through node ${n}: ${scenario.name}`, () =>
      scenario.run(cluster.node(n).client));
  }
});
