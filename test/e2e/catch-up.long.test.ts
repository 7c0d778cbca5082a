import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { type Cluster, withCluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

/** Far more than the log keeps behind a checkpoint for followers that lag (8 MiB). */
const VALUES = 32;
const VALUE_BYTES = 512 * 1024;
const KEYS = 8;
/** Enough that receiving and installing it takes a while. */
const MANY = 96;

test('a node that was away too long for the log is caught up by a snapshot, also when it is killed meanwhile, and then bears the cluster', async () => {
  await withCluster({ flags: { 'checkpoint-interval': '200ms', 'checkpoint-bytes': '1MiB' } }, async (cluster) => {
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '20s' });
    await client.kv.put('before', 'it went');
    const away = (await cluster.leader()) === 3 ? 2 : 3;
    const node = cluster.node(away);
    await node.end('SIGKILL');
    const written = await writeMuch(client);
    const leader = await cluster.leader();
    await eventually('the log is cut', async () => ((await counter(cluster, leader, 'compactions')) ?? 0) > 0);

    // Killed as soon as it runs, and again as soon as it has caught up.
    node.start();
    await eventually('it runs', async () => (await counter(cluster, away, 'snapshotsReceived')) !== undefined);
    await node.end('SIGKILL');
    node.start();
    await eventually('it has caught up', () => hasCaughtUp(cluster, away));
    await node.end('SIGKILL');
    node.start();
    await node.untilReady();
    await eventually('it has caught up again', () => hasCaughtUp(cluster, away));
    const sent = await Promise.all([1, 2, 3].map((n) => counter(cluster, n, 'snapshotsSent')));
    expect(sent.reduce<number>((sum, each = 0) => sum + each, 0)).toBeGreaterThan(0);

    // Now the others depend on it.
    const other = [1, 2, 3].find((n) => n !== away) ?? 1;
    await cluster.node(other).end('SIGKILL');
    expect((await client.kv.get('before'))?.value.toString()).toBe('it went');
    await using through = await connect({ endpoints: [node.client], discover: false });
    for (const [key, digest] of written) {
      for (const serializable of [true, false]) {
        expect(digestOf((await through.kv.get(key, { serializable }))?.value)).toBe(digest);
      }
    }
    await client.kv.put('after', 'it came back');
  });
});

test('a node that is killed again and again while it receives and installs a snapshot has it in the end, whole', async () => {
  await withCluster({ flags: { 'checkpoint-interval': '200ms', 'checkpoint-bytes': '1MiB' } }, async (cluster) => {
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '20s' });
    const away = (await cluster.leader()) === 3 ? 2 : 3;
    const node = cluster.node(away);
    await node.end('SIGKILL');
    const written = await writeMuch(client, MANY);
    const leader = await cluster.leader();
    await eventually('the log is cut', async () => ((await counter(cluster, leader, 'compactions')) ?? 0) > 0);

    for (const afterMs of [0, 20, 60]) {
      node.start();
      await eventually(
        'a snapshot is on its way',
        async () => (await staged(node)) > 0 || (await hasCaughtUp(cluster, away)),
      );
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      await node.end('SIGKILL');
    }
    node.start();
    await node.untilReady();
    await eventually('it has caught up', () => hasCaughtUp(cluster, away));
    await eventually('no staged file is left', async () => (await staged(node)) === 0);

    await using through = await connect({ endpoints: [node.client], discover: false });
    for (const [key, digest] of written) {
      expect(digestOf((await through.kv.get(key, { serializable: true }))?.value)).toBe(digest);
    }
  });
});

/** Files of snapshots that the node is receiving or installing. */
async function staged(node: NodeProcess): Promise<number> {
  return (await readdir(join(node.dataDir, 'snapshots')).catch(() => [])).length;
}

/** What each key holds in the end. */
async function writeMuch(client: RemoraClient, keys = KEYS): Promise<ReadonlyMap<string, string>> {
  const written = new Map<string, string>();
  for (let i = 0; i < Math.max(VALUES, keys); i++) {
    const value = Buffer.alloc(VALUE_BYTES, `value ${i} `);
    await client.kv.put(`much/${i % keys}`, value);
    written.set(`much/${i % keys}`, digestOf(value));
  }
  return written;
}

function digestOf(value: Uint8Array | undefined): string {
  return createHash('sha256')
    .update(value ?? 'absent')
    .digest('hex');
}

/** One of the counters of a node's Raft host; undefined when it does not answer. */
async function counter(cluster: Cluster, n: number, name: string): Promise<number | undefined> {
  return (await cluster.node(n).metrics('remora_raft_events_total')).get(`event="${name}"`);
}

async function hasCaughtUp(cluster: Cluster, n: number): Promise<boolean> {
  const [own = 0, leaders = 1] = await Promise.all([n, await cluster.leader()].map((each) => applied(cluster, each)));
  return own >= leaders;
}

async function applied(cluster: Cluster, n: number): Promise<number | undefined> {
  return [...(await cluster.node(n).metrics('remora_range_applied_index')).values()][0];
}
