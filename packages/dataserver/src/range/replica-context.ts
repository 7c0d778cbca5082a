import type { ServiceError } from '@remora/base';
import type { CommandResult, Epoch, QueryResult, RangeReply } from '@remora/protocol';
import type { Group } from '@remora/raft';
import type { RangeState } from '../state/range-state.ts';
import type { Leadership } from './membership/leadership.ts';
import type { RangeClock } from './range-clock.ts';
import type { RangeLoad } from './stats/range-load.ts';

/**
 * The replica of a range, as the parts of the replica see it: its state, its Raft group, and whether it may serve a
 * request now. Each part also gets the other parts that it uses, as values. Only the store and `replicas/` know the
 * whole replica (range-replica.ts).
 */
export interface ReplicaContext {
  readonly rangeId: number;
  readonly state: RangeState;
  /** The Raft group that drives the replica; there is none before the replica runs. */
  readonly group: Group;
  readonly leadership: Leadership;
  /** The time of the range; it runs while the replica serves. */
  readonly time: RangeClock;
  /** The requests that this replica has served as leader, for reports. */
  readonly load: RangeLoad;
  readonly leading: boolean;
  /** Whether it leads and has applied an entry of its own term: its state is current, and its time runs. */
  readonly serving: boolean;
  /** The term in which it serves and is not sealed; 0 otherwise. */
  readonly servingTerm: number;
  /** The error for every request while it is sealed for a merge (merges.ts MR1). */
  readonly sealed: ServiceError | undefined;
  /** Whether a snapshot is replacing its rows (replica-rows.ts RR1). */
  readonly replacing: boolean;
  /** Returns true if the range has been split or merged since its epoch was this. */
  isStale(epoch: Epoch): boolean;
  /** Returns the error for a read that cannot be answered here now; undefined when reads can be. */
  unreadable(): ServiceError | undefined;
  /** Returns the error for a request with an old epoch, or with keys that are not the range's. */
  staleEpoch(): ServiceError;
  notLeader(): ServiceError;
  /** `revision`: the present one unless another is given. */
  reply(result: CommandResult | QueryResult, revision?: number): RangeReply;
}
