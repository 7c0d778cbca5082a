/** Requests to groups at bad moments. */

import { type Fault, nothing } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';

const transfer: Fault<World> = {
  kind: 'leadership transfer',
  lastsMs: () => 0,
  begin: (world, { a, b }) => {
    const groupId = world.groupAt(a);
    const leader = world.leaderOf(groupId);
    const conf = leader?.group(groupId)?.status().conf;
    if (leader === undefined || conf === undefined) return undefined;
    const to = conf.voters[b % conf.voters.length] ?? 0;
    if (leader.engine.record(groupId)?.replicaId === to) return undefined;
    leader.enter((host) => host.group(groupId)?.transferLeader(to));
    return nothing;
  },
};

const compaction: Fault<World> = {
  kind: 'compaction',
  lastsMs: () => 0,
  begin: (world, { a }) => {
    const groupId = world.groupAt(a);
    for (const node of world.nodes) node.enter(() => node.checkpoint(groupId));
    return nothing;
  },
};

/** Many proposals at once fill the queues. */
const burst: Fault<World> = {
  kind: 'burst',
  lastsMs: () => 0,
  begin: (world, { a, b }) => {
    const groupId = world.groupAt(a);
    const leader = world.leaderOf(groupId);
    if (leader === undefined) return undefined;
    world.burst(groupId, leader, 5 + (b % 40), b % 200);
    return nothing;
  },
};

export const RAFT_FAULTS: readonly Fault[] = [transfer, compaction, burst];
