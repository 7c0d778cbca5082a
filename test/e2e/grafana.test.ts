/**
 * A Prometheus server (Debian: `apt-get install prometheus`) scrapes a running cluster: it answers every query of the
 * dashboard, and evaluates every alert rule.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { Cluster } from './harness.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

const { panels }: Dashboard = JSON.parse(readFileSync(join(DEPLOY, 'grafana/remora.json'), 'utf8'));

/** Panels that are empty in a cluster that is well, has no TLS, and was never split. */
const MAY_BE_EMPTY = ['Conditions', 'Refused', 'Certificates', 'Waits for revisions', 'Long sections'];

const missing =
  spawnSync('prometheus', ['--version']).error === undefined
    ? undefined
    : 'prometheus is missing (apt-get install prometheus)';

describeWith(missing, 'Prometheus', () => {
  let cluster: Cluster;
  let prometheus: ChildProcess;
  let url: string;

  beforeAll(async () => {
    cluster = await Cluster.start();
    const [port] = await freePorts('127.0.0.1', 1);
    url = `http://127.0.0.1:${port}`;
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [join(DEPLOY, 'prometheus/remora-alerts.yml')],
      scrape_configs: [
        { job_name: 'remora', static_configs: [{ targets: cluster.nodes.map(({ health }) => health) }] },
      ],
    };
    const file = join(cluster.dir, 'prometheus.yml');
    writeFileSync(file, JSON.stringify(config)); // YAML includes JSON.
    const flags = [`--config.file=${file}`, `--storage.tsdb.path=${join(cluster.dir, 'tsdb')}`];
    prometheus = spawn('prometheus', [...flags, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await eventually('all nodes are scraped', async () => (await ask('sum(up)'))[0]?.value[1] === '3');
  });

  afterAll(async () => {
    const ended = new Promise((resolve) => prometheus?.once('exit', resolve));
    if (prometheus?.kill('SIGKILL')) await ended;
    await cluster?.stop();
  });

  async function ask(query: string): Promise<readonly { readonly value: readonly [number, string] }[]> {
    const response = await fetch(`${url}/api/v1/query`, { method: 'POST', body: new URLSearchParams({ query }) });
    const answer = (await response.json()) as { status: string; error?: string; data: { result: never[] } };
    if (answer.status !== 'success') throw new Error(`${query}: ${answer.error}`);
    return answer.data.result;
  }

  /** Locks with and without a wait, keys, and a session that ends. */
  async function use(): Promise<void> {
    await using client = await connect({ endpoints: cluster.endpoints });
    for (let i = 0; i < 5; i++) {
      const first = await client.lock('l').acquire();
      const second = client.lock('l').acquire();
      await client.kv.put(`k${i}`, 'v');
      await client.kv.get(`k${i}`);
      await first.release();
      await (await second).release();
    }
  }

  test('answers every query of the dashboard', async () => {
    expect(panels.flatMap(({ targets = [] }) => targets).length).toBeGreaterThan(40);
    await use();
    for (const { title, targets = [] } of panels) {
      for (const { expr } of targets) {
        const query = expr
          .replaceAll('$job', 'remora')
          .replaceAll('$instance', '.*')
          .replaceAll('$__rate_interval', '20s');
        expect(query).not.toContain('$');
        await eventually(`${title}: ${query}`, async () => {
          const found = (await ask(query)).filter(({ value: [, text] }) => text !== 'NaN');
          if (found.length > 0 || MAY_BE_EMPTY.includes(title)) return true;
          await use(); // Rates are about the last seconds.
          return false;
        });
      }
    }
  });

  test('evaluates every alert rule, and none fires in a cluster that is well', async () => {
    const { groups } = await eventually('all rules are evaluated', async () => {
      const { data } = (await (await fetch(`${url}/api/v1/rules`)).json()) as { data: { groups: Group[] } };
      return data.groups.every(({ rules }) => rules.every(({ health }) => health !== 'unknown')) && data;
    });
    const rules = groups.flatMap(({ rules }) => rules);
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(rules.filter(({ state }) => state === 'firing').map(({ name }) => name)).toEqual([]);
  });
});

interface Group {
  readonly rules: readonly { readonly name: string; readonly health: string; readonly state: string }[];
}
