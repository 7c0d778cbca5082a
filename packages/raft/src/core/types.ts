/** A replica's id: globally unique and never reused (traps 10). 0 means "none". */
export type ReplicaId = number;

export const NO_REPLICA: ReplicaId = 0;

/** One record of a group's log. A leader's first entry of a term is `normal` with empty data. */
export interface Entry {
  readonly index: number;
  readonly term: number;
  /** `normal` carries the state machine's bytes, `conf` a membership change. */
  readonly type: 'normal' | 'conf';
  readonly data: Uint8Array;
}

/** What must be durable before a replica answers anything that depends on it (Raft dissertation, figure 3.1). */
export interface HardState {
  readonly term: number;
  readonly vote: ReplicaId;
  /** A hint that may lag: recovery uses it as a lower bound. */
  readonly commit: number;
}

/** A group's membership. While `votersOutgoing` is not empty the configuration is joint (dissertation §4.3). */
export interface ConfState {
  readonly voters: readonly ReplicaId[];
  readonly votersOutgoing: readonly ReplicaId[];
  readonly learners: readonly ReplicaId[];
  /** Voters of the outgoing configuration that become learners when it is left. */
  readonly learnersNext: readonly ReplicaId[];
  /** Leave the joint configuration as soon as it is committed. */
  readonly autoLeave: boolean;
}

/** A position in a log. */
export interface LogPosition {
  readonly index: number;
  readonly term: number;
}

/**
 * The outline of a log after its start, without the entries themselves: enough for elections, for matching and for
 * deciding what to read.
 */
export interface LogOutline {
  /** Where each term begins, oldest first; the first one is the first entry. */
  readonly terms: readonly LogPosition[];
  /** Indexes of the entries of type `conf`, ascending. */
  readonly confs: readonly number[];
  readonly lastIndex: number;
  /** Approximate bytes of all entries, for reports and estimates. */
  readonly bytes: number;
}

/** The position and membership of a snapshot; its data is transferred outside the core. */
export interface SnapshotMeta extends LogPosition {
  readonly conf: ConfState;
}

interface Envelope {
  readonly from: ReplicaId;
  readonly to: ReplicaId;
  /** The sender's term; for a (pre-)vote request the term it asks for. */
  readonly term: number;
}

/** In requests for votes, and in refusals. */
interface TellsCommit {
  /** The last entry that the sender knows to be committed. (election.ts E6) */
  readonly committed?: LogPosition;
}

export interface PreVoteRequest extends Envelope, TellsCommit {
  readonly type: 'preVote';
  readonly lastIndex: number;
  readonly lastTerm: number;
}
export interface PreVoteResponse extends Envelope, TellsCommit {
  readonly type: 'preVoteResponse';
  readonly reject: boolean;
}
export interface VoteRequest extends Envelope, TellsCommit {
  readonly type: 'vote';
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** Set for a leadership transfer: the leader itself asked for this election, so stickiness does not apply. */
  readonly force: boolean;
}
export interface VoteResponse extends Envelope, TellsCommit {
  readonly type: 'voteResponse';
  readonly reject: boolean;
}
export interface AppendRequest extends Envelope {
  readonly type: 'append';
  readonly prevIndex: number;
  readonly prevTerm: number;
  readonly entries: readonly Entry[];
  readonly commit: number;
}
export interface AppendResponse extends Envelope {
  readonly type: 'appendResponse';
  readonly reject: boolean;
  /** The highest index known to match and be durable; when rejected, the `prevIndex` that did not match. */
  readonly index: number;
  /**
   * When rejected: where the leader should try next, as (term, index) of the follower's log (etcd-io/raft's hint). A
   * term at index 0: nowhere, the follower needs a snapshot (follower.ts F4).
   */
  readonly hintIndex: number;
  readonly hintTerm: number;
  /** The follower's commit index, so that the leader can see it lag. */
  readonly commit: number;
}
export interface HeartbeatRequest extends Envelope {
  readonly type: 'heartbeat';
  /** min(match, commit), so that a follower never commits past what it is known to hold. */
  readonly commit: number;
  /** The ReadIndex round that this heartbeat confirms; 0: none. */
  readonly readContext: number;
}
export interface HeartbeatResponse extends Envelope {
  readonly type: 'heartbeatResponse';
  readonly commit: number;
  readonly readContext: number;
}
export interface InstallSnapshot extends Envelope {
  readonly type: 'snapshot';
  readonly snapshot: SnapshotMeta;
}
export interface TimeoutNow extends Envelope {
  readonly type: 'timeoutNow';
}

