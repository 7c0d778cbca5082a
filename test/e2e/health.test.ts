/** What operators are told while a cluster cannot serve: the same in every view, and by whoever is asked. */
import { afterEach, expect, test } from 'vitest';
import { runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import { eventuallyShown, readyOf, viewsOf } from './health-views.ts';

let cluster: Cluster;
afterEach(async () => {
  await cluster?.stop();
});

test('one founder of three says who is missing, in every view, and takes no clients', async () => {
  cluster = await Cluster.start({ started: 1, awaitReady: false });
  const node = cluster.node(1);
  const noMasters = {
    ...{ name: 'noMasters', severity: 'critical', scope: 'cluster' },
    text: expect.stringMatching(
      /1 of 3 founders is up \(n1\); waiting for n2 \(127\.0\.0\.1:\d+\), n3 \(127\.0\.0\.1:\d+\)$/,
    ),
  };
  const starting = { name: 'starting', severity: 'info', scope: 'node', nodeId: 1 };
  await eventuallyShown(node, [expect.objectContaining(noMasters), expect.objectContaining(starting)]);
  expect(await readyOf(node)).toMatchObject({ status: 503, body: { ready: false, node: 'n1' } });
  expect((await fetch(`http://${node.http}/health`)).status).toBe(200);
  const { code, out } = await runHere([node.client], ['admin', 'check']);
  expect({ code, out }).toEqual({
    code: 1,
    out: expect.stringMatching(
      /3 nodes, 0 ranges: 2 problems found[\s\S]*waiting for n2 [\s\S]*-> Start the nodes that the text names/,
    ),
  });
  expect(await runHere([node.client], ['status'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('noMasters'),
  });
  // Not the cluster's id, by which nodes know their peers.
  expect(Object.keys((await readyOf(node)).body)).toEqual(['ready', 'reasons', 'node', 'nodeId', 'conditions']);
});

test('a cluster before its first range says so, takes clients, and serves once the third node is there', async () => {
  cluster = await Cluster.start({ started: 2, awaitReady: false });
  const noRanges = {
    ...{ name: 'noRanges', severity: 'critical', scope: 'cluster' },
    text: 'the cluster has no range yet: 2 of 3 nodes that store data are up (n1, n2)',
  };
  for (const node of cluster.nodes.slice(0, 2)) {
    await eventually(`${node.name} shows that there is no range`, async () => {
      const views = await viewsOf(node);
      for (const shown of [views.ready, views.status, views.check]) {
        expect(shown).toContainEqual(expect.objectContaining(noRanges));
      }
      expect(views.metrics).toContain('noRanges');
      expect(views.checkCode).toBe(1);
      return true;
    });
    expect((await readyOf(node)).status).toBe(200); // no other node would serve better
  }
  cluster.node(3).start();
  await cluster.untilReady();
  for (const node of cluster.nodes) await eventuallyShown(node, []);
});

test('what is left of a cluster that has lost its majority says who is missing, and goes on taking clients', async () => {
  cluster = await Cluster.start();
  const node = cluster.node(1);
  await eventuallyShown(node, []);
  await Promise.all([cluster.node(2).end('SIGKILL'), cluster.node(3).end('SIGKILL')]);
  await eventually('the node names those who are missing', async () => {
    const views = await viewsOf(node);
    const text = expect.stringMatching(
      /1 of 3 masters is up \(n1\); waiting for n2 \(127\.0\.0\.1:\d+\), n3 \(127\.0\.0\.1:\d+\)$/,
    );
    for (const shown of [views.ready, views.status, views.check]) {
      expect(shown).toContainEqual(expect.objectContaining({ name: 'noMasters', text }));
    }
    expect(views.metrics).toContain('noMasters');
    return true;
  });
  expect((await readyOf(node)).status).toBe(200);
  for (const n of [2, 3]) cluster.node(n).start();
  await cluster.untilReady();
  await eventuallyShown(node, []);
});

/** Above what any disk has free. */
const FULL = { 'disk-reserve': '1000TiB' };

test('a follower without room on its disk is shown by all nodes, and takes no clients while another one has room', async () => {
  cluster = await Cluster.start();
  const without = async (n: number): Promise<void> => {
    await cluster.node(n).end('SIGTERM');
    cluster.node(n).start(FULL);
  };
  const full = (nodeId: number) =>
    expect.objectContaining({ name: 'diskReserve', severity: 'critical', scope: 'node', nodeId });
  await without(2);
  for (const node of cluster.nodes) await eventuallyShown(node, [full(2)]);
  expect((await readyOf(cluster.node(1))).status).toBe(200);
  expect(await readyOf(cluster.node(2))).toMatchObject({
    status: 503,
    body: { reasons: [expect.stringContaining('the disk of node n2 has')], conditions: [{ own: true }] },
  });
  await without(1);
  await without(3);
  for (const node of cluster.nodes) await eventuallyShown(node, [full(1), full(2), full(3)]);
  // No other node would serve better: reads, deletes, locks and releases go on at each of them.
  for (const node of cluster.nodes) expect((await readyOf(node)).status).toBe(200);
});
