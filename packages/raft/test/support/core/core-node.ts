import type { RaftCore } from '../../../src/core/raft.ts';
import type { Entry, EntryRead, ReplicaId, SnapshotMeta } from '../../../src/core/types.ts';
import type { Disk, Persist } from './core-disk.ts';

export interface TestNode {
  readonly id: ReplicaId;
  readonly disk: Disk;
  core: RaftCore;
  up: boolean;
  /** Handed out and not synced, oldest first. */
  unsynced: Persist[];
  /** Committed and not applied. */
  applyQueue: Entry[];
  applied: SnapshotMeta;
  /** The log as handed out so far. */
  shadow: Disk;
  leaderTerm: number;
  seenCommit: number;
  installing: Transfer | undefined;
  /** Entries that the core asked for, and the disk as it was then: the answer is of any moment since. */
  reads: { readonly read: EntryRead; readonly entries: readonly Entry[] }[];
}

export interface Transfer {
  readonly from: ReplicaId;
  /** The sender as it was: its restart ends what it was sending. */
  readonly sender: RaftCore;
  readonly to: ReplicaId;
  readonly term: number;
  readonly meta: SnapshotMeta;
}
