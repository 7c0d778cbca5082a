import { equalBytes, SeededRandom } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import { expect, test } from 'vitest';
import { ScheduledCluster } from './scheduled-cluster.ts';

const DOWN_AFTER_MS = 20_000;
/** What the masters may take on top, to notice and to repair. */
const REPAIR_MS = 60_000;
const BALANCE_MS = 180_000;
const REST_MS = 60_000;

/** Five nodes, three of them masters, with eight ranges on all of them. */
async function balancedCluster(seed: number, later = 0): Promise<ScheduledCluster> {
  const cluster = new ScheduledCluster(seed, { nodes: 5, later });
  await cluster.start();
  await cluster.set('down-after', `${DOWN_AFTER_MS}ms`);
  await cluster.set('node-settle', '5s');
  await cluster.set('move-cooldown', '5s');
  const keys = Array.from({ length: 7 }, (_, i) => kvRoutingKey(Buffer.from(`k${i}`)));
  await cluster.splitAt(keys);
  await cluster.until(BALANCE_MS, 'balance', () => cluster.unrepaired() || cluster.unbalanced());
  return cluster;
}

/** Nothing is begun any more once all is well. */
async function expectStillness(cluster: ScheduledCluster): Promise<void> {
  await cluster.run(10_000); // what is under way comes to its end
  const before = cluster.ranges.map(({ epoch }) => epoch);
  const { leaders } = cluster.master?.view() ?? {};
  await cluster.run(REST_MS);
  expect(cluster.ranges.map(({ epoch }) => epoch)).toEqual(before);
  expect(cluster.master?.view().leaders).toEqual(leaders);
}

test('a node that dies for good is replaced within the down time and a minute, and all come to rest', {}, async () => {
  const cluster = await balancedCluster(11);
  const id = cluster.nodeId(4);
  expect(cluster.replicaCounts().get(id)).toBeGreaterThan(3);
  cluster.kill(4);
  const tookMs = await cluster.until(DOWN_AFTER_MS + REPAIR_MS, 'repair', () => cluster.unrepaired());
  expect(tookMs).toBeGreaterThan(DOWN_AFTER_MS - 5_000);
  await cluster.until(BALANCE_MS, 'balance', () => cluster.unrepaired() || cluster.unbalanced());
  await expectStillness(cluster);
});

test('so is one that leads the masters: the next leader waits until it knows the cluster, then repairs it', {}, async () => {
  const cluster = await balancedCluster(12);
  const leader = cluster.masterNode?.id ?? 1;
  cluster.kill(leader);
  await cluster.until(DOWN_AFTER_MS + REPAIR_MS, 'repair', () => cluster.unrepaired() || cluster.unbalanced());
});

test('a sixth node gets its share, and one that is decommissioned ends empty and is removed', {}, async () => {
  const cluster = await balancedCluster(13, 1);
  cluster.node(6).start();
  await cluster.until(BALANCE_MS, 'the share of the sixth node', () => {
    const lacking = (cluster.replicaCounts().get(cluster.node(6).nodeId ?? 0) ?? 0) < 3;
    return lacking ? 'it has too few replicas' : cluster.unrepaired() || cluster.unbalanced();
  });
  const leaving = cluster.nodeId(5);
  await cluster.setDuty(5, 'decommissioning');
  await cluster.until(BALANCE_MS, 'an empty node', () => {
    const held = cluster.held(5);
    return held.length > 0 ? `it has ranges ${held.join(', ')}` : cluster.unrepaired() || cluster.unbalanced([leaving]);
  });
  await expectStillness(cluster);
  await cluster.setDuty(5, 'removed');
  expect(cluster.master?.view().nodes.find(({ descriptor }) => descriptor.nodeId === leaving)?.state).toBe('removed');
});

test('a node that is drained gives its leaders away, keeps its replicas, and gets leaders again', {}, async () => {
  const cluster = await balancedCluster(14);
  const id = cluster.nodeId(2);
  const replicas = cluster.replicaCounts().get(id);
  await cluster.setDuty(2, 'draining');
  await cluster.until(30_000, 'a node without leaders', () =>
    cluster.leaderCounts().get(id) === 0 ? '' : `it leads ${cluster.leaderCounts().get(id)} ranges`,
  );
  expect(cluster.replicaCounts().get(id)).toBe(replicas);
  await cluster.setDuty(2, 'serving');
  await cluster.until(BALANCE_MS, 'leaders again', () => cluster.unbalanced());
});

