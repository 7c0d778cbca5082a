/** What is asked of groups at bad moments. */
import { type Fault, nothing } from './fault.ts';

const transfer: Fault = {
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

const compaction: Fault = {
  kind: 'compaction',
  lastsMs: () => 0,
  begin: (world, { a }) => {
    const groupId = world.groupAt(a);
    for (const node of world.nodes) node.enter(() => node.checkpoint(groupId));
    return nothing;
  },
};

/** Many proposals at once: queues run full. */
const burst: Fault = {
  kind: 'burst',
  lastsMs: () => 0,
  begin: (world, { a, b }) => {
    const groupId = world.groupAt(a);
    const leader = world.leaderOf(groupId);
    if (leader === undefined) return undefined;
    leader.enter((host) => {
      for (let i = 0; i < 5 + (b % 40); i++) {
        const data = Buffer.alloc(4 + (b % 200));
        data.writeUInt32BE(world.nextValue());
        host.group(groupId)?.propose(data);
      }
    });
    return nothing;
  },
};

export const RAFT_FAULTS: readonly Fault[] = [transfer, compaction, burst];
