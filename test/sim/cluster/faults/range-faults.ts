/**
 * Actions of operators on ranges and nodes, through the admin API and at bad moments (admin-user.ts). Only in runs that
 * are steered (topology.ts).
 *
 * RF1. No node is removed for good if ranges could not live on the others: three that store data stay.
 */
import { type Bytes, equalBytes, type Random } from '@remora/base';
import { lockSpan } from '@remora/lock';
import { kvRoutingKey, type RangeDescriptor } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { MASTER_GROUP } from '@remora/raft';
import { leaseKey } from '../../../../packages/dataserver/src/state/keys.ts';
import { type Fault, type FaultEvent, nothing } from '../../common/faults/fault.ts';
import { Violation } from '../../common/violation.ts';
import type { SimNode } from '../node.ts';
import { LEASED } from '../workloads/leases.ts';
import { LIST_KEYS } from '../workloads/list-view.ts';
import { LOCKS } from '../workloads/locks.ts';
import { busyRegisters } from '../workloads/registers.ts';
import type { World } from '../world.ts';

/** The largest number of ranges: the changes matter, not the number. */
const RANGES_MAX = 9;
/** Nodes that store data and stay (RF1). */
const STAYING_MIN = 4;
const NAMESPACE = 'default';

/** Without an epoch: the range as it is when the request arrives. */
const AS_IT_IS = { confVersion: 0n, version: 0n };

type Change = NonNullable<admin.ChangeRangeRequest['change']>;

function asked(kind: string, ask: (world: World, event: FaultEvent) => boolean): Fault<World> {
  return {
    kind,
    lastsMs: () => 0,
    begin: (world, event) => (ask(world, event) ? nothing : undefined),
  };
}

function change({ admin }: World, { rangeId }: RangeDescriptor, what: Change): boolean {
  const request = { ...AS_IT_IS, rangeId: BigInt(rangeId), change: what };
  return admin.ask(what.$case, (api, call) => api.steering.changeRange(request, call));
}

function oneOf<T>(these: readonly T[], drawn: number): T | undefined {
  return these[drawn % Math.max(1, these.length)];
}

// -------------------------------------------------------------------------------------------- ranges

/** Among the keys of all kinds in use; undefined: in the middle of the range. */
function splitKey(world: World, { b, c }: FaultEvent): Bytes | undefined {
  const plain = [...busyRegisters(world), ...LIST_KEYS, LEASED, `${LEASED}${b % 200}`];
  switch (c % 6) {
    case 0:
      return undefined;
    case 1:
      return lockSpan({ namespace: NAMESPACE, name: Buffer.from(oneOf(LOCKS, b) ?? '') }).start;
    case 2:
      return leaseKey(oneOf(world.leaseIds(), b) ?? BigInt(b));
    default:
      return kvRoutingKey(Buffer.from(oneOf(plain, b) ?? ''));
  }
}

function split(world: World, event: FaultEvent): boolean {
  const { ranges } = world.placement;
  if (ranges.length >= RANGES_MAX) return false;
  const at = splitKey(world, event);
  const range = at === undefined ? oneOf(ranges, event.b) : world.rangeOf(at);
  if (range === undefined || (at !== undefined && equalBytes(range.start, at))) return false;
  return change(world, range, { $case: 'split', value: { at: Buffer.from(at ?? []) } });
}

/** Merges adjacent ranges on the same nodes, if there are any; otherwise moves one of them nearer to the other. */
function merge(world: World, { a, c }: FaultEvent): boolean {
  const { ranges } = world.placement;
  const pairs = ranges.flatMap((range, i) => {
    const next = ranges[i + 1];
    return next === undefined ? [] : [{ range, next, away: apart(next, range), lacks: apart(range, next) }];
  });
  const together = pairs.filter(({ away, lacks }) => away.length + lacks.length === 0);
  const pair = oneOf(together.length > 0 && c % 8 > 0 ? together : pairs, a);
  if (pair === undefined) return false;
  const { range, next, away, lacks } = pair;
  const [fromNode, toNode] = [away[0], lacks[0]];
  if (fromNode === undefined || toNode === undefined || c % 8 === 0) {
    return change(world, range, { $case: 'merge', value: { source: BigInt(next.rangeId) } });
  }
  return change(world, next, { $case: 'move', value: { fromNode: BigInt(fromNode), toNode: BigInt(toNode) } });
}

