import { SeededRandom } from '@remora/base';
import { expect, test } from 'vitest';
import { DATA_NODES, RangeCluster, replicaIdOn } from './bed.ts';
import { KEYS, replicaAt, rowsOf, TwoSides } from './two-sides.ts';

const TARGET = 2;
const SOURCE = 3;
const PAIR = { targetId: TARGET, sourceId: SOURCE };

/** Two ranges that begin at '' and 'm', on all data nodes. */
async function pair(seed: number): Promise<{ bed: RangeCluster; load: TwoSides }> {
  const bed = new RangeCluster(seed, { borders: ['m'], splits: [], merges: 0 });
  await bed.start();
  const load = new TwoSides(bed);
  await bed.run(500);
  return { bed, load };
}

function isMerged(bed: RangeCluster): boolean {
  return DATA_NODES.some((id) => replicaAt(bed, id, TARGET)?.state.merging.absorbed.includes(SOURCE) === true);
}

/** Orders the merge until it is done, whoever leads. */
async function merge(bed: RangeCluster): Promise<void> {
  for (let tries = 0; tries < 300 && !isMerged(bed); tries++) {
    bed.ranges.merge(PAIR);
    await bed.run(50);
  }
  expect(isMerged(bed)).toBe(true);
}

async function settle(bed: RangeCluster, load: TwoSides): Promise<void> {
  await bed.run(4_000);
  load.stopped = true;
  await bed.run(3_000);
}

/** What clients were told, and what every node has. */
async function checkAll(bed: RangeCluster, load: TwoSides): Promise<void> {
  expect(load.faults).toEqual([]);
  expect(load.seen).toEqual(load.seen.map((_, i) => String(i + 1)));
  expect(load.seen.length).toBe(load.acknowledged.get('z'));
  for (const id of DATA_NODES) {
    expect(replicaAt(bed, id, SOURCE)).toBeUndefined();
    expect(replicaAt(bed, id, TARGET)?.state.merging.absorbed).toEqual([SOURCE]);
  }
  const [first, ...others] = await Promise.all(DATA_NODES.map((id) => rowsOf(bed, id, TARGET)));
  expect(first?.length).toBeGreaterThan(4);
  for (const rows of others) expect(rows).toEqual(first);
}

test('a merge under load is over soon, and no client notices more than that', async () => {
  const { bed, load } = await pair(1);
  load.longestMs.clear();
  await merge(bed);
  await settle(bed, load);
  await checkAll(bed, load);
  // Nobody waited longer than for an answer of the master that was lost.
  for (const key of KEYS) expect(load.longestMs.get(key)).toBeLessThan(400);
});

/** From the seal to the merge, each as the first node knows of it. */
async function sealedMs(bed: RangeCluster): Promise<number> {
  let sealedAt: number | undefined;
  for (let ms = 0; ms < 10_000; ms++) {
    if (ms % 50 === 0) bed.ranges.merge(PAIR);
    const sealed = DATA_NODES.some((id) => replicaAt(bed, id, SOURCE)?.state.merging.seal !== undefined);
    if (sealed) sealedAt ??= ms;
    if (isMerged(bed)) return ms - (sealedAt ?? ms);
    await bed.run(1);
  }
  throw new Error('the ranges were not merged');
}

test.each([1, 2, 3, 4])(
  'a source is sealed for as long as a few trips take, not for beats of its leader (seed %i)',
  async (seed) => {
    const { bed } = await pair(seed);
    expect(await sealedMs(bed)).toBeLessThan(30);
  },
);

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'whichever node dies at a merge, at whatever moment, nothing is lost (seed %i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const { bed, load } = await pair(seed);
    bed.ranges.merge(PAIR);
    await bed.run(random.int(90));
    const [ofTarget = 1] = bed.leaders(TARGET);
    const [ofSource = 1] = bed.leaders(SOURCE);
    const victim = [ofTarget, ofSource, 1 + random.int(3)][seed % 3] ?? 1;
    await bed.crash(victim);
    await bed.run(random.int(3_000));
    bed.startNode(victim);
    await bed.run(500);
    await merge(bed);
    await settle(bed, load);
    await checkAll(bed, load);
  },
);

test('a source whose node stays away is refused and serves again, and is merged when all are back', async () => {
  const { bed, load } = await pair(11);
  const [leader = 1] = bed.leaders(TARGET);
  const away = DATA_NODES.find((id) => id !== leader && bed.leaders(SOURCE)[0] !== id) ?? 1;
  bed.ranges.merge(PAIR);
  await bed.run(8); // the checkpoints before the seal
  const sealed = (): boolean => DATA_NODES.some((id) => replicaAt(bed, id, SOURCE)?.state.merging.seal !== undefined);
  for (let i = 0; i < 100 && !sealed(); i++) await bed.run(1);
  expect(sealed()).toBe(true);
  bed.partition([away]);
  await bed.run(6_000);
  expect(isMerged(bed)).toBe(false);
  for (const id of DATA_NODES.filter((node) => node !== away)) {
    expect(replicaAt(bed, id, SOURCE)?.state.merging.seal).toBeUndefined();
  }
  const before = load.acknowledged.get('z') ?? 0;
  await bed.run(1_000);
  expect(load.acknowledged.get('z')).toBeGreaterThan(before);
  bed.heal();
  await merge(bed);
  await settle(bed, load);
  await checkAll(bed, load);
});

test('a node that was away while ranges were merged and went on comes to what the others have', async () => {
  const { bed, load } = await pair(12);
  const away = DATA_NODES.find((id) => bed.leaders(TARGET)[0] !== id && bed.leaders(SOURCE)[0] !== id) ?? 1;
  // It has applied the seal, as all have, and is gone before it hears of the merge.
  const target = bed.leaders(TARGET)[0] ?? 1;
  bed.ranges.merge(PAIR);
  for (let i = 0; i < 400 && !isMerged(bed); i++) await bed.run(1);
  expect(isMerged(bed)).toBe(true);
  expect(replicaAt(bed, away, TARGET)?.state.merging.absorbed).toEqual([]);
  bed.partition([away]);
  const { group } = replicaAt(bed, target, TARGET) ?? {};
  // So much is written meanwhile that it gets past the merge by a snapshot.
  for (let i = 0; i < 40 && (group?.status().firstIndex ?? 0) < 60; i++) await bed.run(500);
  bed.heal();
  for (let i = 0; i < 10; i++) {
    bed.ranges.removeEnded();
    await bed.run(500);
  }
  await settle(bed, load);
  await checkAll(bed, load);
  expect(bed.node(away).running?.host?.stats().snapshotsReceived).toBeGreaterThan(0);
  expect(replicaAt(bed, away, TARGET)?.group.replicaId).toBe(replicaIdOn(away, TARGET));
});
