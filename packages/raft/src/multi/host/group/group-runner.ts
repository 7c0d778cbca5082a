/**
 * One local replica: its core, its state machine, and the work in progress between them.
 *
 * G1. Everything that a turn does for a group goes through `collect` (outgoing messages and log records) and then
 *     `apply`; nothing is sent or written between turns.
 * G2. A message counts only if it is addressed to this replica and comes from the node of its sender.
 * G3. The membership after a `conf` entry follows from the membership before it, the entry, and the state machine's
 *     veto on the state applied so far. An impossible or vetoed change has no effect, on every replica.
 */
import { assert, type Logger } from '@remora/base';
import { type ConfChange, changeConf, takesEffectAlways } from '../../../core/membership/conf-change.ts';
import { decodeConfChange } from '../../../core/membership/conf-change-codec.ts';
import { isMember, membersOf } from '../../../core/membership/membership.ts';
import { RaftCore } from '../../../core/raft.ts';
import type {
  ConfState,
  Entry,
  EntryRead,
  LogPosition,
  Message,
  Moment,
  NotForced,
  PersistMark,
  Ready,
  Refusal,
  Refused,
  ReplicaId,
  Role,
} from '../../../core/types.ts';
import type { GroupOptions, GroupStatus } from '../../host-api.ts';
import type { GroupAppend, GroupId, NodeId, StateMachine } from '../../ports.ts';
import { NOWHERE } from '../clock/tick-wheel.ts';
import type { CacheShare } from '../entries/entry-cache.ts';
import type { EntryOwner } from '../entries/entry-reader.ts';
import type { HeartbeatReceiver, HeartbeatSender, SteadyFollower } from '../heartbeats/heartbeats.ts';
import { MergedFollowers } from '../heartbeats/merged-followers.ts';
import { coreConfig, type HostContext } from '../host-context.ts';
import type { Outbox } from '../outbox.ts';
import type { HostInFlight } from '../stats.ts';
import { ApplyQueue } from './apply-queue.ts';
import type { GroupHandle } from './group-handle.ts';
import { GroupSnapshots } from './group-snapshots.ts';
import { LogTail } from './log-tail.ts';
import { ReadQueue } from './reads.ts';
import { startState } from './recovery.ts';
import { ReplicaPlaces } from './replica-places.ts';

const QUEUE_FULL: Refused = { refused: 'queueFull' };
const NOT_LEADER: Refused = { refused: 'notLeader' };

export class GroupRunner implements GroupHandle, EntryOwner, HeartbeatSender, HeartbeatReceiver {
  readonly groupId: GroupId;
  readonly replicaId: ReplicaId;
  #logger: Logger | undefined;
  readonly snapshots: GroupSnapshots;
  /** Managed by the host: whether the group waits for the next turn. */
  dirty = false;
  /** Managed by the host: the tick at which it is examined next. */
  place = NOWHERE;
  readonly #host: HostContext;
  readonly #stateMachine: StateMachine;
  readonly #core: RaftCore;
  readonly #apply: ApplyQueue;
  readonly #reads: ReadQueue;
  readonly #tail: LogTail;
  readonly #cached: CacheShare;
  readonly #places: ReplicaPlaces;
  #applied: LogPosition;
  /** The first record of a log that restarts; due with the next turn. */
  #restart: GroupAppend | undefined;
  readonly #merged: MergedFollowers;
  #closed = false;
  /** The last leader that was known; 0 before the first. */
  #lastLeader = 0;

