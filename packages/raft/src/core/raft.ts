/**
 * One replica of one Raft group, modelled on etcd-io/raft: synchronous and pure. Inputs are ticks, messages, proposals
 * and reports; the output is one `Ready` per turn.
 *
 *   const ready = core.ready();
 *   transport.send(ready.messages);          // may leave before our own fsync
 *   log.append(ready.persist, () => core.persisted(mark));
 *   apply(ready.committed); core.appliedTo(last);
 *
 * Map of the files: `step.ts` dispatches messages; `roles.ts` has the transitions; `election.ts` votes; `leader.ts`,
 * `thrifty-replication.ts` and `follower.ts` replication; `reconfigure.ts` membership changes; `forced.ts` recovery
 * from a lost majority; `log.ts` entries and their durability; `entry-reads.ts` entries that left memory;
 * `persist-gate.ts` messages that wait for an fsync; `read-index.ts` and `lease.ts` reads; `quorum.ts` majorities;
 * `ready.ts` the output.
 */
import { assert } from '@remora/base';
import type { RaftConfig, RaftInitial, RaftStatus } from './config.ts';
import { leaderGone, tickElection } from './election.ts';
import { keepLoaded, takeRead } from './entry-reads.ts';
import { offerSnapshot, restartAtSnapshot } from './follower.ts';
import {
  heartbeatAnswered,
  heartbeatRefused,
  leaderDueTick,
  maybeCommit,
  propose,
  reportSnapshot,
  reportUnreachable,
  sendRead,
  startReads,
  tellCommits,
  tickLeader,
  transferLeader,
} from './leader.ts';
import { leaseHolds } from './lease.ts';
import type { ConfChange } from './membership/conf-change.ts';
import { commitForced, forceAlone } from './membership/forced.ts';
import { isJoint } from './membership/membership.ts';
import { applyConf, leaveJointWhenDue, proposeConf } from './membership/reconfigure.ts';
import { Readies } from './ready.ts';
import { becomeFollower, beginUnder } from './roles.ts';
import { CoreState } from './state.ts';
import { statusOf } from './status.ts';
import { stepMessage } from './step.ts';
import { reviewWaiting } from './thrifty-replication.ts';
import { trace } from './trace.ts';
import {
  type ConfState,
  type Entry,
  type EntryRead,
  type LogPosition,
  type Message,
  type Moment,
  NO_REPLICA,
  type NotForced,
  type PersistMark,
  type Ready,
  type Refusal,
  type Refused,
  type ReplicaId,
  type Role,
  type SnapshotMeta,
} from './types.ts';

const NO_ENTRIES: readonly Entry[] = [];

/** One replica of one Raft group. See the file's header for how a host drives it. */
export class RaftCore {
  readonly id: ReplicaId;
  readonly #s: CoreState;
  readonly #readies: Readies;

