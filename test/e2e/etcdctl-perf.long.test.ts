import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { Etcdctl, missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { Cluster } from './harness.ts';

describeWith(missingEtcdctl(), 'etcdctl check perf', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 3 });
  });
  afterAll(async () => {
    await cluster?.stop();
  });

  // It writes for 60 s. Whether its figures pass depends on the machine.
  test('runs to its end without an error, and removes what it wrote', async () => {
    const endpoints = cluster.endpoints.join(',');
    const { out, err } = await new Etcdctl(endpoints, ['check', 'perf', '--load=s']).end(150_000);
    expect(out + err).toMatch(/(PASS|FAIL): Throughput (is|too low:) \d+ writes\/s/);
    expect(out + err).toMatch(/(PASS: Slowest request took|Slowest request took too long:) [\d.]+s/);
    expect(out + err).not.toMatch(/[Ee]rror/);
    expect((await new Etcdctl(endpoints, ['get', '--from-key', '', '--keys-only']).end()).out).toBe('');
  }, 180_000);
});
