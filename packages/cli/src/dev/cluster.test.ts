import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '@remora/base';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DevCluster, type DevClusterOptions } from './cluster.ts';

/** Stands for a node: answers /ready, writes down its arguments, and fails as its data directory says. */
const FAKE_NODE = `
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
const flag = (name) => process.argv[process.argv.indexOf('--' + name) + 1];
const dir = flag('data-dir');
writeFileSync(dir + '/argv.json', JSON.stringify(process.argv.slice(2)));
if (existsSync(dir + '/refuse')) {
  console.error('the data directory is no good');
  process.exit(Number(readFileSync(dir + '/refuse', 'utf8')));
}
process.on('disconnect', () => process.exit(0));
if (existsSync(dir + '/stubborn')) process.on('SIGTERM', () => {});
else process.on('SIGTERM', () => { writeFileSync(dir + '/stopped', 'yes'); process.exit(0); });
createServer((request, response) => response.end('{}')).listen(Number(flag('health-listen').split(':')[1]), '127.0.0.1');
`;

let dir: string;
let said: string[];
let clusters: DevCluster[];
let basePort: number;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'remora-dev-'));
  writeFileSync(join(dir, 'fake-node.mjs'), FAKE_NODE);
  said = [];
  clusters = [];
  basePort = await freeBasePort();
});

afterEach(async () => {
  await Promise.all(clusters.map((cluster) => cluster.stop()));
  rmSync(dir, { recursive: true, force: true });
});

const never = new AbortController().signal;

async function open(options: Partial<DevClusterOptions> = {}): Promise<DevCluster> {
  const cluster = await DevCluster.open({
    dataDir: join(dir, 'dev'),
    nodes: undefined,
    basePort,
    readyTimeoutMs: 20_000,
    tls: false,
    nodeProgram: [process.execPath, join(dir, 'fake-node.mjs')],
    random: new SeededRandom(1),
    say: (line) => said.push(line),
    ...options,
  });
  clusters.push(cluster);
  return cluster;
}

async function stop(cluster: DevCluster): Promise<void> {
  clusters = clusters.filter((other) => other !== cluster);
  await cluster.stop();
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`nothing came of it; said so far:\n${said.join('\n')}`);
    await new Promise((next) => setTimeout(next, 20));
  }
}

test('the nodes are started with one another, report ready, and are stopped by SIGTERM', async () => {
  const cluster = await open();
  await cluster.start(never);
  expect(said.filter((line) => line.startsWith('starting'))).toHaveLength(3);
  expect(said.at(-1)).toMatch(/^cluster ready in \d+\.\d s$/);
  const argv = JSON.parse(readFileSync(join(dir, 'dev/n2/argv.json'), 'utf8')) as string[];
  expect(argv).toContain(`n1=127.0.0.1:${basePort + 1},n2=127.0.0.1:${basePort + 11},n3=127.0.0.1:${basePort + 21}`);
  await stop(cluster);
  for (const name of ['n1', 'n2', 'n3']) expect(readFileSync(join(dir, 'dev', name, 'stopped'), 'utf8')).toBe('yes');
});

test('a node that dies is started again', async () => {
  const cluster = await open({ nodes: 1 });
  await cluster.start(never);
  const child = cluster.nodes[0]?.child;
  const first = child?.pid ?? 0;
  process.kill(first, 'SIGKILL');
  await until(() => child?.pid !== undefined && child.pid !== first);
  expect(said.at(-1)).toBe('n1 died (SIGKILL); restarting it in 500ms');
});

test('a node that can never start ends the attempt with the end of its log', async () => {
  const cluster = await open({ nodes: 1 });
  writeFileSync(join(dir, 'dev/n1/refuse'), '3');
  await expect(cluster.start(never)).rejects.toThrow(
    /n1 ended \(exit code 3\) and is not restarted:\n {2}\| the data directory is no good\n {2}its log: .*n1\.log/,
  );
});

test('the token and the number of nodes are kept between runs', async () => {
  await stop(await open({ nodes: 2 }));
  const token = JSON.parse(readFileSync(join(dir, 'dev/dev.json'), 'utf8')).clusterToken;
  const again = await open({ random: new SeededRandom(9) });
  expect(again.nodes).toHaveLength(2);
  expect(JSON.parse(readFileSync(join(dir, 'dev/dev.json'), 'utf8')).clusterToken).toBe(token);
});

describe('refusals before anything is started (V2)', () => {
  test('another number of nodes than the data was made with', async () => {
    await stop(await open({ nodes: 1 }));
    await expect(open({ nodes: 3 })).rejects.toThrow('was made with 1 nodes; use --nodes 1');
    // A refusal lets the directory go.
    await open({ nodes: 1 });
  });

  test('a data directory that another cluster uses (V1)', async () => {
    await open({ nodes: 1 });
    await expect(open({ nodes: 1, basePort: basePort + 100 })).rejects.toThrow('is in use by another process');
  });

  test('a port that is taken, by its number and flag', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(basePort + 12, '127.0.0.1', resolve));
    await expect(open({ nodes: 2 })).rejects.toThrow(
      `port ${basePort + 12} on 127.0.0.1 is taken; choose another --base-port (now ${basePort})`,
    );
    await new Promise((resolve) => other.close(resolve));
  });
});

/** The ports after one that the system has just given out; they are free as a rule, and `open` checks them. */
/** Below the range from which systems take outgoing ports, so that nothing else takes one of ours between two runs. */
async function freeBasePort(): Promise<number> {
  while (true) {
    const base = randomInt(11_000, 31_000);
    const free = await Promise.all([0, 1, 2, 10, 11, 12, 20, 21, 22].map((offset) => isFree(base + offset)));
    if (free.every(Boolean)) return base;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
