/** A source that was left sealed is told what became of the merge, wherever the target is by then. */
import { expect, test } from 'vitest';
import type { MemberInstruction } from '../../../packages/dataserver/src/range/membership/member-orders.ts';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import { DATA_NODES, RangeCluster } from './bed.ts';
import { replicaAt, TwoSides } from './two-sides.ts';

const TARGET = 2;
const SOURCE = 3;
/** Has no replica of either at first. */
const NEW_NODE = 5;
const NEW_REPLICA = 1_000_001;

function leaderOf(bed: RangeCluster, rangeId: number): RangeReplica {
  const leader = replicaAt(bed, bed.leaders(rangeId)[0] ?? 0, rangeId);
  if (leader === undefined) throw new Error(`range ${rangeId} has a leader`);
  return leader;
}

/** Gives the target's leader an order until it is done. */
async function order(bed: RangeCluster, instruction: MemberInstruction): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const { members, state } = leaderOf(bed, TARGET);
    const { confVersion } = state.descriptor.epoch;
    if (members.carryOut({ confVersion, instruction }).outcome === 'done') return;
    await bed.run(50);
  }
  throw new Error(`nobody carried out ${instruction.type}`);
}

/** The target goes to a node that the source has no replica on, and is led there. */
async function moveTarget(bed: RangeCluster): Promise<void> {
  const leaves = leaderOf(bed, TARGET).state.descriptor.replicas.find(
    ({ nodeId }) => nodeId !== bed.leaders(TARGET)[0],
  )?.replicaId;
  await order(bed, { type: 'addLearner', nodeId: NEW_NODE, replicaId: NEW_REPLICA });
  await bed.node(NEW_NODE).running?.store?.createReplica(leaderOf(bed, TARGET).state.descriptor, NEW_REPLICA);
  await order(bed, { type: 'changeVoters', promote: [NEW_REPLICA], remove: [leaves ?? 0] });
  for (let tries = 0; tries < 20 && bed.leaders(TARGET)[0] !== NEW_NODE; tries++) {
    leaderOf(bed, TARGET).group.transferLeader(NEW_REPLICA);
    await bed.run(500);
  }
  expect(bed.leaders(TARGET)).toEqual([NEW_NODE]);
}

/** No node has replicas of both any more. */
async function leaveSourceNodes(bed: RangeCluster): Promise<void> {
  const others = leaderOf(bed, TARGET).state.descriptor.replicas.filter(({ nodeId }) => nodeId !== NEW_NODE);
  await order(bed, { type: 'changeVoters', promote: [], remove: others.map(({ replicaId }) => replicaId) });
  for (let tries = 0; tries < 20 && DATA_NODES.some((id) => replicaAt(bed, id, TARGET) !== undefined); tries++) {
    bed.ranges.removeEnded();
    await bed.run(500);
  }
  for (const id of DATA_NODES) expect(replicaAt(bed, id, TARGET)).toBeUndefined();
}

/** As by a driver that compared the two before the target moved, and died when the source was sealed. */
async function seal(bed: RangeCluster): Promise<void> {
  const { merges, state } = leaderOf(bed, SOURCE);
  const into = { targetId: TARGET, round: leaderOf(bed, TARGET).state.merging.round };
  merges.seal({ type: 'seal', epoch: state.descriptor.epoch, into }, () => {});
  // It may be looked at, and unsealed, a moment later.
  for (let tries = 0; tries < 50 && state.merging.seal === undefined; tries++) await bed.run(2);
  expect(state.merging.seal).toMatchObject(into);
}

async function expectServedAgain(bed: RangeCluster, load: TwoSides): Promise<void> {
  const before = load.acknowledged.get('z') ?? 0;
  await bed.run(4_000);
  for (const id of DATA_NODES) expect(replicaAt(bed, id, SOURCE)?.state.merging.seal).toBeUndefined();
  expect(load.acknowledged.get('z')).toBeGreaterThan(before + 10);
  load.stopped = true;
  await bed.run(1_000);
  expect(load.faults).toEqual([]);
  expect(load.seen).toEqual(load.seen.map((_, i) => String(i + 1)));
  expect(load.seen.length).toBe(load.acknowledged.get('z'));
}

test('a source that the leader of the target has no replica of is unsealed, and serves again', async () => {
  const bed = new RangeCluster(1, { borders: ['m'], splits: [], merges: 0, moves: 0 });
  await bed.start();
  const load = new TwoSides(bed);
  await moveTarget(bed);
  await seal(bed);
  await expectServedAgain(bed, load);
});

test('so is one that the target has left all nodes of, before the round was decided', async () => {
  const bed = new RangeCluster(2, { borders: ['m'], splits: [], merges: 0, moves: 0 });
  await bed.start();
  const load = new TwoSides(bed);
  await moveTarget(bed);
  await leaveSourceNodes(bed);
  await seal(bed);
  await expectServedAgain(bed, load);
});
