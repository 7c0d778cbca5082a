import { connect } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KvClient } from '../chaos/clients/kv-client.ts';
import { RawKv } from '../chaos/clients/raw-kv.ts';
import { SdkKv } from '../chaos/clients/sdk-kv.ts';
import { checkLinearizable, HistoryRecorder, registerModel } from '../checkers/index.ts';
import { eventually, pause } from './eventually.ts';
import { Cluster } from './harness.ts';

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster?.stop());

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

/** An election takes one or two seconds; this leaves room for a busy machine. */
const ELECTION_MS_MAX = 20_000;

test('a leader that is stopped gracefully hands over: clients see no error, and wait not much longer than for an election', async () => {
  await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '30s' });
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
  expect(slowestMs).toBeLessThan(ELECTION_MS_MAX);
  leader.start();
  await leader.untilReady();
});

test('after all three nodes are killed at once under load, every acknowledged write is there', async () => {
  await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '20s' });
  const acknowledged: string[] = [];
  let over = false;
  const write = async (_: unknown, writer: number): Promise<void> => {
    for (let n = 0; !over; n++) {
      const key = `acknowledged/${writer}/${n}`;
      await client.kv.put(key, key);
      acknowledged.push(key);
    }
  };
  const writers = Array.from({ length: 16 }, write);
  const more = async (count: number): Promise<void> => {
    const target = acknowledged.length + count;
    await eventually(`${count} more writes are acknowledged`, () => acknowledged.length >= target);
  };
  await more(500);
  for (const node of cluster.nodes) node.signal('SIGKILL');
  await Promise.all(cluster.nodes.map((node) => node.exit));
  for (const node of cluster.nodes) node.start();
  await cluster.untilReady();
  await more(200);
  over = true;
  await Promise.all(writers);
  const { kvs } = await client.kv.range({ prefix: 'acknowledged/' });
  const there = new Map(kvs.map(({ key, value }) => [key.toString(), value.toString()]));
  expect(acknowledged.filter((key) => there.get(key) !== key)).toEqual([]);
});

describe('a leader that is frozen', () => {
  test('is replaced, and serves nothing stale when it wakes', async () => {
    const history = new HistoryRecorder(() => Math.round(performance.now() * 1e6));
    const frozen = cluster.node(await cluster.leader());
    const others = cluster.nodes.filter((node) => node !== frozen).map(({ client }) => client);
    await using remora = await connect({ endpoints: others, requestTimeout: '20s' });
    const elsewhere = new SdkKv('elsewhere', remora);
    // It reads by itself, without asking others first, as long as it believes in its lease.
    const atFrozen = new RawKv({ name: 'at-frozen', endpoint: frozen.client, timeoutMs: 20_000 });
    try {
      const key = 'frozen';
      await recordedPut(history, elsewhere, key, 'before');
      await recordedGet(history, atFrozen, key);
      frozen.signal('SIGSTOP');
      // Nothing else than a new leader can acknowledge this one.
      await recordedPut(history, elsewhere, key, 'after');
      // These wait in its socket, and are the first thing that it sees.
      const waiting = Array.from({ length: 50 }, () => recordedGet(history, atFrozen, key));
      const late = Array.from({ length: 10 }, (_, i) => recordedPut(history, atFrozen, key, `late-${i}`));
      await pause(200);
      frozen.signal('SIGCONT');
      const read = await Promise.all(waiting);
      expect(read).not.toContain('before');
      await Promise.all(late);
      await recordedGet(history, elsewhere, key);
      expect(checkLinearizable(registerModel, history.records())).toMatchObject({ result: 'ok' });
    } finally {
      if (frozen.running) frozen.signal('SIGCONT');
      atFrozen.close();
    }
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

async function recordedGet(history: HistoryRecorder, client: KvClient, key: string): Promise<unknown> {
  const open = history.begin({ c: client.name, k: key, op: 'get' });
  const outcome = await client.get(key);
  if (outcome.type !== 'done') return open.drop();
  const out = outcome.out ?? null;
  open.done({ ok: true, out });
  return out;
}

async function recordedPut(history: HistoryRecorder, client: KvClient, key: string, value: string): Promise<void> {
  const open = history.begin({ c: client.name, k: key, op: 'put', v: value });
  const outcome = await client.put(key, value);
  if (outcome.type === 'done') open.done({ ok: true });
  else if (outcome.type === 'unknown') open.unknown();
  else open.drop();
}
