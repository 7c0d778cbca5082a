import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SmallDisk } from '../chaos/nodes/small-disk.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

/** `remora --help`: the disk is full, or failed. */
const DISK = 74;
/** Room for the segments of a log, which are made in advance, and some for the engine. */
const MEGABYTES = 160;

const dir = mkdtempSync(join(tmpdir(), 'remora-disk-full-'));
/** Undefined where no file system may be mounted. */
const disk = SmallDisk.mount({ node: 1, dir, megabytes: MEGABYTES });
let cluster: Cluster;

beforeAll(async () => {
  if (disk === undefined) return;
  cluster = await Cluster.start({ nodes: 1, flags: { 'data-dir': disk.dataDir, 'checkpoint-interval': '200ms' } });
});
afterAll(async () => {
  await cluster?.stop();
  disk?.unmount();
  rmSync(dir, { recursive: true, force: true });
});

test.skipIf(disk === undefined)(
  'a node whose engine finds no room says so, ends with a code of its own, and goes on once there is some',
  async () => {
    const node = cluster.node(1);
    const client = await connect({ endpoints: cluster.endpoints, requestTimeout: '1s' });
    await client.kv.put('before', 'kept');
    disk?.fill();
    // Each is in the log, which has room; the engine needs more for a checkpoint.
    await eventually('the node has ended', async () => {
      await client.kv.put('filler', 'x'.repeat(50_000)).catch(() => undefined);
      return !node.running;
    });
    await client.close();
    expect((await node.exit).code).toBe(DISK);
    expect(node.logTail(5)).toMatch(/cannot write the storage engine in .*engine: the disk is full: free space/);
    node.start();
    await eventually('it has ended again', () => !node.running);
    expect((await node.exit).code).toBe(DISK);
    disk?.free();
    node.start();
    await node.untilReady();
    await using again = await connect({ endpoints: cluster.endpoints });
    expect((await again.kv.get('before'))?.value.toString()).toBe('kept');
  },
);