test.each([200, 201])(
  'whatever fails together (the masters lose their leader, a node dies for good, another one restarts), all is mended (%i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const cluster = await balancedCluster(seed, 1);
    cluster.node(6).start();
    await cluster.run(random.int(30_000));
    await cluster.restart(cluster.masterNode?.id ?? 1, random.int(4_000));
    await cluster.run(random.int(10_000));
    cluster.kill(4 + random.int(2));
    await cluster.run(random.int(30_000));
    await cluster.restart(1 + random.int(3), random.int(3_000));
    await cluster.until(DOWN_AFTER_MS + REPAIR_MS, 'repair', () => cluster.unrepaired());
    await cluster.until(BALANCE_MS, 'balance', () => cluster.unrepaired() || cluster.unbalanced());
  },
);

test.each([31, 32])(
  'what was split is merged again while a node restarts: nowhere is anything left of the ranges that ended (%i)',
  async (seed) => {
    const cluster = new ScheduledCluster(seed, { nodes: 3, later: 0 });
    await cluster.start();
    await cluster.set('scheduling', 'false');
    await cluster.splitAt(['k', 'n', 'q'].map((key) => kvRoutingKey(Buffer.from(key))));
    const ids = cluster.ranges.map(({ rangeId }) => rangeId);
    const first = ids[0] ?? 0;
    await cluster.merge(first, ids[1] ?? 0);
    const away = cluster.world.leaderOf(first)?.id === 3 ? 2 : 3;
    await cluster.restart(away, 0);
    await cluster.merge(first, ids[2] ?? 0);
    await cluster.restart(away, 2_000);
    await cluster.merge(first, ids[3] ?? 0);
    await cluster.until(REPAIR_MS, 'one range everywhere', () => {
      const held = [1, 2, 3].map((id) => cluster.held(id).join(' '));
      return held.every((each) => each === String(first)) ? '' : `nodes hold ${held.join(' / ')}`;
    });
    expect(cluster.ranges).toMatchObject([{ rangeId: first, end: Buffer.alloc(0), replicas: [{}, {}, {}] }]);
  },
);

/** Something that people or machines do now and then. */
async function anything(cluster: ScheduledCluster, random: SeededRandom): Promise<void> {
  const { ranges } = cluster;
  const at = random.int(Math.max(1, ranges.length));
  const range = ranges[at];
  const next = ranges.find(({ start }) => range !== undefined && start.length > 0 && equalBytes(start, range.end));
  const machine = 1 + random.int(5);
  switch (random.int(8)) {
    case 0:
      return cluster.restart(machine, random.int(3_000));
    case 1:
      return cluster.setDuty(machine, 'draining').catch(() => {});
    case 2:
      return cluster.setDuty(machine, 'serving');
    case 3:
    case 4:
      if (range !== undefined)
        cluster.steer(range, { type: 'split', at: kvRoutingKey(Buffer.from(`k${random.int(99)}`)) });
      return;
    case 5:
    case 6:
      if (range !== undefined && next !== undefined) cluster.steer(range, { type: 'merge', source: next.rangeId });
      return;
    default: {
      const [from] = range?.replicas ?? [];
      const to = cluster.node(machine).nodeId;
      if (range !== undefined && from !== undefined && to !== undefined) {
        cluster.steer(range, { type: 'move', from: from.nodeId, to });
      }
    }
  }
}

test.each([51, 52])(
  'splits, merges, moves, drains and restarts at once: no key is without its range, and all come to rest (%i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const cluster = await balancedCluster(seed);
    for (let i = 0; i < 40; i++) {
      await anything(cluster, random);
      await cluster.run(random.int(3_000));
    }
    for (let machine = 1; machine <= 5; machine++) await cluster.setDuty(machine, 'serving');
    await cluster.until(
      2 * BALANCE_MS,
      'rest',
      () => cluster.unrepaired() || cluster.unbalanced() || cluster.misplaced(),
    );
    await expectStillness(cluster);
  },
);
