import { expect, test } from 'vitest';
import { DATA_NODES, RangeCluster, replicaIdOn } from './bed.ts';

/** Each change of the leader of an idle range takes back what was not stamped on an entry since. */
const CHANGES = 5;
/** An idle range tells its followers the time so often. */
const CARRY_MS = 30_000;

function timesOf(bed: RangeCluster): readonly number[] {
  return [2, 3].map((rangeId) => {
    const [leader = 0] = bed.leaders(rangeId);
    const replicas = [...(bed.node(leader).running?.store?.replicas() ?? [])];
    return replicas.find((replica) => replica.rangeId === rangeId)?.info().rangeTimeMs ?? 0;
  });
}

test('the times of two ranges stay near each other, however often one of them changes its leader', async () => {
  const bed = new RangeCluster(1, { borders: ['m'], splits: [] });
  await bed.start();
  for (let i = 0; i < CHANGES; i++) {
    await bed.run(25_000);
    const [leader = 1] = bed.leaders(3);
    const to = DATA_NODES[leader % DATA_NODES.length] ?? 1;
    bed.node(leader).running?.host?.group(3)?.transferLeader(replicaIdOn(to, 3));
    await bed.run(2_500);
    const [one = 0, other = 0] = timesOf(bed);
    expect(Math.abs(one - other)).toBeLessThan(CARRY_MS + 3_000);
  }
});
