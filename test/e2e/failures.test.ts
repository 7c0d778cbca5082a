import { connect } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KvClient } from '../chaos/kv-client.ts';
import { RawKv } from '../chaos/raw-kv.ts';
import { openSdkKv } from '../chaos/sdk-kv.ts';
import { evidenceOf, faultsOf } from '../chaos/verdict.ts';
import { Workload } from '../chaos/workload.ts';
import { eventually, pause } from './eventually.ts';
import { Cluster } from './harness.ts';

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster?.stop());

/** Runs `events` under recorded load, and gives every promise that was broken. */
async function underLoad(events: (workload: Workload) => Promise<void>): Promise<readonly string[]> {
  const workload = new Workload({ endpoints: cluster.endpoints, seed: 1, thinkMs: 8 });
  try {
    await workload.start();
    await untilAcknowledged(workload, 200);
    await events(workload);
    await workload.stop();
    return faultsOf(await evidenceOf(workload));
  } finally {
    await workload.stop();
    await workload.close();
  }
}

/** Until so many more writes have been acknowledged. */
async function untilAcknowledged(workload: Workload, count: number): Promise<void> {
  const acknowledged = () => [...workload.writes.values()].filter(({ outcome }) => outcome === 'done').length;
  const target = acknowledged() + count;
  await eventually(`${count} more writes are acknowledged`, () => acknowledged() >= target, { timeoutMs: 30_000 });
}

test('a graceful stop of all nodes ends with code 0, and what was written is there afterwards', async () => {
  const client = await connect({ endpoints: cluster.endpoints });
  const keys = Array.from({ length: 100 }, (_, i) => `kept/${i}`);
  await Promise.all(keys.map((key) => client.kv.put(key, `value of ${key}`)));
  await client.close();
  expect(await cluster.stopGracefully()).toEqual([0, 0, 0]);
  for (const node of cluster.nodes) node.start();
  await cluster.untilReady();
  await using again = await connect({ endpoints: cluster.endpoints });
  const { kvs, count } = await again.kv.range({ prefix: 'kept/' });
  expect(count).toBe(100);
  expect(kvs.every(({ key, value }) => value.toString() === `value of ${key}`)).toBe(true);
});

test('a leader that is stopped gracefully hands over: clients see no error, and wait no longer than for an election', async () => {
  await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '5s' });
  const leader = cluster.node(await cluster.leader());
  let over = false;
  let slowestMs = 0;
  const writing = (async () => {
    while (!over) {
      const begun = performance.now();
      await client.kv.put('handed-over', String(begun));
      slowestMs = Math.max(slowestMs, performance.now() - begun);
    }
  })();
  await pause(100);
  const { code } = await leader.end('SIGTERM');
  over = true;
  await writing;
  expect(code).toBe(0);
  expect(slowestMs).toBeLessThan(2_500);
  leader.start();
  await leader.untilReady();
});

test('after all three nodes are killed at once under load, every acknowledged write is there', async () => {
  const faults = await underLoad(async (workload) => {
    for (const node of cluster.nodes) node.signal('SIGKILL');
    await Promise.all(cluster.nodes.map((node) => node.exit));
    workload.nextRound();
    for (const node of cluster.nodes) node.start();
    await cluster.untilReady();
    await untilAcknowledged(workload, 200);
  });
  expect(faults).toEqual([]);
});

describe('a leader that is frozen', () => {
  test('is replaced, and serves nothing stale when it wakes', async () => {
    const faults = await underLoad(async (workload) => {
      const frozen = cluster.node(await cluster.leader());
      const others = cluster.nodes.filter((node) => node !== frozen).map(({ client }) => client);
      // It reads by itself, without asking others first, as long as it believes in its lease.
      const atFrozen = new RawKv({ name: 'at-frozen', endpoint: frozen.client, timeoutMs: 20_000 });
      const elsewhere = await openSdkKv({ name: 'elsewhere', endpoints: others, timeoutMs: 20_000 });
      try {
        const key = 'frozen';
        await recordedPut(workload, elsewhere, key, 'before');
        await recordedGet(workload, atFrozen, key);
        frozen.signal('SIGSTOP');
        // Nothing else than a new leader can acknowledge this one.
        await recordedPut(workload, elsewhere, key, 'after');
        // These wait in its socket, and are the first thing that it sees.
        const waiting = Array.from({ length: 50 }, () => recordedGet(workload, atFrozen, key));
        const late = Array.from({ length: 10 }, (_, i) => recordedPut(workload, atFrozen, key, `late-${i}`));
        await pause(200);
        frozen.signal('SIGCONT');
        const read = await Promise.all(waiting);
        expect(read).not.toContain('before');
        await Promise.all(late);
        await untilAcknowledged(workload, 200);
      } finally {
        if (frozen.running) frozen.signal('SIGCONT');
        atFrozen.close();
        await elsewhere.close();
      }
    });
    expect(faults).toEqual([]);
  });
});

test('a fourth node joins a running cluster, serves clients, and knows its id after a restart', async () => {
  const spare = await cluster.addJoining();
  spare.start();
  await spare.untilReady();
  await using client = await connect({ endpoints: [spare.client] });
  await client.kv.put('through-the-fourth', 'yes');
  expect((await client.kv.get('through-the-fourth'))?.value.toString()).toBe('yes');
  const nodes = async () =>
    (await client.status()).view.nodes.map(({ descriptor: { nodeId, name } }) => `${name}=${nodeId}`).sort();
  const before = await eventually('all nodes are known', async () => {
    const known = await nodes();
    return known.length === 4 ? known : undefined;
  });
  await cluster.restart(4);
  expect(await nodes()).toEqual(before);
  await eventually('it serves', async () => (await client.kv.put('through-the-fourth', 'again')).revision);
});

async function recordedGet(workload: Workload, client: KvClient, key: string): Promise<unknown> {
  const open = workload.registers.begin({ c: client.name, k: key, op: 'get' });
  const outcome = await client.get(key);
  if (outcome.type !== 'done') return open.drop();
  const out = outcome.out ?? null;
  open.done({ ok: true, out });
  return out;
}

async function recordedPut(workload: Workload, client: KvClient, key: string, value: string): Promise<void> {
  const open = workload.registers.begin({ c: client.name, k: key, op: 'put', v: value });
  const outcome = await client.put(key, value);
  if (outcome.type === 'done') open.done({ ok: true });
  else if (outcome.type === 'unknown') open.unknown();
  else open.drop();
}