  constructor(host: HostContext, options: GroupOptions) {
    const { groupId, replicaId, applied, recovered } = options;
    assert(options.conf.voters.length > 0 || applied.index === 0, 'nothing can be applied without membership');
    this.groupId = groupId;
    this.replicaId = replicaId;
    this.#host = host;
    // Not the recovered state: that would stay in memory for ever.
    const { stateMachine, locate, firstWaitTicks, firstRetryTicks, firstLeader } = options;
    this.#stateMachine = stateMachine;
    this.#places = new ReplicaPlaces(locate);
    this.#applied = applied;
    const { hardState, start, outline, entries, restartAt } = startState({ groupId, applied, recovered });
    this.#restart = restartAt && { groupId, hardState, entries: [], restartAt };
    this.#core = new RaftCore(coreConfig(host, this), {
      hardState,
      conf: options.conf,
      start,
      outline,
      entries,
      applied: applied.index,
      restarted: recovered !== undefined,
      unpersisted: restartAt !== undefined,
      firstWaitTicks,
      firstRetryTicks,
      firstLeader,
    });
    this.#merged = new MergedFollowers({
      core: this.#core,
      sender: this,
      heartbeats: host.heartbeats,
      locate: (replica) => this.locate(replica),
    });
    this.#tail = new LogTail({ entries: host.options.tailEntries, bytes: host.options.tailBytes }, start);
    this.#tail.recovered(outline, applied.index);
    this.#cached = host.entryCache.join(this.#core);
    this.#reads = new ReadQueue(host.options.pendingReadsMax);
    this.#apply = new ApplyQueue(
      stateMachine,
      {
        confAfter: (slice) => this.#confAfter(slice),
        applied: (slice, conf) => this.#onApplied(slice, conf),
        resumed: () => host.markDirty(this),
        failed: (error) => host.fail(error),
      },
      { entries: host.options.applySliceEntries, bytes: host.options.applySliceBytes },
    );
    this.snapshots = new GroupSnapshots({
      host,
      core: this.#core,
      stateMachine,
      apply: this.#apply,
      tail: this.#tail,
      cached: this.#cached,
      applied: () => this.#applied,
      restarted: (position) => {
        this.#applied = position;
      },
      changed: () => host.markDirty(this),
    });
    host.markDirty(this);
  }

  // ---------------------------------------------------------------------------------------------- Group

  get logger(): Logger {
    this.#logger ??= this.#host.logger.child({ group: this.groupId, replica: this.replicaId });
    return this.#logger;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get role(): Role {
    return this.#core.role;
  }

  get leads(): boolean {
    return this.#core.role === 'leader';
  }

  get term(): number {
    return this.#core.term;
  }

  get leader(): ReplicaId {
    return this.#core.leader;
  }

  get ready(): boolean {
    const told = this.#apply.told;
    return (
      !this.#closed &&
      told?.role === 'leader' &&
      told.term === this.#applied.term &&
      this.#core.role === 'leader' &&
      this.#core.term === told.term
    );
  }

  propose(data: Uint8Array): LogPosition | Refused {
    return this.#proposed(this.#refused() ?? this.#core.propose(data));
  }

  proposeConf(change: ConfChange): LogPosition | Refused {
    return this.#proposed(this.#refused() ?? this.#core.proposeConf(change));
  }

  forceAlone(context: ConfChange['context']): LogPosition | NotForced {
    if (this.#closed) return { refused: 'noData' };
    this.#host.markDirty(this);
    return this.#core.forceAlone(context);
  }

  /** Why this node accepts no proposals now, independently of the core. */
  #refused(): Refused | undefined {
    if (this.#closed) return NOT_LEADER;
    if (!this.#host.log.full || this.#core.role !== 'leader') return undefined;
    this.#host.stats.logFull++;
    return QUEUE_FULL;
  }

  #proposed(result: LogPosition | Refused): LogPosition | Refused {
    if (!('refused' in result)) {
      this.#host.stats.entriesProposed++;
      this.#host.markDirty(this);
    }
    return result;
  }

  readIndex(done: (refused: Refusal | undefined) => void): void {
    if (this.#closed || this.#core.role !== 'leader') done('notLeader');
    else if (!this.#reads.add(done)) done('queueFull');
    else {
      this.#host.stats.readsStarted++;
      this.#host.markDirty(this);
    }
  }

  leaseRead(done: (refused: Refusal | undefined) => void): void {
    if (!this.hasLease()) this.readIndex(done);
    else if (this.#reads.addLeased(this.#core.commit, this.#applied.index, done)) this.#host.stats.readsLeased++;
    else done('queueFull');
  }

  hasLease(): boolean {
    if (this.#closed || !this.#host.options.leaseReads || this.#core.role !== 'leader') return false;
    return this.#core.hasLease(this.#host.leaseClock.now());
  }

  voidLease(nowMs: number): void {
    this.#core.voidLease(nowMs);
  }

  checkpointed(position: LogPosition): void {
    if (this.#closed) return;
    this.#tail.checkpointed(position);
    // The state machine is ahead of what the group knows while an installation or a long apply ends: nothing is
    // compacted yet.
    if (position.index > this.#applied.index) return;
    const compactTo = this.#tail.takeCompaction(this.#host.clock.monotonicMs());
    if (compactTo === undefined) return;
    this.#core.compactTo(compactTo.index);
    this.#cached.update();
    this.#host.log.compact(this.groupId, compactTo);
    this.#host.stats.compactions++;
    this.#stateMachine.touched?.();
  }

  tellCommits(): void {
    if (this.#closed) return;
    this.#core.tellCommits();
    this.#host.markDirty(this);
  }

  transferLeader(to: ReplicaId): Refused | undefined {
    if (this.#closed) return NOT_LEADER;
    const refused = this.#core.transferLeader(to);
    this.#host.markDirty(this);
    return refused;
  }

  get transferring(): boolean {
    return this.#core.transferring;
  }

  status(): GroupStatus {
    const { groupId, replicaId } = this;
    return { groupId, replicaId, ...this.#core.status(), applied: this.#applied.index };
  }

  // ---------------------------------------------------------------------------------------------- input

  get dueTick(): number {
    return this.#core.dueTick;
  }

  elapsed(): void {
    this.#core.elapsed();
    if (this.#core.hasReady()) this.#host.markDirty(this);
    if (this.#core.missesSome) this.#stateMachine.touched?.();
  }

  /** Ticks since this replica heard a leader; 0 while it leads. */
  get silentTicks(): number {
    return this.#core.silentTicks;
  }

  receive(from: NodeId, message: Message): void {
    const { stats } = this.#host;
    if (message.to !== this.replicaId) stats.messagesUnknown++;
    else if (!this.comesFrom(message.from, from)) stats.messagesMisplaced++;
    else if (this.#host.log.full && message.type === 'append' && message.entries.length > 0) stats.logFull++;
    else {
      if (this.#isStranger(message)) this.#host.stranger(this, { replicaId: message.from, node: from });
      this.#core.step(message);
      this.#host.markDirty(this);
    }
  }

  #isStranger({ type, from }: Message): boolean {
    const { conf } = this.#core;
    return (type === 'preVote' || type === 'vote') && conf.voters.length > 0 && !isMember(conf, from);
  }

  /** Whether `replica` is on `node` (G2). */
  comesFrom(replica: ReplicaId, node: NodeId): boolean {
    return this.#places.comesFrom(replica, node);
  }

  /** The nodes of the group's other members. */
  *peerNodes(): Generator<NodeId> {
    for (const replica of membersOf(this.#core.conf)) {
      const node = replica === this.replicaId ? undefined : this.locate(replica);
      if (node !== undefined) yield node;
    }
  }

  locate(replica: ReplicaId): NodeId | undefined {
    return this.#places.locate(replica);
  }

  nodeUnreachable(node: NodeId): void {
    if (this.#core.role !== 'leader') return;
    for (const { replica } of this.#core.status().progress) {
      if (this.locate(replica) === node) this.#core.reportUnreachable(replica);
    }
    this.#host.markDirty(this);
  }

  /** The process of a node has ended (election.ts E8). */
  nodeGone(node: NodeId): void {
    if (this.locate(this.#core.leader) !== node) return;
    this.#core.leaderGone();
    this.#host.markDirty(this);
  }

  heartbeatFrom(node: NodeId): boolean {
    const { leader } = this.#core;
    return this.#places.nodeOf(leader) === node && this.#core.heartbeatFrom(leader);
  }

  heartbeatAnswered({ replica, epoch }: SteadyFollower, sent: Moment): void {
    this.#core.heartbeatAnsweredBy(replica, epoch, sent);
  }

  heartbeatRefused({ replica, epoch }: SteadyFollower): void {
    this.#core.heartbeatRefusedBy(replica, epoch);
    this.#host.markDirty(this);
  }

  persisted(mark: PersistMark): void {
    if (this.#closed) return;
    this.#core.persisted(mark);
    this.#cached.update();
    this.#host.markDirty(this);
  }

  entriesRead(read: EntryRead, entries: readonly Entry[]): void {
    if (this.#closed) return;
    this.#core.entriesRead(read, entries);
    this.#host.markDirty(this);
  }

  reviewAppends(): boolean {
    if (this.#closed) return false;
    const wait = this.#core.reviewAppends();
    if (!wait) this.#host.markDirty(this);
    return wait;
  }

  // ---------------------------------------------------------------------------------------------- turn

  /** Takes the core's messages and log records (G1). */
  collect(outbox: Outbox): void {
    this.#reads.startRound((context) => this.#core.readIndex(context));
    const ready = this.#core.hasReady() ? this.#core.ready() : undefined;
    if (ready?.soft !== undefined) this.#roleChanged(ready.soft);
    for (const message of ready?.messages ?? []) {
      const node = this.locate(message.to);
      if (node !== undefined) outbox.send(node, { groupId: this.groupId, message });
    }
    if (ready?.persist !== undefined || this.#restart !== undefined) this.#collectAppend(outbox, ready?.persist);
    this.#merged.sync();
    if (this.#core.appendsWait) this.#appendsWait(ready?.persist);
    this.#host.schedule(this);
    this.#stateMachine.touched?.();
    if (ready === undefined) return;
    this.#apply.push(ready.committed);
    this.#reads.confirmed(ready.readStates);
    this.#reads.dropped(ready.readsDropped);
    for (const read of ready.entriesWanted) this.#host.entryReader.read(this, read);
    for (const to of ready.snapshotsWanted) this.#host.wantSnapshot(this, to);
    if (ready.persist !== undefined) this.#cached.update();
  }

  /** Applies one slice of the committed entries. Returns true if there is more that can continue at once. */
  apply(): boolean {
    if (this.#closed) return false;
    const more = this.#apply.step();
    this.#reads.applied(this.#applied.index);
    if (this.#core.hasReady()) this.#host.markDirty(this);
    return more;
  }

  #collectAppend(outbox: Outbox, persist: Ready['persist']): void {
    const restart = this.#restart;
    this.#restart = undefined;
    const hardState = persist?.hardState ?? restart?.hardState;
    const restartAt = persist?.snapshot ?? restart?.restartAt;
    outbox.append({
      groupId: this.groupId,
      entries: persist?.entries ?? [],
      ...(hardState !== undefined && { hardState }),
      ...(restartAt !== undefined && { restartAt: { index: restartAt.index, term: restartAt.term } }),
    });
    if (persist !== undefined) outbox.mark(this, persist.mark);
  }

  #appendsWait(persist: Ready['persist']): void {
    this.#host.appendsWait(this);
    if (persist !== undefined && persist.entries.length > 0) this.#host.stats.appendsDelayed++;
  }

  #roleChanged(change: { readonly role: Role; readonly term: number; readonly leader: ReplicaId }): void {
    if (change.leader !== 0 && change.leader !== this.#lastLeader) {
      this.#lastLeader = change.leader;
      this.#host.stats.leaderChanges++;
    }
    this.snapshots.roleChanged({ leads: change.role === 'leader', term: change.term });
    this.#apply.roleChanged(change);
  }

  #confAfter(slice: readonly Entry[]): ConfState {
    const { conf } = this.#core;
    const entry = slice[0];
    if (entry?.type !== 'conf') return conf;
    assert(conf.voters.length > 0, 'a replica without membership takes no entries (follower.ts F4)');
    const change = decodeConfChange(entry.data);
    const next = changeConf(conf, change);
    const admitted =
      !('invalid' in next) && (takesEffectAlways(change) || (this.#stateMachine.admitsConf?.(change) ?? true));
    this.logger.info({ index: entry.index, ...(admitted ? { conf: next } : { refused: true }) }, 'membership change');
    return admitted ? next : conf; // G3
  }

  #onApplied(slice: readonly Entry[], conf: ConfState): void {
    const last = slice.at(-1);
    if (last === undefined) return;
    this.#applied = { index: last.index, term: last.term };
    this.#advanceTail(slice);
    this.#host.stats.entriesApplied += slice.length;
    if (conf !== this.#core.conf) {
      this.#core.applyConf(conf);
      this.snapshots.membership(conf);
    }
    this.#core.appliedTo(last.index);
  }

  #advanceTail(entries: readonly Entry[]): void {
    for (const entry of entries) this.#tail.advance(entry, entry.data.length);
  }

  get inFlight(): Pick<HostInFlight, 'reads' | 'logHolds' | 'receiving'> {
    return { reads: this.#reads.pending, logHolds: this.#tail.holds, receiving: this.snapshots.receiving ? 1 : 0 };
  }

  /**
   * Releases everything. Resolves when the state machine gets no more calls, and no snapshot is being installed in it.
   */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    this.#cached.leave();
    const snapshotsEnded = this.snapshots.close(reason);
    this.#reads.dropAll();
    this.#merged.close();
    await this.#apply.close();
    await snapshotsEnded;
  }
}
