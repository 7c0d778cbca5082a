import type { ProgressStatus } from '../core/config.ts';
import type { ConfChange } from '../core/membership/conf-change.ts';
import type { ConfState, LogPosition, NotForced, Refusal, Refused, ReplicaId, Role } from '../core/types.ts';
import type { GroupId, NodeId, RecoveredGroup, StateMachine } from './ports.ts';

/** Returns the node of a member. */
export type ReplicaLocator = (replica: ReplicaId) => NodeId | undefined;

export interface GroupOptions {
  readonly groupId: GroupId;
  readonly replicaId: ReplicaId;
  /**
   * The state machine's durable position and the membership there. At (0,0) it is the group's *first* membership, on
   * the replicas that begin a group; a replica that joins later begins there with `confOf([])`, takes no entries, and
   * is brought in by a snapshot. With any other membership, such as the current one, changes in the log would be
   * applied to a membership that already includes them, and the replicas would disagree about who decides.
   */
  readonly applied: LogPosition;
  readonly conf: ConfState;
  /** What the log held for this group at start; absent for a new group. */
  readonly recovered?: RecoveredGroup;
  /**
   * For a new group, which has no leader yet: ticks before this replica campaigns first. Different for each replica.
   */
  readonly firstWaitTicks?: number;
  /**
   * … and before it campaigns again, while there has been no leader and the other replicas are about to be created;
   * absent: the usual wait.
   */
  readonly firstRetryTicks?: number;
  /**
   * For a new group that begins with a leader: its replica id, as known here. The position at which the members begin
   * has a term above 0. Among all members' hosts only the leader's own may name itself, once in the life of the group:
   * two leaders of one term would break it (core/roles.ts R3).
   */
  readonly firstLeader?: ReplicaId;
  readonly stateMachine: StateMachine;
  readonly locate: ReplicaLocator;
}

export interface GroupStatus {
  readonly groupId: GroupId;
  readonly replicaId: ReplicaId;
  readonly role: Role;
  readonly term: number;
  readonly leader: ReplicaId;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** Ticks since a leader was last heard, or since the start; 0 for a leader. */
  readonly silentTicks: number;
  readonly firstIndex: number;
  readonly conf: ConfState;
  /**
   * For a leader: its log may contain a membership change that is not applied; no other change is accepted (core,
   * `RaftStatus`).
   */
  readonly changePending: boolean;
  /** For a leader: for each follower, the entries known to be durable and committed there, and the state of sending. */
  readonly progress: readonly ProgressStatus[];
}

/** A handle on one local replica. */
export interface Group {
  readonly groupId: GroupId;
  readonly replicaId: ReplicaId;
  readonly role: Role;
  readonly term: number;
  /** Replica id of the leader as far as known; 0 when unknown. */
  readonly leader: ReplicaId;
  /** True for a leader that has applied an entry of its own term: only then is its state known to be current. */
  readonly ready: boolean;
  /**
   * Appends one entry and returns its position, or the reason for a refusal. Entries are persisted and sent at the end
   * of the turn.
   */
  propose(data: Uint8Array): LogPosition | Refused;
  /**
   * Calls `done` once two conditions hold: this replica is known to have led after the call, and everything committed
   * by then is applied. Calls it with a refusal if that fails. Calls of one turn share a round (dissertation §6.4).
   */
  readIndex(done: (refused: Refusal | undefined) => void): void;
  /**
   * Like `readIndex`, but without a round while the leader's lease holds (`HostOptions.leaseReads`): then `done` is
   * called as soon as everything committed now is applied, at once if it is.
   */
  leaseRead(done: (refused: Refusal | undefined) => void): void;
  /**
   * Whether this replica leads and no other leader can have been elected by now (core/lease.ts). True for this moment
   * only, and never without `HostOptions.leaseReads`.
   */
  hasLease(): boolean;
  /**
   * The state machine's state up to `position` is durable outside the log. The host keeps a tail for followers. May be
   * called while `apply` or an installation is in progress: then nothing is dropped before the host knows of its end.
   */
  checkpointed(position: LogPosition): void;
  /**
   * Appends a membership change: an entry of type `conf`. It takes effect when it is applied, before the entries behind
   * it are, unless the state machine does not admit it then. One change at a time, and only once an entry of the
   * leader's own term is committed. `status().conf` shows the result.
   */
  proposeConf(change: ConfChange): LogPosition | Refused;
  /**
   * Sends the commit index to the followers at once; does nothing if this replica does not lead. They learn it anyway
   * with the next entries, or within two heartbeat intervals; use this if a caller waits for all replicas.
   */
  tellCommits(): void;
  transferLeader(to: ReplicaId): Refused | undefined;
  /**
   * Whether this replica leads and is handing over: it accepts no proposals until another replica leads, or the
   * transfer has failed.
   */
  readonly transferring: boolean;
  /** Makes this replica the only member of a group that has lost its majority for good (core/membership/forced.ts). */
  forceAlone(context: ConfChange['context']): LogPosition | NotForced;
  status(): GroupStatus;
}

/** Runs the Raft groups of one node: one frame per peer, one log append and one fsync per loop turn. */
export interface RaftHost {
  start(): void;
  createGroup(options: GroupOptions): Group;
  group(groupId: GroupId): Group | undefined;
  /**
   * Ends the local replica of a group: from the call on it sends and applies nothing. Once the state machine is no
   * longer called, the host awaits `recorded`, which makes the end of the replica durable (design §6), because the log
   * is deleted after it. Resolves when no crash can bring the log back; then a new replica of the group may be created.
   * For a group that does not run, it finishes a removal that a crash interrupted.
   */
  removeGroup(groupId: GroupId, recorded?: () => Promise<void>): Promise<void>;
  /**
   * Resolves when everything appended so far is durable, rejects if the log failed; a checkpoint waits for it (design
   * §6).
   */
  logDurable(): Promise<void>;
  /** True for good after `stop`, and after the failure that was reported to `onFatal`: no group can be created then. */
  readonly stopped: boolean;
  stop(): Promise<void>;
}