/** The messages among the replicas of one group. */
export type Message =
  | PreVoteRequest
  | PreVoteResponse
  | VoteRequest
  | VoteResponse
  | AppendRequest
  | AppendResponse
  | HeartbeatRequest
  | HeartbeatResponse
  | InstallSnapshot
  | TimeoutNow;

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader';

/** Why a proposal, a read or a transfer was refused. A refusal changes nothing. */
export type Refusal =
  /** This replica does not lead: ask the leader. */
  | 'notLeader'
  /** A leadership transfer is in progress: ask the new leader soon. */
  | 'transferring'
  /** Too much is in flight: retry later. */
  | 'queueFull'
  /** A membership change is not applied yet: retry later. */
  | 'confPending'
  /** The leader has not committed an entry of its own term: retry later. */
  | 'noOwnTermCommit'
  /** The membership change is not possible in this configuration; `Refused.problem` says why. */
  | 'confInvalid'
  /** The target of a transfer is not a voter, or will not be one for long. */
  | 'notVoter';

export interface Refused {
  readonly refused: Refusal;
  /** With `confInvalid`. */
  readonly problem?: ConfProblem;
}

/** Why a replica refuses to become the only member (forced.ts). A refusal changes nothing. */
export interface NotForced {
  /**
   * `leaderHeard`: a leader was heard within two election timeouts, or this replica leads. `noData`: it lacks
   * membership or a full snapshot. `alone`: it is the only voter already.
   */
  readonly refused: 'leaderHeard' | 'noData' | 'alone';
}

/**
 * Names a batch handed out for persistence. It counts only if the log still holds that entry when the fsync is
 * reported (design §4: the race of an entry persisted under an old term).
 */
export interface PersistMark {
  /** Grows by one with each `Ready` that had something to persist; marks are reported in order. */
  readonly sequence: number;
}

/** One moment on both clocks of a node, read together. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Time for a core: the number of ticks so far, and the moment of the last one, which only leases need. */
export interface TickTime {
  ticks: number;
  now: Moment | undefined;
}

/** A confirmed ReadIndex: reads of `context` may be served once `index` is applied. */
export interface ReadState {
  readonly context: number;
  readonly index: number;
}

/**
 * Entries that are needed but no longer in memory: the host reads them from its log and answers with
 * `RaftCore.entriesRead`, in any order of requests. They are durable.
 */
export interface EntryRead {
  /** The reader: the follower to which they go, or this replica itself, to apply them. Each has one read at a time. */
  readonly reader: ReplicaId;
  readonly from: number;
  readonly to: number;
  /** The answer may contain fewer entries, but at least one. */
  readonly maxBytes: number;
}

/** The work of one loop turn for a group, in this order of dependence. */
export interface Ready {
  /** May leave at once (appends from a leader run beside its own fsync; dissertation §10.2.1). */
  readonly messages: readonly Message[];
  /**
   * Must become durable; `mark` is reported with `persisted` after the fsync. Absent if there is nothing to persist.
   */
  readonly persist?: {
    readonly mark: PersistMark;
    /** Present when it changed. */
    readonly hardState?: HardState;
    /** Replace everything from `entries[0].index` on. */
    readonly entries: readonly Entry[];
    /** The log restarts here: a snapshot was accepted, and its data is already installed by the host. */
    readonly snapshot?: SnapshotMeta;
  };
  /** Committed entries, to be applied in order. */
  readonly committed: readonly Entry[];
  readonly readStates: readonly ReadState[];
  /** Read contexts that will never be confirmed (leadership lost): the caller retries elsewhere. */
  readonly readsDropped: readonly number[];
  /** Followers that need a snapshot: the host sends its data, then reports the outcome. */
  readonly snapshotsWanted: readonly ReplicaId[];
  /** Entries to be read back. */
  readonly entriesWanted: readonly EntryRead[];
  /** Present when role, term or known leader changed since the last `Ready`. */
  readonly soft?: { readonly role: Role; readonly term: number; readonly leader: ReplicaId };
}

export type ProgressState = 'probe' | 'replicate' | 'snapshot';

/** Why a change is not possible: see `changeConf`. */
export type ConfProblem =
  /** The configuration is joint and has to be left first (M2). */
  | 'joint'
  /** There is no joint configuration to leave. */
  | 'notJoint'
  /** No voter would be left, or the configuration has none to begin with (M3). */
  | 'noVoters'
  /** A step names something that is not a replica's id. */
  | 'noReplica'
  /** The change is forced, and such a change is never proposed (M5). */
  | 'forced';
