import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, RemoraError } from 'remora';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { SmallDisk } from '../chaos/nodes/small-disk.ts';
import { describeWith } from '../support/needs.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import { eventuallyShown } from './health-views.ts';

/** `remora --help`: the disk is full, or failed. */
const DISK = 74;
/** Room for the segments of a log, which are made in advance, and some for the engine. */
const MEGABYTES = 400;
const RESERVE_MB = 100;

const dir = mkdtempSync(join(tmpdir(), 'remora-disk-full-'));
/** Undefined where no file system may be mounted. */
const disk = SmallDisk.mount({ node: 1, dir, megabytes: MEGABYTES });
let cluster: Cluster;

beforeAll(async () => {
  if (disk === undefined) return;
  cluster = await Cluster.start({
    nodes: 1,
    flags: { 'data-dir': disk.dataDir, 'checkpoint-interval': '200ms', 'disk-reserve': `${RESERVE_MB}MiB` },
  });
});
afterEach(() => disk?.free());
afterAll(async () => {
  await cluster?.stop();
  disk?.unmount();
  rmSync(dir, { recursive: true, force: true });
});

const missing = disk === undefined ? 'no file system may be mounted here (mount -t tmpfs, as root)' : undefined;

describeWith(missing, 'a node whose disk is full', () => {
  test('below its reserve a node takes in no values, and does everything else', async () => {
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '1s' });
    await client.kv.put('doomed', 'v');
    disk?.fillBut(RESERVE_MB - 1);
    await eventually('it refuses values', async () => {
      const error = await client.kv.put('more', 'v').catch((thrown: unknown) => thrown);
      return (
        error instanceof RemoraError && error.code === 'RESOURCE_EXHAUSTED' && /--disk-reserve/.test(error.message)
      );
    });
    const txn = client.kv.txn({ success: [{ put: 'more', value: 'v' }] });
    await expect(txn).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    const held = await client.lock('l').acquire({ data: 'mine' });
    await held.release();
    expect(await client.kv.delete('doomed')).toMatchObject({ deleted: 1 });
    const { ports } = cluster.node(1);
    const metrics = await (await fetch(`http://127.0.0.1:${ports.health}/metrics`)).text();
    expect(metrics).toMatch(/^remora_disk_refusals_total [1-9]/m);
    expect(metrics).toMatch(/^remora_disk_available_bytes [1-9]/m);
    const full = { name: 'diskReserve', severity: 'critical', scope: 'node', nodeId: 1 };
    // The only node there is goes on taking clients: no other one would serve better.
    await eventuallyShown(cluster.node(1), [expect.objectContaining(full)]);
    disk?.free();
    await eventuallyShown(cluster.node(1), []);
    await eventually('it takes values again', () =>
      client.kv.put('more', 'v').then(
        () => true,
        () => false,
      ),
    );
  });

  test('a node whose engine finds no room says so, ends with a code of its own, and goes on once there is some', async () => {
    const node = cluster.node(1);
    const client = await connect({ endpoints: cluster.endpoints, requestTimeout: '1s' });
    await client.kv.put('before', 'kept');
    await node.end('SIGTERM');
    node.start({ 'disk-reserve': '0' }); // as when something else fills its disk
    await node.untilReady();
    disk?.fill();
    // Each is in the log, which has room; the engine needs more for a checkpoint.
    await eventually('the node has ended', async () => {
      await client.kv.put('filler', 'x'.repeat(50_000)).catch(() => undefined);
      return !node.running;
    });
    await client.close();
    expect((await node.exit).code).toBe(DISK);
    expect(node.logTail(5)).toMatch(/cannot write the storage engine in .*engine: the disk is full: free space/);
    node.start({ 'disk-reserve': '0' });
    await eventually('it has ended again', () => !node.running);
    expect((await node.exit).code).toBe(DISK);
    disk?.free();
    node.start();
    await node.untilReady();
    await using again = await connect({ endpoints: cluster.endpoints });
    expect((await again.kv.get('before'))?.value.toString()).toBe('kept');
  });
});