  constructor(config: RaftConfig, initial: RaftInitial) {
    this.#s = new CoreState(config, initial);
    this.id = config.id;
    this.#readies = new Readies(this.#s, initial.hardState.term);
    if (initial.firstLeader !== undefined && !initial.restarted) beginUnder(this.#s, initial.firstLeader);
  }

  get role(): Role {
    return this.#s.role;
  }
  get term(): number {
    return this.#s.term;
  }
  /** The known leader; 0 if unknown. */
  get leader(): ReplicaId {
    return this.#s.leader;
  }
  get commit(): number {
    return this.#s.commit;
  }
  get applied(): number {
    return this.#s.applied;
  }
  get conf(): ConfState {
    return this.#s.conf;
  }
  /** True for a leader that has committed an entry of its own term. */
  get leaderReady(): boolean {
    return this.#s.leaderReady;
  }

  /** Ticks since a leader was heard, or since the start if none was; 0 for a leader. */
  get silentTicks(): number {
    const s = this.#s;
    return s.role === 'leader' ? 0 : s.time.ticks - s.heardTick;
  }

  /** It leads, and some member was not heard between the last two quorum checks. */
  get missesSome(): boolean {
    return this.#s.role === 'leader' && this.#s.missesSome;
  }

  /** One unit of time has passed. `now` is needed for leases only; it may be read a little earlier, never later. */
  tick(now?: Moment): void {
    const { time, dueTick } = this.#s;
    time.now = now;
    if (++time.ticks >= dueTick) this.elapsed();
  }

  /** The next tick at which there may be work, in the ticks of `RaftConfig.time`. It can move either way. */
  get dueTick(): number {
    const s = this.#s;
    // Merged heartbeats postpone the election, and leave `dueTick` (S4).
    return s.dueTick === 0 || s.role === 'leader' ? s.dueTick : s.electionSince + s.electionTimeout;
  }

  /** `dueTick` has come; on a shared time the host calls this instead of `tick`. Calling it early does no harm. */
  elapsed(): void {
    const s = this.#s;
    if (s.role === 'leader') {
      tickLeader(s);
      leaveJointWhenDue(s); // a transfer that it waited for may have been given up
    } else {
      tickElection(s);
    }
    s.dueTick = s.role === 'leader' ? leaderDueTick(s) : s.electionSince + s.electionTimeout;
  }

  /** A message has arrived. Messages not addressed to this replica are ignored. */
  step(message: Message): void {
    const s = this.#s;
    if (message.to !== s.id) return;
    s.dueTick = 0;
    trace(s, 'receive', message);
    stepMessage(s, message);
  }

  /**
   * Appends one entry as the leader and returns its position. It is sent and persisted with the next `Ready`; it
   * counts only when an entry of the same (index, term) is handed out as committed.
   * Refusals: `notLeader`, `transferring`, `queueFull`.
   */
  propose(data: Uint8Array): LogPosition | Refused {
    this.#s.dueTick = 0;
    return propose(this.#s, 'normal', data);
  }

  /**
   * Appends a membership change, as an entry of type `conf`. It takes effect when it is applied: decode its data then
   * (`decodeConfChange`), compute the next configuration (`changeConf`) and report it with `applyConf`. One at a time,
   * and only once an entry of the leader's own term is committed (traps 1, 2). Refusals: those of `propose`,
   * `noOwnTermCommit`, `confPending`, `confInvalid`.
   */
  proposeConf(change: ConfChange): LogPosition | Refused {
    this.#s.dueTick = 0;
    return proposeConf(this.#s, change);
  }

  /**
   * Makes this replica the only member of a group that permanently lost its majority (forced.ts); done when applied.
   */
  forceAlone(context: ConfChange['context']): LogPosition | NotForced {
    this.#s.dueTick = 0;
    return forceAlone(this.#s, context);
  }

  /**
   * The state machine has applied a `conf` entry: from now on this is the configuration. Call it before `appliedTo` of
   * that entry. A leader that is no longer a voter steps down; a leader in a joint configuration with automatic leave
   * appends the leave.
   */
  applyConf(conf: ConfState): void {
    this.#s.dueTick = 0;
    applyConf(this.#s, conf);
  }

  /** Whether the configuration is joint. */
  get joint(): boolean {
    return isJoint(this.#s.conf);
  }

  /**
   * Starts a ReadIndex round at once. `context` (above 0, larger than any before it) comes back in `Ready.readStates`
   * when a quorum has confirmed the leadership after this call, or in `Ready.readsDropped` when leadership is lost
   * first. Before the leader has committed an entry of its own term the round waits for that.
   * Refusals: `notLeader`, `queueFull`.
   */
  readIndex(context: number): Refusal | undefined {
    const s = this.#s;
    s.dueTick = 0;
    assert(s.reads.accepts(context), 'I1: read contexts grow');
    if (s.role !== 'leader') return 'notLeader';
    if (s.reads.full) return 'queueFull';
    s.reads.wait(context);
    if (s.leaderReady) startReads(s);
    return undefined;
  }

  /**
   * Transfers leadership: brings the target up to date, then asks it to campaign at once. In the meantime proposals are
   * refused `transferring`; given up after an election timeout. Refusals: `notLeader`, `transferring` (to another
   * target), `notVoter`.
   */
  transferLeader(to: ReplicaId): Refused | undefined {
    this.#s.dueTick = 0;
    return transferLeader(this.#s, to);
  }

  /** Sends the commit index to the followers at once (leader.ts L7); does nothing if this replica does not lead. */
  tellCommits(): void {
    this.#s.dueTick = 0;
    tellCommits(this.#s);
  }

  /** Entries are held back from some followers (`RaftConfig.entriesMayWait`). */
  get appendsWait(): boolean {
    return this.#s.thrift.waiting;
  }

  /**
   * Call this at an interval while `appendsWait`. Entries held back go out with the next `Ready` if no entries followed
   * since the last call, or if those of the last call are not committed. Returns false if nothing is held back any
   * more.
   */
  reviewAppends(): boolean {
    return reviewWaiting(this.#s);
  }

  /** A leadership transfer is in progress: proposals are refused. */
  get transferring(): boolean {
    return this.#s.role === 'leader' && this.#s.transferee !== NO_REPLICA;
  }

  /** Whether `ready` has anything to hand out. */
  hasReady(): boolean {
    return this.#readies.hasReady();
  }

  /** Returns all pending work. Each item is handed out once. */
  ready(): Ready {
    return this.#readies.take();
  }

  /**
   * The answer to `Ready.entriesWanted`: contiguous from `read.from`, at least one, perhaps not up to `read.to`. Empty,
   * or entries of another term, if the log was truncated or compacted meanwhile. Throws `InvariantError` if it was not:
   * then durable entries are lost.
   */
  entriesRead(read: EntryRead, entries: readonly Entry[]): void {
    const s = this.#s;
    s.dueTick = 0;
    const usable = takeRead(s, read, entries) ?? NO_ENTRIES;
    if (read.reader === s.id) keepLoaded(s, usable);
    else sendRead(s, read.reader, usable);
  }

  /**
   * Drops entries up to `index` from memory, as far as they are durable. `Ready.entriesWanted` requests them when they
   * are needed again.
   */
  evictTo(index: number): void {
    this.#s.log.evictTo(index);
  }

  /** The memory of the entries in the window, in bytes. */
  get entryMemoryBytes(): number {
    return this.#s.log.memoryBytes;
  }

  /** Entries behind this index are in memory. */
  get entryWindowStart(): number {
    return this.#s.log.windowStart;
  }

  get lastIndex(): number {
    return this.#s.log.lastIndex;
  }

  /**
   * Everything handed out under `mark` is durable. Marks are reported in order, each once. Releases the messages that
   * waited for it (votes, vote requests, acknowledgements) and counts the leader's own log: call `ready` afterwards.
   */
  persisted(mark: PersistMark): void {
    const s = this.#s;
    s.dueTick = 0;
    const released = s.gate.close(mark.sequence);
    s.log.closeMark();
    trace(s, 'persisted');
    for (const message of released) {
      if (message.term !== s.term) continue; // H3
      if (message.type === 'vote' && s.role !== 'candidate') continue;
      if (message.to === s.id) this.#stepOwn(message);
      else s.send(message);
    }
    if (s.role === 'leader') maybeCommit(s);
    commitForced(s);
  }

  /** The own vote, now durable, counts like the others' (E1). */
  #stepOwn(message: Message): void {
    trace(this.#s, 'send', message);
    this.step(message);
  }

  /** The state machine has applied everything up to `index`; call `ready` again if `hasReady`. */
  appliedTo(index: number): void {
    const s = this.#s;
    if (index <= s.applied) return;
    s.dueTick = 0;
    assert(index <= s.delivered, 'S1: only what was handed out is applied');
    s.applying.freeTo(index);
    s.applied = index;
    leaveJointWhenDue(s);
  }

  /** Drops entries up to `index` (at most `applied`) from memory. Indexes that are already compacted are ignored. */
  compactTo(index: number): void {
    assert(index <= this.#s.applied, 'G1: only what is applied is compacted');
    this.#s.log.compactTo(index);
  }

  /**
   * The leader's process has ended, as far as the host knows: a follower elects another leader without waiting for an
   * election timeout (election.ts E8). Not for hosts with leases (lease.ts E8).
   */
  leaderGone(): void {
    this.#s.dueTick = 0;
    leaderGone(this.#s);
  }

  /** Messages to this replica may have been lost: replication to it returns to `probe`. */
  reportUnreachable(to: ReplicaId): void {
    this.#s.dueTick = 0;
    reportUnreachable(this.#s, to);
  }

  /** The snapshot wanted by `Ready.snapshotsWanted` was installed there up to `index`, or has failed. */
  reportSnapshot(to: ReplicaId, ok: boolean, index: number): void {
    this.#s.dueTick = 0;
    reportSnapshot(this.#s, to, { ok, index });
  }

  /**
   * A leader offers a snapshot. True: receive it, then call `installed`, or `installFailed` if it broke off. Until then
   * this replica does not accept appends, hand out committed entries or campaign, and further offers are declined.
   * False: not needed or not legitimate; an answer for the leader may be in the next `Ready`.
   */
  acceptsSnapshot(from: ReplicaId, term: number, meta: SnapshotMeta): boolean {
    const s = this.#s;
    s.dueTick = 0;
    if (term < s.term) return false;
    if (term > s.term) becomeFollower(s, term, from);
    return offerSnapshot(s, from, meta);
  }

  /** The accepted snapshot is durably in the state machine: the log restarts there, under its configuration. */
  installed(snapshot: SnapshotMeta): void {
    const s = this.#s;
    s.dueTick = 0;
    const { installing } = s;
    assert(
      installing !== undefined && installing.index === snapshot.index && installing.term === snapshot.term,
      'F3: only the accepted snapshot is installed',
    );
    restartAtSnapshot(s, snapshot);
  }

  /** Receiving the accepted snapshot failed, and the state machine is unchanged: the replica continues without it. */
  installFailed(): void {
    this.#s.dueTick = 0;
    this.#s.installing = undefined;
  }

  // ------------------------------------------------------------------------------------------ merged heartbeats

  /** Changes whenever `steadyFollowers` does. */
  get steadyVersion(): number {
    return this.#s.steadyVersion;
  }

  /**
   * The followers that may be in merged heartbeats: each has acknowledged an append in this leader's current term, and
   * nothing since indicates that it may have stopped following. `epoch` identifies that period of steadiness (design §5
   * ▸).
   */
  steadyFollowers(): readonly { readonly replica: ReplicaId; readonly epoch: number }[] {
    return this.#s.peers
      .filter((pr) => pr.steadyEpoch > 0)
      .map(({ id, steadyEpoch }) => ({ replica: id, epoch: steadyEpoch }));
  }

  /** The host starts or stops sending the heartbeats to `to`; the core sends none while the host does. */
  mergeHeartbeats(to: ReplicaId, epoch: number, merged: boolean): void {
    const pr = this.#s.progress.get(to);
    this.#s.dueTick = 0;
    if (pr?.steadyEpoch === epoch && epoch > 0) pr.merged = merged;
  }

  /**
   * A merged heartbeat of `from`'s node names this group. True if `from` leads this replica's current term: the replica
   * keeps waiting. False: report that to the sender, which calls `heartbeatRefusedBy`.
   */
  heartbeatFrom(from: ReplicaId): boolean {
    const s = this.#s;
    if (s.role !== 'follower' || from !== s.leader || from === NO_REPLICA) return false;
    s.heardLeader();
    return true;
  }

  /** `from` did not refuse a merged heartbeat that was sent, at `sent`, while it was steady in `epoch`. */
  heartbeatAnsweredBy(from: ReplicaId, epoch: number, sent?: Moment): void {
    heartbeatAnswered(this.#s, from, epoch, sent);
  }

  /** `from` refused a merged heartbeat of `epoch`: it is no longer steady, and gets a full one at once. */
  heartbeatRefusedBy(from: ReplicaId, epoch: number): void {
    this.#s.dueTick = 0;
    heartbeatRefused(this.#s, from, epoch);
  }

  // ------------------------------------------------------------------------------------------ lease

  /**
   * Whether no other leader can have been elected up to `now`, which the caller has just read (lease.ts). Always false
   * without `RaftConfig.leaseMs`. Work under the lease waits until what is committed now is applied.
   */
  hasLease(now: Moment): boolean {
    return leaseHolds(this.#s, now);
  }

  /** The node stood still, or its clocks are not reliable: only heartbeats sent after `nowMs` count for a lease. */
  voidLease(nowMs: number): void {
    this.#s.leaseVoidMs = Math.max(this.#s.leaseVoidMs, nowMs);
  }

  status(): RaftStatus {
    return statusOf(this.#s);
  }
}
