/** The log of a node: its level can be changed while it runs, and slow requests say where their time went. */
import { fileURLToPath } from 'node:url';
import { connect } from 'remora';
import { afterEach, expect, test } from 'vitest';
import { jsonHere, runHere } from './command-line.ts';
import { eventually, pause } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

let cluster: Cluster | undefined;
afterEach(() => cluster?.stop());

type Line = Readonly<Record<string, unknown>>;

function linesOf(node: NodeProcess, message: string): readonly Line[] {
  const lines = node.log().trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Line).filter(({ msg }) => msg === message);
}

test('the level of any node is changed through any gateway, until the node ends', async () => {
  cluster = await Cluster.start();
  const [n1, n2] = cluster.nodes;
  if (n1 === undefined || n2 === undefined) throw new Error('no nodes');
  const level = (...args: readonly string[]) => jsonHere([n1.client], ['admin', 'log-level', ...args]);
  expect(await level('n2')).toEqual({ node: 2, level: 'info', before: 'info' });
  expect(await level('n2', 'warn')).toEqual({ node: 2, level: 'warn', before: 'info' });
  expect(linesOf(n2, 'the log level is changed')).toMatchObject([{ node: 'n2', before: 'info', now: 'warn' }]);
  expect(await runHere([n1.client], ['admin', 'log-level', 'n2', 'loud'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('debug, info, warn, error'),
  });
  await n2.end('SIGTERM');
  expect(linesOf(n2, 'node has stopped')).toEqual([]); // That is of level info.
  n2.start();
  await n2.untilReady();
  expect(await level('2')).toEqual({ node: 2, level: 'info', before: 'info' });
});

const FAULTY = ['--import', fileURLToPath(new URL('faulty-process.mjs', import.meta.url))];

test('a slow write is logged by gateway, leader and log, and counted', async () => {
  const flags = { 'slow-request': '200ms' };
  cluster = await Cluster.start({ nodes: 1, nodeArguments: FAULTY, flags });
  const node = cluster.node(1);
  await using client = await connect({ endpoints: cluster.endpoints });
  await node.ask({ diskHangs: true });
  // A node that syncs on its event loop completes the first one, and leaves the disk to its thread pool from then on.
  const writing = client.kv.put('k', 'v').then(() => client.kv.put('k', 'w'));
  await pause(500); // What is tested: the disk does not answer for longer than the limit.
  await node.ask({ diskHangs: false });
  await writing;
  const [request] = await eventually('the gateway logs it', () => {
    const lines = linesOf(node, 'a request was slow').filter(({ kind }) => kind === 'put');
    return lines.length > 0 && lines;
  });
  expect(request).toMatchObject({ level: 'warn', attempts: 1, rangeId: 2, code: 'OK', searchedMs: 0 });
  expect(Number(request?.tookMs)).toBeGreaterThanOrEqual(200);
  const [entry] = linesOf(node, 'an entry was slow to commit');
  expect(entry).toMatchObject({ rangeId: 2, commands: 1, request: request?.request });
  expect(request?.request).toMatch(/^[0-9a-f]{16}$/);
  expect(linesOf(node, 'a synced write to the log was slow: its disk is slow or busy')).toHaveLength(1);
  const [count = 0] = (await node.metrics('remora_commit_seconds_count')).values();
  expect(count).toBeGreaterThan(1);
});
