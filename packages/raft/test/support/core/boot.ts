/** A core as a process of the cluster of `core-cluster.ts` starts it, from what its disk holds. */
import { assert, type Random } from '@remora/base';
import type { RaftConfig } from '../../../src/core/config.ts';
import { outlineOf } from '../../../src/core/log.ts';
import { RaftCore } from '../../../src/core/raft.ts';
import type { ReplicaId } from '../../../src/core/types.ts';
import { changesAfter, type Disk, mend } from './core-disk.ts';

/** Limits so small that all of them are met; otherwise as a node has it. */
const LIMITS = {
  electionTicks: 10,
  heartbeatTicks: 2,
  maxEntryBytesPerMessage: 60,
  maxInflightMessages: 4,
  maxInflightBytes: 200,
  maxUncommittedBytes: 2000,
  maxApplyingBytes: 200,
  entriesMayWait: true,
};

export function bootCore(boot: {
  readonly id: ReplicaId;
  readonly disk: Disk;
  readonly config: Partial<RaftConfig>;
  readonly random: Random;
  readonly restarted: boolean;
  readonly firstLeader: ReplicaId | undefined;
  /** None of its entries is in memory. */
  readonly evicted: boolean;
}): RaftCore {
  const { id, disk, config, random, restarted, firstLeader, evicted } = boot;
  mend(disk);
  const { hardState, start, checkpoint: applied } = disk;
  const known = Math.max(hardState.commit, applied.index);
  assert(changesAfter(disk, known) <= 1, 'X7: one change at most is not known committed after a restart');
  const entries = disk.entries.slice();
  return new RaftCore(
    { id, ...LIMITS, random, ...config },
    {
      hardState,
      conf: applied.conf,
      start,
      entries: evicted ? [] : entries,
      outline: outlineOf(start, entries),
      applied: applied.index,
      ...{ restarted, firstLeader },
    },
  );
}
