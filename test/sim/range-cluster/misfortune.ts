/** The faults of a run's nodes, and how they end. */
import { assert } from '@remora/base';
import { GATEWAY_NODE, type RangeCluster } from './bed.ts';
import { replicaAt } from './two-sides.ts';

/** Kinds of faults. */
export const MISFORTUNES: readonly string[] = [
  'crash',
  'pause',
  'partition',
  'broken link',
  'leader transfer',
  'crash in a snapshot',
];

/** Crashes, pauses, partitions and broken links, one after another. */
export async function misfortune(bed: RangeCluster, untilMs: number, newWatch: () => void): Promise<void> {
  const { random, clock } = bed;
  while (clock.monotonicMs() < untilMs) {
    await pass(bed, 50 + random.int(400));
    const victim = target(bed);
    const lastsMs = 50 + random.int(1_200);
    switch (random.int(6)) {
      case 0:
        bed.met('crash');
        await bed.crash(victim);
        await bed.run(lastsMs);
        if (bed.node(victim).running === undefined) bed.startNode(victim);
        break;
      case 1:
        bed.met('pause');
        bed.pause(victim);
        await bed.run(lastsMs);
        bed.resume(victim);
        break;
      case 2:
        bed.met('partition');
        bed.partition(random.int(2) === 0 ? [victim] : [victim, GATEWAY_NODE]);
        await bed.run(lastsMs);
        bed.heal();
        break;
      case 3:
        bed.met('broken link');
        bed.breakSomeLink();
        break;
      case 4:
        transfer(bed);
        break;
      default:
        newWatch();
    }
  }
}

/**
 * Lets time pass. A node that installs a snapshot may die meanwhile, and again when it resumes the installation in its
 * next life.
 */
async function pass(bed: RangeCluster, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    await bed.run(Math.min(10, left));
    const id = bed.dataNodes.find((node) => bed.node(node).engine.rebuilding);
    if (id === undefined || bed.node(id).running === undefined || bed.laterRandom.int(8) > 0) continue;
    bed.met('crash in a snapshot');
    await bed.crash(id);
    await bed.run(bed.laterRandom.int(300));
    if (bed.node(id).running === undefined) bed.startNode(id);
  }
}

/** Mostly the leader: its faults matter most. */
function target(bed: RangeCluster): number {
  const leader = bed.leaders()[0];
  if (leader !== undefined && bed.random.int(3) > 0) return leader;
  return bed.allNodes[bed.random.int(bed.allNodes.length)] ?? 1;
}

function transfer(bed: RangeCluster): void {
  const { ranges } = bed.view;
  const rangeId = ranges.length === 1 ? 2 : (ranges[bed.laterRandom.int(ranges.length)]?.rangeId ?? 2);
  const leader = bed.leaders(rangeId)[0];
  if (leader === undefined) return;
  const members = replicaAt(bed, leader, rangeId)?.state.descriptor.replicas ?? [];
  const to = members[bed.random.int(members.length)];
  if (to === undefined) return;
  bed.met('leader transfer');
  bed.node(leader).running?.host?.group(rangeId)?.transferLeader(to.replicaId);
}

/** Ends all partitions. The master reports which replicas are missing, and which have ended. */
export async function recover(bed: RangeCluster): Promise<void> {
  bed.heal();
  bed.ranges.stopMoves();
  if (bed.view.ranges.length > 1 || bed.ranges.mayMerge) {
    for (let i = 0; i < 20; i++) {
      bed.ranges.removeEnded();
      void bed.ranges.createMissing();
      await bed.run(200);
    }
  }
  await bed.run(6_000);
  for (const { rangeId } of bed.view.ranges) {
    const leaders = bed.leaders(rangeId);
    assert(leaders.length === 1, `range ${rangeId} of a healed cluster has one leader, not ${leaders.join()}`);
  }
}
