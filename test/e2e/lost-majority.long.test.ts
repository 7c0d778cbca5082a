/** What becomes of a cluster that loses more nodes than it can bear, with all that they had. */
import { rm } from 'node:fs/promises';
import { connect } from 'remora';
import { expect, test } from 'vitest';
import { jsonHere, runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { type Cluster, withCluster } from './harness.ts';

interface RangesJson {
  readonly ranges: readonly {
    readonly id: number;
    readonly replicas: readonly { readonly nodeId: number; readonly type: string }[];
  }[];
}

interface NodesJson {
  readonly nodes: readonly { readonly name: string; readonly isMaster: boolean }[];
}

const RECOVER = ['admin', 'unsafe-recover', '--dead'];

/** Ends nodes for good: nothing of what they had is left. */
async function lose(cluster: Cluster, ...nodes: readonly number[]): Promise<void> {
  await Promise.all(
    nodes.map(async (n) => {
      await cluster.node(n).end('SIGKILL');
      await rm(cluster.node(n).dataDir, { recursive: true });
    }),
  );
}

async function masters(endpoints: readonly string[]): Promise<readonly string[]> {
  const { nodes } = (await jsonHere(endpoints, ['admin', 'nodes'])) as NodesJson;
  return nodes
    .filter(({ isMaster }) => isMaster)
    .map(({ name }) => name)
    .sort();
}

async function places(endpoints: readonly string[]): Promise<readonly (readonly number[])[]> {
  const { ranges } = (await jsonHere(endpoints, ['admin', 'ranges'])) as RangesJson;
  return ranges.map(({ replicas }) => replicas.filter(({ type }) => type === 'voter').map(({ nodeId }) => nodeId));
}

test('two of three nodes are gone with their data: what the third has goes on, and is on three nodes again', {
  timeout: 300_000,
}, async () => {
  await withCluster({ flags: { 'pre-split': 'm' } }, async (cluster) => {
    const left = cluster.endpoints.slice(0, 1);
    const before = await connect({ endpoints: [...cluster.endpoints] });
    for (let i = 0; i < 30; i++) await before.kv.put(`${i % 2 === 0 ? 'a' : 'z'}/${i}`, String(i));
    const held = await before.lock('job').acquire();
    const { version } = held;
    await held.release();

    expect(await runHere(left, [...RECOVER, 'n2,n3'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('alive'),
    });
    await before.close();
    await lose(cluster, 3);
    const needless = await eventually('the loss of one is noticed', async () => {
      const ended = await runHere(left, [...RECOVER, 'n3']);
      return ended.err.includes('nothing has lost its majority') ? ended : undefined;
    });
    expect(needless.code).toBe(1);
    await lose(cluster, 2);
    expect(await runHere(left, [...RECOVER, 'n3'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('n2 does not answer'),
    });
    await cluster.node(1).end('SIGKILL'); // what it knows of the others is on its disk
    cluster.node(1).start();

    const plan = await eventually('the loss is seen', async () => {
      const ended = await runHere(left, [...RECOVER, 'n2,n3', '--dry-run']);
      return ended.code === 0 ? ended : undefined;
    });
    expect(plan.out).toMatch(/^masters .*node 1, entry \d+ of term \d+/m);
    expect(plan.out).toContain('Data that\nonly the dead nodes had is lost');
    const unasked = await runHere(left, [...RECOVER, 'n2,n3']);
    expect(unasked).toMatchObject({ code: 2, err: expect.stringContaining('--yes-i-lose-data') });
    const done = await runHere(left, [...RECOVER, 'n2,n3', '--yes-i-lose-data']);
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining('done') });
    expect(await runHere(left, [...RECOVER, 'n2,n3', '--yes-i-lose-data'])).toMatchObject({ code: 1 });

    await using client = await connect({ endpoints: [...left], requestTimeout: '30s' });
    for (let i = 0; i < 30; i++) {
      const pair = await client.kv.get(`${i % 2 === 0 ? 'a' : 'z'}/${i}`);
      expect(pair?.value.toString()).toBe(String(i));
    }
    await client.kv.put('a/new', 'x');
    const again = await client.lock('job').acquire({ wait: '20s' });
    expect(again.version).toBeGreaterThan(version + 1_000_000);
    await again.release();

    for (let i = 0; i < 3; i++) (await cluster.addJoining()).start();
    await eventually('there are three masters again', async () => (await masters(left)).length === 3, {
      timeoutMs: 60_000,
    });
    expect(await runHere(left, ['admin', 'nodes', 'decommission', 'n1', '--yes'])).toMatchObject({ code: 0 });
    const others = cluster.endpoints.slice(3);
    expect(await masters(others)).toEqual(['n4', 'n5', 'n6']);
    await cluster.node(1).end('SIGTERM');
    await eventually('all ranges have three replicas', async () =>
      (await places(others)).every((nodes) => nodes.length === 3 && Math.min(...nodes) > 3),
    );
    await using later = await connect({ endpoints: [...others], requestTimeout: '30s' });
    expect((await later.kv.get('a/new'))?.value.toString()).toBe('x');
    await later.kv.put('z/new', 'y');
  });
});

test('two of five nodes are gone: only the ranges that lost their majority lose by it; one that comes back does no harm', {
  timeout: 300_000,
}, async () => {
  const keys = ['a', 'c', 'e', 'g', 'i'];
  await withCluster({ nodes: 5, flags: { 'pre-split': keys.slice(1).join(',') } }, async (cluster) => {
    const left = cluster.endpoints.slice(0, 3);
    await using client = await connect({ endpoints: [...left], requestTimeout: '30s' });
    for (const key of keys) await client.kv.put(`${key}/1`, key);
    const both = (await places(left)).filter((nodes) => nodes.includes(4) && nodes.includes(5)).length;
    expect(both).toBeGreaterThan(0);
    await lose(cluster, 4);
    await cluster.node(5).end('SIGKILL');

    const plan = await eventually('the loss is seen', async () => {
      const found = await jsonHere(left, [...RECOVER, 'n4,n5', '--dry-run']);
      const { lost } = found as { readonly lost: readonly { readonly rangeId: number }[] };
      return lost.length === both ? lost : undefined;
    });
    expect(plan.map(({ rangeId }) => rangeId)).not.toContain(0); // the masters have three of five
    expect(await runHere(left, [...RECOVER, 'n4,n5', '--yes-i-lose-data'])).toMatchObject({ code: 0 });
    for (const key of keys) expect((await client.kv.get(`${key}/1`))?.value.toString()).toBe(key);
    for (const key of keys) await client.kv.put(`${key}/2`, key);

    cluster.node(5).start();
    expect(await cluster.node(5).exit).toMatchObject({ code: 3 });
    expect(cluster.node(5).log()).toContain('was removed from the cluster');
    expect((await client.kv.range({ prefix: '' })).count).toBe(2 * keys.length);
    await eventually('all ranges have three replicas', async () =>
      (await places(left)).every((nodes) => nodes.length === 3 && Math.max(...nodes) === 3),
    );
    await eventually('three masters are left', async () => (await masters(left)).join(' ') === 'n1 n2 n3');
  });
});
