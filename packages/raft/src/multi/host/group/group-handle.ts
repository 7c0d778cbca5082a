import type { Logger } from '@remora/base';
import type { ReplicaId } from '../../../core/types.ts';
import type { Group } from '../../host-api.ts';
import type { NodeId } from '../../ports.ts';
import type { TickMember } from '../clock/tick-wheel.ts';
import type { OutgoingSnapshot } from '../snapshots/snapshots-in-flight.ts';
import type { TurnMember } from '../turns.ts';
import type { WaitingGroup } from '../waiting-appends.ts';

/** The source of the snapshots that the host sends for a group. */
interface OutgoingSnapshotSource {
  /** Resolves with a picture of the state machine; undefined when this replica no longer leads, or `to` has left. */
  take(to: ReplicaId): Promise<OutgoingSnapshot | undefined>;
  /** Reports how the sending ended. */
  sent(to: ReplicaId, outgoing: OutgoingSnapshot, ok: boolean): void;
}

/** A group, as the parts of its host use it; `GroupRunner` implements it. */
export interface GroupHandle extends Group, TickMember, TurnMember, WaitingGroup {
  readonly logger: Logger;
  readonly snapshots: OutgoingSnapshotSource;
  /** The node of a replica; undefined when it is not known. */
  locate(replica: ReplicaId): NodeId | undefined;
}