/** The nodes on which the first range has replicas and the other one has none. */
function apart({ replicas }: RangeDescriptor, other: RangeDescriptor): readonly number[] {
  const nodes = replicas.map(({ nodeId }) => nodeId);
  return nodes.filter((id) => !other.replicas.some(({ nodeId }) => nodeId === id));
}

/** To a node without a replica of the range, or sometimes to one with a replica, which is refused. */
function move(world: World, { a, b, c }: FaultEvent): boolean {
  const range = oneOf(world.placement.ranges, a);
  const from = oneOf(range?.replicas ?? [], b)?.nodeId;
  const free = dataNodes(world).filter(({ nodeId }) => !range?.replicas.some((replica) => replica.nodeId === nodeId));
  const to = oneOf(c % 10 === 0 ? dataNodes(world) : free, c)?.nodeId;
  if (range === undefined || from === undefined || to === undefined) return false;
  return change(world, range, { $case: 'move', value: { fromNode: BigInt(from), toNode: BigInt(to) } });
}

function resize(world: World, { a, b, c }: FaultEvent): boolean {
  const range = oneOf(world.placement.ranges, a);
  const node = oneOf(dataNodes(world), b)?.nodeId;
  if (range === undefined || node === undefined) return false;
  return change(world, range, { $case: c % 2 === 0 ? 'addReplica' : 'removeReplica', value: { node: BigInt(node) } });
}

function transfer(world: World, { a, b }: FaultEvent): boolean {
  const range = oneOf(world.placement.ranges, a);
  const to = oneOf(range?.replicas ?? [], b)?.nodeId;
  if (range === undefined || to === undefined) return false;
  const request = { rangeId: BigInt(range.rangeId), toNode: BigInt(to) };
  return world.admin.ask('transfer', (api, call) => api.transferLeader(request, call));
}

function spread({ admin }: World, { a }: FaultEvent): boolean {
  const everything = { start: Buffer.alloc(0), end: Buffer.alloc(0) };
  if (a % 2 === 0) return admin.ask('scatter', (api, call) => api.steering.scatter(everything, call));
  return admin.ask('rebalance', (api, call) => api.steering.rebalance({ dryRun: a % 4 === 1 }, call));
}

/** A backup is restored only into a cluster that has one range and no data. */
function restore({ admin, revisions, placement }: World): boolean {
  if (placement.ranges.length < 2) return false;
  const request = { revision: BigInt(revisions.newest + 1) };
  return admin.ask('restore', async (api, call) => {
    const { revision } = await api.beginRestore(request, call);
    throw new Violation('refused to operators', `a cluster with data took the beginning of a restore, at ${revision}`);
  });
}

/** The masters lose their leader while a range changes. */
function failOver(first: (world: World, event: FaultEvent) => boolean): Fault<World>['begin'] {
  return (world, event) => {
    const leader = world.leaderOf(MASTER_GROUP);
    if (leader === undefined || !first(world, event)) return undefined;
    let over = false;
    world.loop.setTimer(event.c % 800, () => {
      if (!over && leader.up) leader.end(event.c % 2 === 0);
    });
    return () => {
      over = true;
      world.startAgain(leader);
    };
  };
}

// -------------------------------------------------------------------------------------------- nodes

function dataNodes({ nodes }: World): readonly SimNode[] {
  return nodes.filter(({ up, nodeId, roles }) => up && nodeId !== undefined && roles?.store !== undefined);
}

