/**
 * The state that the parts of the core share: one replica's state and its outgoing queues. Only the files of this
 * folder touch it; all other code uses `RaftCore`.
 *
 * S1. `commit` ≤ `log.lastIndex`; `applied` ≤ `delivered` ≤ `commit`.
 * S2. Only `roles.ts` changes `term` and `vote`. Messages that promise them wait in the gate until they are durable.
 * S3. Pre-vote messages, heartbeats and rejections promise nothing durable and are sent at once.
 * S4. A wait is stored as the tick at which it began, so that a tick before `dueTick` only counts: with thousands of
 *     idle groups, ticks must cost almost nothing. Every input sets `dueTick` to 0, so that the next tick checks
 *     everything. Only merged heartbeats and their answers leave it, because they postpone work and never bring it
 *     forward.
 */
import { assert, LazyMap, LazySet } from '@remora/base';
import { ByteMarks } from './byte-marks.ts';
import type { RaftConfig, RaftInitial } from './config.ts';
import { RaftLog } from './log.ts';
import { isOnlyVoter, isVoter } from './membership/membership.ts';
import { PersistGate } from './persist-gate.ts';
import type { Progress } from './progress.ts';
import { ReadQueue } from './read-index.ts';
import type { RoundTimes } from './state-parts.ts';
import { EntryReads, ThriftyReplication } from './state-parts.ts';
import { trace } from './trace.ts';
import {
  type ConfState,
  type LogPosition,
  type Message,
  NO_REPLICA,
  type ReadState,
  type ReplicaId,
  type Role,
  type SnapshotMeta,
  type TickTime,
} from './types.ts';

export class CoreState {
  readonly config: RaftConfig;
  readonly id: ReplicaId;
  readonly preVote: boolean;
  readonly checkQuorum: boolean;
  readonly log: RaftLog;
  readonly gate = new PersistGate();

  role: Role = 'follower';
  term: number;
  vote: ReplicaId;
  leader: ReplicaId = NO_REPLICA;
  conf: ConfState;
  commit: number;
  /** Committed entries up to `delivered` were handed out, and up to `applied` applied. */
  delivered: number;
  applied: number;
  /** Entries handed out and not applied. */
  readonly applying = new ByteMarks();

  /**
   * Ticks so far, perhaps those of the whole host. Messages are assumed to be sent as early as the last tick (lease.ts
   * E1).
   */
  readonly time: TickTime;
  /** When a leader was last heard, or this replica was the leader. */
  heardTick: number;
  /** The ticks at which waits began (S4). */
  electionSince = 0;
  heartbeatSince = 0;
  transferSince = 0;
  /** The next tick at which there may be work (S4). */
  dueTick = 0;
  /** This wait's length (`RaftConfig.electionSpreadTicks`). */
  electionTimeout = 0;
  readonly firstRetryTicks: number | undefined;
  readonly firstTerm: number;
  /** Until this tick, pre-votes are repeated soon, if `firstRetryTicks` is set. */
  readonly firstTriesUntil: number;
  /**
   * The tick up to which unforced votes are refused: a full election timeout since a leader was heard, whatever term
   * was learned since, and since a restart, which forgets the leader (design §4 ▸). Leases are built on it (lease.ts).
   * Only `releaseLeader` ends it earlier.
   */
  guardUntil: number;
  /** Answers in the (pre-)election in progress. */
  readonly votes = new LazyMap<ReplicaId, boolean>();

  /** Leader only: the others, by id and as a list. */
  readonly progress = new LazyMap<ReplicaId, Progress>();
  peers: readonly Progress[] = [];
  /** Leader only: some member was not heard between the last two quorum checks. */
  missesSome = false;
  /** Counts changes of the set of steady followers; the source of `Progress.steadyEpoch`. */
  steadyVersion = 0;
  /** Leader only: an entry of the own term is committed. */
  leaderReady = false;
  /** Leader only: proposals that are not committed. */
  readonly uncommitted = new ByteMarks();
  /** Leader only: there may be entries to send; `ready` checks. */
  sendDirty = false;
  /** Leader only: decides which followers get entries at once. */
  thrift = new ThriftyReplication();
  transferee: ReplicaId = NO_REPLICA;
  /** Leader only: TimeoutNow was sent in this term (lease.ts E5). */
  handedOver = false;
  /** Index of the last membership change in the log: no other is proposed until it is applied (traps 2). */
  confIndex = 0;
  /** A forced change that is not known to be durable here (forced.ts). */
  forcedAt: LogPosition | undefined;
  readonly reads = new ReadQueue();
  roundTimes: RoundTimes | undefined;
  /** Only heartbeats sent later count for a lease (lease.ts E6). */
  leaseVoidMs = Number.NEGATIVE_INFINITY;
  readonly entryReads = new EntryReads();

  /** The snapshot that the host is receiving for this replica. */
  installing: SnapshotMeta | undefined;
  /** The log restarted here; handed out with the next mark. */
  restartAt: SnapshotMeta | undefined;
  /** Followers whose snapshot was requested in this leadership and not reported yet: one at a time each. */
  readonly snapshotsInFlight = new LazySet<ReplicaId>();

  outbox: Message[] = [];
  readStates: ReadState[] = [];
  readsDropped: number[] = [];
  snapshotsWanted: ReplicaId[] = [];
  /** Term or vote changed since they were handed out for persistence. */
  hardDirty = false;
  /** The commit index last handed out for persistence. */
  persistedCommit: number;

