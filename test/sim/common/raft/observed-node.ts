/** What the checks of Raft need of a node, whatever its groups replicate. */
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
   * What its engine had made durable is gone, and it is to notice that: its log may begin behind what it has applied.
   */
  readonly lostState?: boolean;
  /** The replica of a group here, and the position up to which its state is durable besides the log. */
  stored(groupId: GroupId): { readonly replicaId: ReplicaId; readonly applied: LogPosition } | undefined;
}
