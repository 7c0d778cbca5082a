import { SeededRandom } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import { expect, test } from 'vitest';
import { CHILD_BEGINS, type SplitCommand } from '../../../packages/dataserver/src/state/reshape/split.ts';
import { DATA_NODES, RangeCluster } from './bed.ts';
import { KEYS, replicaAt, rowsOf, TwoSides } from './two-sides.ts';

const PARENT = 2;
const CHILD = 3;
const SPLIT: SplitCommand = {
  ...{ type: 'split', at: kvRoutingKey(Buffer.from('m')), epoch: { confVersion: 1, version: 1 }, childId: CHILD },
  ...{ replicas: DATA_NODES.map((nodeId) => ({ nodeId, replicaId: 300 + nodeId })), keys: 0, bytes: 0 },
};

/** Asks for the split until it is done, whoever leads. */
async function split(bed: RangeCluster): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    let done = false;
    for (const id of bed.leaders()) {
      replicaAt(bed, id, PARENT)?.split(SPLIT, (error) => {
        done ||= error === undefined || error.code === 'STALE_EPOCH';
      });
    }
    await bed.run(20);
    if (done) return;
  }
  throw new Error('the range was not split');
}

test('a split under load is over soon, and no client notices more than that', async () => {
  const bed = new RangeCluster(1, { borders: [], splits: ['m'] });
  await bed.start();
  const load = new TwoSides(bed);
  await bed.run(1_000);
  const [leader = 0] = bed.leaders();
  await split(bed);
  await bed.run(2_000);
  // Whoever led the range leads the child from the start: nobody was elected.
  expect(replicaAt(bed, leader, CHILD)).toMatchObject({ serving: true, group: { term: CHILD_BEGINS.term } });
  load.stopped = true;
  await bed.run(1_000);
  expect(load.faults).toEqual([]);
  for (const id of DATA_NODES) {
    expect(replicaAt(bed, id, CHILD)?.group.replicaId).toBe(300 + id);
    expect(replicaAt(bed, id, PARENT)?.state.descriptor.epoch.version).toBe(2);
  }
  // Nobody waited longer than for an election, or for a question to the master that was lost.
  for (const key of KEYS) expect(load.longestMs.get(key)).toBeLessThan(600);
  expect(load.seen).toEqual(load.seen.map((_, i) => String(i + 1)));
  expect(load.seen.length).toBe(load.acknowledged.get('z'));
});

/** The master hears of both ranges from those that have them. */
function tellMaster(bed: RangeCluster): void {
  const newest = [PARENT, CHILD].flatMap((rangeId) => {
    const known = DATA_NODES.flatMap((id) => replicaAt(bed, id, rangeId)?.state.descriptor ?? []);
    return known.sort((a, b) => b.epoch.version - a.epoch.version).slice(0, 1);
  });
  bed.view = { ...bed.view, ranges: newest };
}

test.each([1, 2, 3, 4])(
  'whichever node dies at a split, at whatever moment, nothing is lost (seed %i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const bed = new RangeCluster(seed, { borders: [], splits: ['m'] });
    await bed.start();
    const load = new TwoSides(bed);
    await bed.run(500);
    const [leader = 1] = bed.leaders();
    replicaAt(bed, leader, PARENT)?.split(SPLIT, () => {});
    await bed.run(random.int(60));
    const victim = seed % 2 === 0 ? leader : 1 + random.int(3);
    await bed.crash(victim);
    await bed.run(random.int(1_500));
    bed.startNode(victim);
    await split(bed);
    await bed.run(1_000);
    tellMaster(bed);
    await bed.run(3_000);
    load.stopped = true;
    await bed.run(3_000);
    expect(load.faults).toEqual([]);
    expect(load.seen).toEqual(load.seen.map((_, i) => String(i + 1)));
    expect(load.seen.length).toBe(load.acknowledged.get('z'));
    for (const rangeId of [PARENT, CHILD]) {
      const [first, ...others] = await Promise.all(DATA_NODES.map((id) => rowsOf(bed, id, rangeId)));
      expect(first?.length).toBeGreaterThan(2);
      for (const rows of others) expect(rows).toEqual(first);
    }
  },
);
