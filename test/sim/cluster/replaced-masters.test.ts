import { kvRoutingKey } from '@remora/protocol';
import { expect, test } from 'vitest';
import { ScheduledCluster } from './scheduled-cluster.ts';

const DOWN_AFTER_MS = 10_000;
/** What the masters may take on top, to notice and to have another one catch up. */
const REPLACED_MS = 30_000;
/** The master that dies first, and the other one: the leader by then, or one that follows it. */
const DEATHS = [
  { seed: 21, first: 'leader', second: 'leader' },
  { seed: 22, first: 'follower', second: 'leader' },
  { seed: 23, first: 'leader', second: 'follower' },
] as const;

function one(cluster: ScheduledCluster, which: 'leader' | 'follower', founders: readonly number[]): number {
  const leader = cluster.masterNode?.id ?? 0;
  const found = founders.find((id) => (id === leader) === (which === 'leader'));
  return found ?? founders[0] ?? 0;
}

/** Until three masters that live are all there are. */
async function replaced(cluster: ScheduledCluster, dead: readonly number[]): Promise<void> {
  await cluster.until(DOWN_AFTER_MS + REPLACED_MS, 'three masters that live', () => {
    const { masterIds } = cluster;
    const lives = masterIds.length === 3 && masterIds.every((id) => !dead.includes(id));
    return lives ? '' : `they are ${masterIds.join(', ')}`;
  });
}

test.each(DEATHS)(
  'two of three founding masters die for good, one after the other ($first, $second): others take their places and know all',
  async ({ seed, first, second }) => {
    const cluster = new ScheduledCluster(seed, { nodes: 5, later: 0, mayBecomeMasters: true });
    await cluster.start();
    await cluster.set('down-after', `${DOWN_AFTER_MS}ms`);
    await cluster.until(20_000, 'five nodes', () =>
      cluster.master?.view().nodes.length === 5 ? '' : 'some are missing',
    );
    const founders = [1, 2, 3];
    const dead: number[] = [];
    for (const which of [first, second]) {
      const machine = one(
        cluster,
        which,
        founders.filter((id) => !dead.includes(cluster.nodeId(id))),
      );
      dead.push(cluster.nodeId(machine));
      cluster.kill(machine);
      await replaced(cluster, dead);
      await cluster.until(60_000, 'repair', () => cluster.unrepaired());
    }
    const all = [1, 2, 3, 4, 5].map((machine) => cluster.nodeId(machine)).sort((a, b) => a - b);
    const living = all.filter((id) => !dead.includes(id));
    expect(cluster.masterIds).toEqual(living);
    await cluster.splitAt([kvRoutingKey(Buffer.from('k'))]);
    expect(cluster.master?.settings).toMatchObject({ downAfter: DOWN_AFTER_MS });
  },
);
