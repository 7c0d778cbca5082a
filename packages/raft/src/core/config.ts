import type { Random } from '@remora/base';
import type { TraceSink } from './trace.ts';
import type {
  ConfState,
  Entry,
  HardState,
  LogOutline,
  LogPosition,
  ProgressState,
  ReplicaId,
  Role,
  TickTime,
} from './types.ts';

/** The options of a core. Times are in ticks of the caller, sizes in bytes of entry data plus a small overhead. */
export interface RaftConfig {
  readonly id: ReplicaId;
  /** Silence after which a follower may campaign. */
  readonly electionTicks: number;
  /**
   * Each wait is drawn from [electionTicks, electionTicks + electionSpreadTicks), so that followers rarely campaign
   * together (dissertation §3.4). Default `electionTicks`. The first campaign begins after a part of the spread. So a
   * narrow spread elects sooner, but costs a further wait if two replicas campaign within the time of one election.
   */
  readonly electionSpreadTicks?: number;
  /** A leader's heartbeat interval; below `electionTicks`. */
  readonly heartbeatTicks: number;
  /** Run a pre-vote before raising the term (dissertation §9.6). Default true. */
  readonly preVote?: boolean;
  /**
   * A leader that hears no quorum for `electionTicks` steps down, and voters stick to a leader they hear. Default true.
   */
  readonly checkQuorum?: boolean;
  /** Maximum bytes of entries per append message, and per read of entries that left memory; one entry always fits. */
  readonly maxEntryBytesPerMessage: number;
  /** Maximum appends in flight to one follower. */
  readonly maxInflightMessages: number;
  /** Maximum entry bytes in flight to one follower. */
  readonly maxInflightBytes: number;
  /**
   * Entries to followers outside the fastest quorum may be delayed (thrifty-replication.ts), until the next tick at the
   * latest. The host then calls `RaftCore.reviewAppends`. Default false.
   */
  readonly entriesMayWait?: boolean;
  /** Maximum proposed bytes that a leader has not committed; above it, proposals are refused with `queueFull`. */
  readonly maxUncommittedBytes: number;
  /**
   * Maximum committed bytes that `ready` handed out and `appliedTo` has not yet reported; also bounds one `Ready`.
   * While it is reached, no more entries are handed out; one entry always fits.
   */
  readonly maxApplyingBytes: number;
  /** A follower that lags less than this many entries counts as caught up. Default 500. */
  readonly caughtUpEntries?: number;
  /** A follower is also caught up if it lags less than this percentage of the log since the snapshot. Default 5. */
  readonly caughtUpPercent?: number;
  /**
   * The time that several cores of a host share. The host counts its ticks, and calls `elapsed` on a core once they
   * reach its `dueTick`. Absent: the core has its own and is driven by `tick`.
   */
  readonly time?: TickTime;
  /**
   * Called before each campaign that follows a wait for a leader; false delays it by `heartbeatTicks`. For hosts that
   * limit how many of their groups campaign at a time.
   */
  readonly admitsCampaign?: () => boolean;
  /** Length of the leader's lease in milliseconds (`leaseLengthMs`); default 0: none. */
  readonly leaseMs?: number;
  readonly random: Random;
  /** Receives every change of state and every message (see `trace.ts`). */
  readonly trace?: TraceSink;
}

/** The state of a replica at its start, durable unless it is `unpersisted`. */
export interface RaftInitial {
  readonly hardState: HardState;
  /** The configuration as of `applied`. */
  readonly conf: ConfState;
  /**
   * The position before the log's first entry: the last compacted position or that of a snapshot; (0, 0) for a complete
   * log.
   */
  readonly start: LogPosition;
  /** The last entries of the log, those to keep in memory: all of them unless there is an `outline`. */
  readonly entries: readonly Entry[];
  /** Describes the log from `start` on. */
  readonly outline?: LogOutline | undefined;
  /** The state machine holds everything up to this index; at least `start.index`. */
  readonly applied: number;
  /**
   * The replica ran before, and may have promised a leader not to vote for others: it refuses unforced votes for one
   * full election timeout (design §4).
   */
  readonly restarted: boolean;
  /**
   * The log has no record of `hardState` and `start` yet, though both would be found again after a crash. They are
   * handed out with the first mark, and nothing is promised in that term before it is persisted (persist-gate.ts H1).
   */
  readonly unpersisted?: boolean | undefined;
  /**
   * The first wait for a leader, instead of a random one. It is short where there can be no leader yet, and differs
   * between the members of a new group, so that they do not split their votes. Later waits are random.
   */
  readonly firstWaitTicks?: number | undefined;
  /**
   * For a new group whose members are created at about the same time, in one term: while there was no leader, this
   * replica asks for pre-votes again after this many ticks, for an election time-out. Absent: when the next wait is
   * over.
   */
  readonly firstRetryTicks?: number | undefined;
  /**
   * For a new group that begins with a leader that was not elected (roles.ts R3). Ignored by a replica that ran before.
   */
  readonly firstLeader?: ReplicaId | undefined;
}

/** A leader's view of one other replica. */
export interface ProgressStatus {
  readonly replica: ReplicaId;
  readonly learner: boolean;
  /** The highest index known to be durable there. */
  readonly match: number;
  /** The commit index that the replica last reported: it applies up to there. */
  readonly commit: number;
  /** The next index to send. */
  readonly next: number;
  readonly state: ProgressState;
  /** Heard from since the last quorum check: briefly false after each check even if the replica answers. */
  readonly active: boolean;
  /** Heard from since the last check or the one before: within two election timeouts. */
  readonly heardLately: boolean;
  /** The replica has acknowledged an append in this term, so merged heartbeats may include it (design §5). */
  readonly steady: boolean;
  /** Entries and bytes that the replica is behind; bytes are estimated for entries that left memory. */
  readonly lagEntries: number;
  readonly lagBytes: number;
  /**
   * The replica is alive, accepts entries as they come, and lags little (`caughtUpEntries`, `caughtUpPercent`): a
   * learner may be promoted. The core promotes no learner; the component that added it requests that.
   */
  readonly caughtUp: boolean;
}

export interface RaftStatus {
  readonly id: ReplicaId;
  readonly role: Role;
  readonly term: number;
  readonly vote: ReplicaId;
  readonly leader: ReplicaId;
  readonly commit: number;
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** Ticks since a leader was heard, or since the start; 0 for a leader. */
  readonly silentTicks: number;
  /** The highest index that is durable here. */
  readonly stableIndex: number;
  readonly conf: ConfState;
  /** The leader has committed an entry of its own term. */
  readonly leaderReady: boolean;
  /** Target of the leadership transfer in progress; 0 if none. */
  readonly transferee: ReplicaId;
  /**
   * For a leader: its log may contain a membership change that is not applied, so no other is accepted. Also true until
   * a new leader has applied the entries that it found.
   */
  readonly changePending: boolean;
  /** A leader's view of the others; empty otherwise. */
  readonly progress: readonly ProgressStatus[];
}
