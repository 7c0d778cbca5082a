/** What Prometheus' own tools have to say about the metrics of a node (Debian: `apt-get install prometheus`). */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { Cluster } from './harness.ts';

const missing =
  spawnSync('promtool', ['--version']).error === undefined
    ? undefined
    : 'promtool is missing (apt-get install prometheus)';

describeWith(missing, 'the metrics of a node', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
  });
  afterAll(() => cluster.stop());

  test('follow the rules for names and types', async () => {
    const text = await fetch(`http://${cluster.node(1).health}/metrics`).then((response) => response.text());
    expect(text).toContain('# TYPE remora_log_syncs_total counter');
    const ours = text.split('\n').filter((line) => /^(# (HELP|TYPE) )?remora_/.test(line));
    const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: `${ours.join('\n')}\n` });
    expect({ status, stderr: stderr.toString() }).toEqual({ status: 0, stderr: '' });
  });
});