/** Sets the duty for a while; then the node serves again. */
function onDuty(kind: string, duty: 'draining' | 'maintenance'): Fault<World> {
  return {
    kind,
    lastsMs: (random) => 2_000 + random.int(8_000),
    begin: (world, { a, lastsMs }) => {
      const id = oneOf(dataNodes(world), a)?.nodeId;
      if (id === undefined || world.leaving.has(id)) return undefined;
      world.admin.setDuty({ nodeId: id, duty, forMs: duty === 'maintenance' ? Math.ceil(lastsMs) : 0 });
      return () => {
        if (!world.leaving.has(id)) world.admin.setDuty({ nodeId: id, duty: 'serving' });
      };
    },
  };
}

/**
 * A node is asked to give everything up. If it has by the end, it is removed, and its machine comes back with an empty
 * disk: sometimes with the full one first, which is refused. Otherwise the node stays decommissioned, or returns to
 * service.
 */
const decommissioned: Fault<World> = {
  kind: 'node decommissioned',
  lastsMs: (random: Random) => 8_000 + random.int(20_000),
  begin: (world, { a, c }) => {
    const serving = dataNodes(world).filter(({ nodeId = 0 }) => !world.leaving.has(nodeId));
    const node = oneOf(
      serving.filter(({ machine }) => !machine.founder),
      a,
    );
    const id = node?.nodeId;
    if (node === undefined || id === undefined || serving.length <= STAYING_MIN) return undefined;
    world.leaving.add(id);
    world.admin.setDuty({ nodeId: id, duty: 'decommissioning' });
    return () => {
      if (c % 3 === 0 && !world.faults.healed) return;
      if (node.nodeId !== id || !world.isEmpty(id)) {
        world.leaving.delete(id);
        world.admin.setDuty({ nodeId: id, duty: 'serving' });
      } else if (!world.faults.healed) world.remove(node);
    };
  },
};

const schedulingOff: Fault<World> = {
  kind: 'scheduling switched off',
  lastsMs: (random) => 1_000 + random.int(6_000),
  begin: ({ admin }) => {
    const set = (value: string): void =>
      admin.retryUntilAnswered('set', (api, call) => api.setSetting({ name: 'scheduling', value }, call));
    set('false');
    return () => set('true');
  },
};

/** The next gateway that coordinates a transaction is killed at one of its messages. */
const coordinatorKilled: Fault<World> = {
  kind: 'coordinator killed',
  lastsMs: (random, electionMs) => 200 + random.int(4 * electionMs),
  begin: (world, { b, c }) => {
    let killed: SimNode | undefined;
    const cancel = world.onNextTransaction((node) =>
      world.loop.setTimer((c % 120) / 2, () => {
        if (world.faults.healed || !node.up || node.stopping) return;
        killed = node;
        node.end(b % 3 === 0);
      }),
    );
    return () => {
      cancel();
      if (killed !== undefined) world.startAgain(killed);
    };
  },
};

const lastsMs = (random: Random, electionMs: number): number => 300 + random.int(4 * electionMs);

/** With the frequency of each, relative to the others. */
export const RANGE_FAULTS: ReadonlyMap<Fault<World>, number> = new Map([
  [asked('range split', split), 8],
  [asked('ranges merged', merge), 8],
  [asked('replica moved', move), 6],
  [asked('replica added or removed', resize), 2],
  [asked('leadership moved', transfer), 4],
  [asked('ranges spread', spread), 1],
  [asked('restore refused', restore), 1],
  [{ kind: 'masters fail over amid a split', lastsMs, begin: failOver(split) }, 1],
  [{ kind: 'masters fail over amid a merge', lastsMs, begin: failOver(merge) }, 2],
  [{ kind: 'masters fail over amid a move', lastsMs, begin: failOver(move) }, 1],
  [onDuty('node drained', 'draining'), 2],
  [onDuty('maintenance window', 'maintenance'), 1],
  [decommissioned, 2],
  [schedulingOff, 1],
  [coordinatorKilled, 4],
]);