  constructor(config: RaftConfig, initial: RaftInitial) {
    const { hardState, start, entries, applied } = initial;
    assert(config.id !== NO_REPLICA, 'a replica has an id');
    assert(
      config.heartbeatTicks > 0 && config.electionTicks > config.heartbeatTicks,
      'electionTicks > heartbeatTicks > 0',
    );
    this.config = config;
    this.time = config.time ?? { ticks: 0, now: undefined };
    this.heardTick = this.time.ticks;
    this.id = config.id;
    this.preVote = config.preVote ?? true;
    this.checkQuorum = config.checkQuorum ?? true;
    this.log = new RaftLog(start, entries, initial.outline);
    assert(applied >= start.index && applied <= this.log.lastIndex, 'S1: what is applied is within the log');
    // A snapshot may have become durable before the term that came with it.
    this.term = Math.max(hardState.term, this.log.lastTerm);
    this.vote = this.term === hardState.term ? hardState.vote : NO_REPLICA;
    this.hardDirty = this.term !== hardState.term || initial.unpersisted === true;
    this.commit = Math.min(Math.max(hardState.commit, applied), this.log.lastIndex);
    this.persistedCommit = hardState.commit;
    this.conf = initial.conf;
    this.applied = applied;
    this.delivered = applied;
    this.guardUntil = initial.restarted ? this.time.ticks + config.electionTicks : 0;
    this.resetElectionTimer();
    // A restarted replica's earlier promise also binds its own campaign.
    if (initial.firstWaitTicks !== undefined && !initial.restarted) this.electionTimeout = initial.firstWaitTicks;
    if (this.#decidesAlone) this.electionTimeout = 0; // election.ts E9
    this.firstTerm = this.term;
    this.firstRetryTicks = initial.restarted ? undefined : initial.firstRetryTicks;
    this.firstTriesUntil = this.time.ticks + config.electionTicks;
    trace(this, 'start');
  }

  resetElectionTimer(): void {
    this.electionSince = this.time.ticks;
    const { electionTicks, electionSpreadTicks = electionTicks, random } = this.config;
    this.electionTimeout = electionTicks + random.int(electionSpreadTicks);
  }

  /**
   * The rest of a follower's wait is reduced to a quarter. A new wait, after a leader was heard, has the full length.
   */
  shortenElectionWait(): void {
    const left = this.electionSince + this.electionTimeout - this.time.ticks;
    if (this.role === 'follower' && left > 0) this.electionSince -= Math.ceil((3 * left) / 4);
  }

  /** The promise to the leader ends; this replica campaigns after `ticks`, or earlier if it would have anyway. */
  releaseLeader(ticks: number): void {
    this.guardUntil = this.time.ticks;
    const since = this.time.ticks + ticks - this.electionTimeout;
    this.electionSince = Math.min(this.electionSince, since);
  }

  /** No leader is possible yet: the other replicas are about to be created, and are asked again soon. */
  hurryFirstElection(): void {
    if (this.firstRetryTicks === undefined || this.term > this.firstTerm) return;
    if (this.time.ticks >= this.firstTriesUntil) return;
    this.electionTimeout = this.firstRetryTicks;
  }

  /** Sends at once (S3), or sends what an fsync has released. */
  send(message: Message): void {
    trace(this, 'send', message);
    this.outbox.push(message);
  }

  /** Sends once everything unpersisted by now is durable. */
  sendDurable(message: Message): void {
    if (!this.gate.hold(message, this.dirty)) this.send(message);
  }

  /** Something waits to be handed out to be persisted. */
  get dirty(): boolean {
    return this.hardDirty || this.restartAt !== undefined || this.log.hasUnpersisted;
  }

  /** A leader may have a live quorum: unforced votes are refused (dissertation §4.2.3, design §4). */
  get inLease(): boolean {
    return this.checkQuorum && (this.role === 'leader' || this.time.ticks < this.guardUntil);
  }

  get promotable(): boolean {
    return this.installing === undefined && isVoter(this.conf, this.id) && !this.#hasUnappliedConf();
  }

  /** This replica is the only voter, and its log holds nothing that could have changed that (election.ts E9). */
  get #decidesAlone(): boolean {
    return isOnlyVoter(this.conf, this.id) && !this.log.hasConf(this.applied, this.log.lastIndex);
  }

  /**
   * A committed membership change that is not applied yet may decide whose votes count (dissertation §4.1; traps 2).
   */
  #hasUnappliedConf(): boolean {
    return this.log.hasConf(this.applied, this.commit);
  }

  /** The leader was heard: wait for it, and refuse to replace it, for a full election timeout. */
  heardLeader(): void {
    this.electionSince = this.time.ticks;
    // A first wait may be shorter, and would break the promise to the leader (lease.ts E2).
    if (this.electionTimeout < this.config.electionTicks) this.resetElectionTimer();
    this.heardTick = this.time.ticks;
    this.guardUntil = this.time.ticks + this.config.electionTicks;
  }

  commitTo(index: number): void {
    if (index <= this.commit) return;
    assert(index <= this.log.lastIndex, 'S1: a commit index past the end of the log: an acknowledged entry was lost');
    this.commit = index;
    trace(this, 'commit');
  }

  /** The index up to which `id` is known to hold entries durably; for quorums of replication. */
  readonly matchOf = (id: ReplicaId): number =>
    id === this.id ? this.log.stableIndex : (this.progress.get(id)?.match ?? 0);

  /** The last ReadIndex round that `id` has answered. */
  readonly roundOf = (id: ReplicaId): number =>
    id === this.id ? this.reads.round : (this.progress.get(id)?.round ?? 0);

  readonly isActive = (id: ReplicaId): boolean => id === this.id || this.progress.get(id)?.active === true;
}
