/** What the Raft checks need from a node, independent of what its groups replicate. */
import type { Group, GroupId, LogPosition, ReplicaId } from '@remora/raft';
import type { DurableLog } from './durable-log.ts';

export interface ObservedNode {
  readonly id: number;
  /** What the medium of its disk holds of its log. */
  readonly durable: DurableLog;
  /** Groups with a replica here. */
  readonly groupIds: Iterable<GroupId>;
  group(groupId: GroupId): Group | undefined;
  /**
   * The engine lost durable state and has to notice it: the node's log may begin after the position that the engine has
   * applied.
   */
  readonly lostState?: boolean;
  /** The group's replica on this node, and the position up to which its state is durable outside the log. */
  stored(groupId: GroupId): { readonly replicaId: ReplicaId; readonly applied: LogPosition } | undefined;
}
