import type { ProgressStatus } from '../core/config.ts';
import type { ConfChange } from '../core/membership/conf-change.ts';
import type { ConfState, LogPosition, NotForced, Refusal, Refused, ReplicaId, Role } from '../core/types.ts';
import type { GroupId, NodeId, RecoveredGroup, StateMachine } from './ports.ts';

/** Where a group's members live. */
export type ReplicaLocator = (replica: ReplicaId) => NodeId | undefined;

export interface GroupOptions {
  readonly groupId: GroupId;
  readonly replicaId: ReplicaId;
  /**
   * The state machine's durable position and the membership there. At (0,0) it is the group's *first* membership, on
   * the replicas that begin a group; one that joins later begins there with `confOf([])`, takes no entries, and is
   * brought in by a snapshot. Anything else, the membership of the day say, would have the changes in the log applied
   * to what they are part of already, and the replicas would disagree about who decides.
   */
  readonly applied: LogPosition;
  readonly conf: ConfState;
  /** What the log held for this group at start; absent for a new group. */
  readonly recovered?: RecoveredGroup;
  /**
   * For a new group, which has no leader to wait for: ticks before this replica campaigns first. Different for each.
   */
  readonly firstWaitTicks?: number;
  /** … and before it asks again, while nobody has led yet and the others are about to be created; absent: as always. */
  readonly firstRetryTicks?: number;
  /**
   * For a new group that begins with a leader: its replica id, as known here. The position at which the members begin
   * has a term above 0. Of all members' hosts only the leader's own may name itself, once in the life of the group: two
   * leaders of one term would be the end of it (core/roles.ts R3).
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
  /** Ticks since a leader was heard, or since the start; 0 for a leader. */
  readonly silentTicks: number;
  readonly firstIndex: number;
  readonly conf: ConfState;
  /** Of a leader: a membership change may be in its log and not applied; no other is taken (core, `RaftStatus`). */
  readonly changePending: boolean;
  /** Leader only: per follower, what is known to be durable and to be committed there, and how it is being sent to. */
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
   * Appends one entry and returns its position, or says why not. Persistence and sending happen at the end of the turn.
   */
  propose(data: Uint8Array): LogPosition | Refused;
  /**
   * Calls `done` once this replica, as the leader, is known to have led after the call, and all that was committed
   * by then is applied; with a refusal when it is not. Calls of one turn share a round (dissertation §6.4).
   */
  readIndex(done: (refused: Refusal | undefined) => void): void;
  /**
   * Like `readIndex`, but without a round while the leader's lease holds (`HostOptions.leaseReads`): then `done` is
   * called as soon as all that is committed now is applied, at once if it is.
   */
  leaseRead(done: (refused: Refusal | undefined) => void): void;
  /**
   * Whether this replica leads and no other leader can have been elected by now (core/lease.ts). True for this moment
   * only, and never without `HostOptions.leaseReads`.
   */
  hasLease(): boolean;
  /**
   * The state machine's state up to `position` is durable outside the log. The host keeps a tail for followers. It may
   * be called while `apply` or an installation is under way: then nothing goes before the host knows of its end.
   */
  checkpointed(position: LogPosition): void;
  /**
   * Appends a membership change: an entry of type `conf`, which takes effect when it is applied, before the entries
   * behind it are, unless the state machine does not admit it then. One at a time, and only once an entry of the own
   * term is committed. `status().conf` shows what has come out of it.
   */
  proposeConf(change: ConfChange): LogPosition | Refused;
  /**
   * Tells the followers at once what is committed; does nothing where this replica does not lead. They learn it with
   * the entries that follow anyway, or within two heartbeat intervals: for what somebody waits for on all replicas.
   */
  tellCommits(): void;
  transferLeader(to: ReplicaId): Refused | undefined;
  /** Whether this replica leads and is handing over: it takes no proposals until another leads, or that has failed. */
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
   * Ends the local replica of a group: from the call on it says and applies nothing. Once the state machine is not
   * called any more, `recorded` is waited for: it makes durable that the replica has ended (design §6), as the log goes
   * after it. Resolves when no crash brings the log back; a new replica of the group may be created then. For a group
   * that does not run it does the rest: what a crash in between left undone.
   */
  removeGroup(groupId: GroupId, recorded?: () => Promise<void>): Promise<void>;
  /**
   * Resolves when everything appended so far is durable, rejects when the log failed; a checkpoint waits for it (design
   * §6).
   */
  logDurable(): Promise<void>;
  stop(): Promise<void>;
}
