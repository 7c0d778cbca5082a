/**
 * Clients that were given one endpoint, while that node stands still: all others are there, and it keeps its
 * connections.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { connect } from 'remora';
import { AdminClient } from 'remora/admin';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Run } from './command.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

/** Functional bounds: a client that goes on at another node needs a second or two, and an election. */
const MOVED_WITHIN_MS = 60_000;
/** Of a client that does not move: longer than it waits for one request. */
const REQUEST_TIMEOUT_MS = 60_000;

let cluster: Cluster;
let given: NodeProcess;
const thaw: (() => void)[] = [];

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster?.stop());
beforeEach(async () => {
  given = cluster.node(await cluster.leader()); // the worst one to lose
});
afterEach(async () => {
  for (const again of thaw.splice(0)) again();
  await cluster.untilReady();
});

function freeze(node: NodeProcess): void {
  node.signal('SIGSTOP');
  thaw.push(() => node.signal('SIGCONT'));
}

test('requests, watches, sessions and waiters move to another node', async () => {
  const endpoints = given.client;
  await using client = await connect({ endpoints, requestTimeout: REQUEST_TIMEOUT_MS, sessionTtl: '15s' });
  await using other = await connect({ endpoints, requestTimeout: REQUEST_TIMEOUT_MS, sessionTtl: '15s' });
  const held = await client.lock('moves').acquire();
  const waiting = other.lock('moves').acquire();
  const seen: string[] = [];
  const watch = client.kv.watch('moved');
  void (async () => {
    for await (const { kv } of watch) seen.push(kv.value.toString());
  })();
  await eventually(
    'the waiter has joined the queue',
    async () => (await client.locks.show('moves'))?.waiters.length === 1,
  );
  freeze(given);
  await client.kv.put('moved', 'yes');
  await eventually('the watch goes on', () => seen.includes('yes'), { timeoutMs: MOVED_WITHIN_MS });
  expect([await held.check(), held.state, held.signal.aborted]).toEqual([true, 'active', false]);
  await held.release();
  await using next = await waiting;
  expect(await next.check()).toBe(true);
});

test('a client that may not look for others waits for its node', async () => {
  const options = { endpoints: given.client, discover: false, requestTimeout: '3s' } as const;
  await using client = await connect(options);
  await client.kv.put('stays', '1');
  freeze(given);
  await expect(client.kv.put('stays', '2')).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
});

test('a session whose thread is busy is renewed through another node', async () => {
  const program = fileURLToPath(new URL('lock-frozen.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, given.client, 'frozen'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = once(child, 'exit');
  await eventually('it holds the lock', () => said.includes('held\n'));
  freeze(given);
  child.stdin.end('go\n');
  await ended;
  expect(said).toBe('held\nactive false true\n');
});

test('a command of the command line goes on, and so does a view that is looked at again and again', async () => {
  const lock = new Run([given.client], ['lock', 'run', 'cli', '--ttl', '15s', '--', 'sleep', '600'], {});
  const view = new Run([given.client], ['admin', 'nodes', '--watch', '500ms', '--json'], {});
  const looks = (): number => view.out.split('\n').length;
  await using observer = await connect({ endpoints: cluster.endpoints, requestTimeout: REQUEST_TIMEOUT_MS });
  try {
    await eventually('the lock is held', async () => (await observer.locks.show('cli'))?.holders.length === 1);
    await eventually('the view has been shown some times', () => looks() > 5);
    freeze(given);
    const before = looks();
    await eventually('the view goes on', () => looks() > before + 5, { timeoutMs: MOVED_WITHIN_MS });
    const holder = (await observer.locks.show('cli'))?.holders[0];
    expect(holder).toBeDefined();
    await new Promise((resolve) => setTimeout(resolve, 16_000)); // longer than the session outlives its heartbeats
    expect(lock.child.exitCode).toBeNull();
    expect((await observer.locks.show('cli'))?.holders[0]?.version).toBe(holder?.version);
  } finally {
    lock.child.kill('SIGTERM');
    view.child.kill('SIGINT');
    await Promise.all([lock.ended, view.ended]);
  }
});

test('calls of an admin client go on', async () => {
  const admin = new AdminClient({ endpoints: [given.client], timeoutMs: REQUEST_TIMEOUT_MS, connectTimeoutMs: 2_000 });
  try {
    await admin.nodes();
    await admin.nodes();
    await eventually('it has been told of the others', async () => admin.endpoints.length === 3);
    freeze(given);
    expect((await admin.nodes()).nodes).toHaveLength(3);
  } finally {
    admin.close();
  }
});

test('an admin client that was given no loopback address does not try those that nodes advertise', async () => {
  const elsewhere = given.client.replace('127.0.0.1', '0.0.0.0'); // it leads to the node, and names no loopback address
  const admin = new AdminClient({ endpoints: [elsewhere], timeoutMs: 5_000, connectTimeoutMs: 2_000 });
  const local = new AdminClient({ endpoints: [given.client], timeoutMs: 5_000, connectTimeoutMs: 2_000 });
  try {
    for (const one of [admin, local, admin, local]) await one.nodes();
    await eventually('the other client was told', async () => local.endpoints.length === 3);
    expect(admin.endpoints).toEqual([elsewhere]);
  } finally {
    admin.close();
    local.close();
  }
});
