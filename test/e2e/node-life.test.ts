/** How a node starts, reloads and stops: ports that are taken, SIGHUP, --drain-delay, fatal messages. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

const PORT_TAKEN = 4;
let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 3 });
});
afterAll(() => cluster?.stop());

interface Listed {
  readonly nodes: readonly { readonly name: string }[];
}

const knownTo = (node: NodeProcess): readonly string[] =>
  (JSON.parse(readFileSync(join(node.dataDir, 'nodes.json'), 'utf8')) as Listed).nodes.map(({ name }) => name);

const lines = (node: NodeProcess): readonly Readonly<Record<string, unknown>>[] =>
  node
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

async function withTaken(port: number, run: () => Promise<void>): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port }, resolve));
  try {
    await run();
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

test('a node whose port is taken has not joined: the cluster knows nothing of it', async () => {
  const spare = await cluster.addJoining();
  const { client, peer, http, health } = spare.ports;
  const flags = { client: '--client-listen', peer: '--peer-listen', http: '--http-listen', health: '--health-listen' };
  for (const [kind, port] of Object.entries({ client, peer, http, health })) {
    await withTaken(port, async () => {
      spare.start();
      expect((await spare.exit).code).toBe(PORT_TAKEN);
    });
    const said = spare.log().split('\n');
    const flag = flags[kind as keyof typeof flags];
    // Said once, and nothing else is wrong.
    expect(said.filter((line) => line.includes(`port ${port} `) && line.includes(flag))).toHaveLength(1);
  }
  expect(JSON.parse(readFileSync(join(spare.dataDir, 'node.json'), 'utf8')).nodeId).toBeUndefined();
  for (const n of [1, 2, 3]) expect(knownTo(cluster.node(n))).toEqual(['n1', 'n2', 'n3']);
  spare.start();
  await spare.untilReady();
  await eventually('it is listed once', async () => {
    const known = knownTo(cluster.node(1));
    return known.filter((name) => name === spare.name).length === 1;
  });
});

test('SIGHUP never stops a node: it changes the log level, and names options that need a restart', async () => {
  const node = cluster.node(3);
  await node.end('SIGTERM');
  const config = join(cluster.dir, 'n3.yaml');
  writeFileSync(config, 'log-level: warn\ncheckpoint-interval: 30s\n');
  node.start({ config });
  await node.untilReady();
  const { pid } = node;
  const { length: before } = lines(node);
  const since = () => lines(node).slice(before);

  writeFileSync(config, 'log-level: info\ncheckpoint-interval: 20s\n');
  node.signal('SIGHUP');
  await eventually('it logs more', async () => since().some(({ level }) => level === 'info'));
  const named = since().filter(({ options }) => options !== undefined);
  expect(named).toEqual([expect.objectContaining({ level: 'warn', options: ['--checkpoint-interval'] })]);

  writeFileSync(config, 'log-level: [');
  node.signal('SIGHUP');
  await eventually('it says that the file is wrong', async () =>
    since().some(({ level, msg }) => level === 'error' && String(msg).includes('cannot be read')),
  );
  expect(node.pid).toBe(pid);
  await using client = await connect({ endpoints: [node.client] });
  expect((await client.kv.put('after', 'SIGHUP')).revision).toBeGreaterThan(0);
});

test('a draining node is not ready, and serves until the delay is over', async () => {
  const node = cluster.node(2);
  await node.end('SIGTERM');
  node.start({ 'drain-delay': '3s' });
  await node.untilReady();
  await using client = await connect({ endpoints: [node.client], discover: false });
  await client.kv.put('before', 'the stop');
  const begunMs = performance.now();
  const ended = node.end('SIGTERM');
  const ready = async () => (await fetch(`http://${node.health}/ready`)).status;
  await eventually('it is not ready', async () => (await ready()) === 503);
  await client.kv.put('during', 'the drain');
  await using late = await connect({ endpoints: [node.client], discover: false });
  expect((await late.kv.get('during'))?.value.toString()).toBe('the drain');
  expect((await ended).code).toBe(0);
  expect(performance.now() - begunMs).toBeGreaterThan(3_000);
});
