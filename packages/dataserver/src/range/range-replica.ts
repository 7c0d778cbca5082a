import { assert, ServiceError } from '@remora/base';
import { grantNews } from '@remora/lock';
import type {
  CommandResult,
  Epoch,
  QueryResult,
  RangeDescriptor,
  RangeInfo,
  RangeReply,
  RangeRequest,
} from '@remora/protocol';
import type {
  ConfChange,
  ConfState,
  Entry,
  Group,
  SnapshotMeta,
  SnapshotReceiver,
  StateMachine,
  StateMachineSnapshot,
} from '@remora/raft';
import { LockListeners } from '../lock-watch/lock-listeners.ts';
import { SplitReasons } from '../splitting/split-reasons.ts';
import type { RangeStart } from '../state/effects.ts';
import { lockReader } from '../state/locks/engine-lock-view.ts';
import { RangeState } from '../state/range-state.ts';
import { admitsChange } from '../state/reshape/membership.ts';
import type { SplitCommand } from '../state/reshape/split.ts';
import { TransactionService } from '../transactions/transaction-service.ts';
import { WatchHub } from '../watch/watch-hub.ts';
import { AutoCompactor } from './auto-compactor.ts';
import { LeaseManager } from './leases/lease-manager.ts';
import { GrantWatches } from './locks/grant-watches.ts';
import { LOCK_LIMITS, LockLimits } from './locks/lock-limits.ts';
import { LockWaits } from './locks/lock-waits.ts';
import { Leadership, type RoleChange } from './membership/leadership.ts';
import { RangeMembers } from './membership/range-members.ts';
import { RangeClock } from './range-clock.ts';
import type { RangeDeps } from './range-deps.ts';
import { rangeEffects } from './range-effects.ts';
import type { OnCancel, RangeInFlight } from './range-options.ts';
import { ReplicaRows } from './replica-rows.ts';
import { ClosedRevisions } from './requests/closed-revisions.ts';
import { Commands, type RangeDone } from './requests/commands.ts';
import { EntryApplier } from './requests/entry-applier.ts';
import { Queries } from './requests/queries.ts';
import { RangeRequests } from './requests/range-requests.ts';
import { RangeWatches } from './requests/range-watches.ts';
import { Merges } from './reshape/merges.ts';
import { SplitBackpressure } from './reshape/split-backpressure.ts';
import { type SplitDone, Splits } from './reshape/splits.ts';
import { RangeLoad } from './stats/range-load.ts';
import { StatsRecomputer } from './stats/stats-recomputer.ts';

/**
 * One local replica of a range: the state machine that its Raft group drives, and the service that requests reach.
 *
 * R1. Commands go through `Commands` (CM1, CM2), after their epoch was checked.
 * R2. Reads are answered from a state that holds everything committed when they arrived (ReadIndex).
 * R3. While a snapshot takes the place of its rows it serves nothing (replica-rows.ts RR1), nor while it is sealed for a
 *     merge (merges.ts MR1).
 */
export class RangeReplica implements StateMachine {
  readonly #deps: RangeDeps;
  readonly state: RangeState;
  readonly hub: WatchHub;
  readonly lockListeners: LockListeners;
  readonly watches: RangeWatches;
  readonly #commands: Commands;
  readonly #applier: EntryApplier;
  readonly #requests: RangeRequests;
  readonly #queries: Queries;
  /** Up to which revision this range is complete. */
  readonly closing: ClosedRevisions;
  readonly #splits: Splits;
  /** Why it is to be split, as its leader sees it. */
  readonly splitReasons: SplitReasons;
  readonly #brake: SplitBackpressure;
  readonly #statsRecomputer: StatsRecomputer;
  readonly merges: Merges;
  readonly #leases: LeaseManager;
  readonly #waits = new LockWaits();
  readonly #transactions: TransactionService;
  readonly #grants = new GrantWatches((lock, question) => {
    const view = { ...lockReader(this.#deps.engine), timeMs: this.state.rangeTimeMs };
    return grantNews(view, lock, question);
  });
  readonly #rows: ReplicaRows;
  readonly #compactor: AutoCompactor;
  readonly #time: RangeClock;
  #closed = false;
  /** Of what is asked of the leader here, for reports. */
  readonly load: RangeLoad;
  readonly members: RangeMembers;
  readonly leadership = new Leadership(() => this.state.descriptor);
  #group: Group | undefined;

  /** `start` is what the range begins with, when the engine holds no state of it and it comes from another one. */
  constructor(deps: RangeDeps, descriptor: RangeDescriptor, conf: ConfState, start?: RangeStart) {
    this.#deps = deps;
    const { engine, clock, logger } = deps;
    this.lockListeners = new LockListeners({ engine, clock, revision: () => this.state.revision });
    const effects = rangeEffects(this, {
      ...{ ...deps, waits: this.#waits, grants: this.#grants, keysChanged: () => this.#keysChanged() },
      rows: () => this.#rows,
      leases: () => this.#leases,
      splits: () => this.#splits,
    });
    this.state = new RangeState(engine, { descriptor, conf, effects });
    if (start === undefined) this.state.load();
    else this.state.begin(start);
    this.hub = new WatchHub(engine, this.state, {
      ringBytesMax: () => Math.min(deps.options.watchRingBytesMax, deps.watchRingShare()),
      logger,
      closed: () => this.closing.closed,
      earliestCommit: () => this.state.transactions.earliestCommit(),
    });
    this.watches = new RangeWatches(this);
    this.#time = new RangeClock(clock);
    this.load = new RangeLoad(clock);
    this.members = new RangeMembers(this, clock);
    const rangeTimeMs = () => this.#time.nowMs();
    this.#transactions = new TransactionService(this, { ...deps, rangeTimeMs, commands: () => this.#commands });
    this.#commands = new Commands(this, {
      clock,
      time: this.#time,
      drawer: deps.drawer,
      intentWaitQueue: this.#transactions.waits,
      limits: new LockLimits(deps.options.lockLimits ?? LOCK_LIMITS, this.state, engine),
      room: deps.room,
      meter: deps.meter,
      outcomeBytesMax: deps.options.outcomeBytesMax,
    });
    this.#applier = new EntryApplier(this.state, {
      proposals: this.#commands.proposals,
      applied: (entry) => this.#applied(entry),
      reconfigured: () => {
        if (!this.#isMember) deps.onLeft(this);
      },
      onApplied: deps.onApplied,
    });
    this.closing = new ClosedRevisions({
      state: this.state,
      prepared: { earliestCommit: () => this.state.transactions.earliestCommit() },
      source: deps.drawer,
      group: () => this.group,
      whenSettled: (done) => this.#commands.proposals.whenSettled(done),
      notLeader: () => this.notLeader(),
      sealed: () => this.merges.refusal,
    });
    this.#leases = new LeaseManager({
      ...{ clock, engine, state: this.state, others: deps.others, commands: this.#commands, rangeTimeMs },
      source: deps.drawer,
      checkpointMs: deps.options.leaseCheckpointMs,
      auditMs: deps.options.leaseAuditMs,
      term: () => (this.serving && this.merges.refusal === undefined ? this.leadership.ownTerm : 0),
    });
    this.#rows = new ReplicaRows(deps, this.state);
    this.#compactor = new AutoCompactor(deps.options.compactionRetentionMs);
    this.#queries = new Queries(this, {
      engine,
      clock,
      keeper: this.#leases.keeper,
      waits: this.#waits,
      grants: this.#grants,
      closing: this.closing,
      intentWaitQueue: this.#transactions.waits,
      ...{ nodeId: deps.nodeId, logger },
    });
    const onCandidate = (): void => deps.onSplitWish?.();
    this.splitReasons = new SplitReasons({ ...deps, state: this.state, load: this.load, onCandidate });
    this.#statsRecomputer = new StatsRecomputer({
      ...{ engine, clock, logger, state: this.state, commands: this.#commands },
      term: () => (this.serving && this.merges.refusal === undefined ? this.leadership.ownTerm : 0),
    });
    this.#brake = new SplitBackpressure({ clock, pressure: () => this.splitReasons.pressure });
    this.#splits = new Splits(this, {
      ...deps,
      commands: this.#commands,
      queries: this.#queries,
      watches: this.watches,
    });
    this.merges = new Merges(this, {
      ...{ commands: this.#commands, queries: this.#queries, closing: this.closing, leases: this.#leases },
      ...{ watches: this.watches, neighbours: deps.neighbours },
      keysChanged: () => this.#keysChanged(),
    });
    this.#requests = new RangeRequests(this, {
      ...{ commands: this.#commands, queries: this.#queries, leases: this.#leases, reasons: this.splitReasons },
      brake: this.#brake,
    });
  }

  get rangeId(): number {
    return this.state.rangeId;
  }

  /** The group that drives this replica; set once, before anything else is called. */
  attach(group: Group): void {
    this.#group = group;
    this.#commands.proposals.attach(group);
  }

  get group(): Group {
    assert(this.#group !== undefined, 'a replica is attached to its group before it serves');
    return this.#group;
  }

  get leading(): boolean {
    return this.leadership.leading;
  }

  /** Whether it leads and has applied an entry of its own term: its state is current, and its time runs. */
  get serving(): boolean {
    return this.leadership.serving;
  }

  // -------------------------------------------------------------------------------------------- state machine

  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void> {
    return this.#applier.apply(entries, conf);
  }

  get #isMember(): boolean {
    return this.state.descriptor.replicas.some(({ replicaId }) => replicaId === this.group.replicaId);
  }

  admitsConf(change: ConfChange): boolean {
    return this.merges.refusal === undefined && admitsChange(this.state.descriptor, change);
  }

  #applied(entry: Entry): void {
    this.splitReasons.written(entry.data.length, this.serving);
    this.hub.flush();
    this.lockListeners.flush();
    this.#grants.flush();
    this.closing.applied();
    this.#rows.collect();
    if (this.leading && entry.term === this.leadership.ownTerm && !this.serving) this.#startServing();
    this.#transactions.applied();
  }

  /** What was worked out for the keys that it had holds no longer. */
  #keysChanged(): void {
    this.#rows.collectAnew();
    this.splitReasons.reset();
    this.closing.keysChanged();
    this.#leases.keysChanged();
    this.group.tellCommits(); // clients wait for those who have the keys now, on whatever node they are to be led
    if (this.serving) this.#time.rebase(this.state.rangeTimeMs);
  }

  roleChanged(change: RoleChange): void {
    this.leadership.told(change);
    const term = change.role === 'leader' && !this.#closed ? change.term : 0;
    if (term === this.leadership.ownTerm) return;
    if (this.leading) this.#stopServing();
    this.members.termBegan();
    if (term === 0) return;
    this.leadership.begin(term);
    this.#time.reset(this.state.rangeTimeMs);
  }

  /** An entry of the own term is applied: the state is current, and time may run. */
  #startServing(): void {
    this.leadership.serve();
    this.splitReasons.reset();
    this.#time.rebase(this.state.rangeTimeMs);
    if (this.merges.refusal === undefined) this.#leases.start(this.leadership.ownTerm);
    this.#compactor.reset();
    this.#deps.logger.info(
      { range: this.rangeId, term: this.leadership.ownTerm, revision: this.state.revision },
      'leads the range',
    );
    this.#deps.onServing?.(this.rangeId);
  }

  #stopServing(): void {
    this.leadership.end();
    this.splitReasons.reset();
    this.#leases.stop(this.notLeader());
    this.#commands.proposals.abandon();
    this.closing.abandon();
    this.#queries.interrupt(this.notLeader());
    this.#transactions.stop(this.notLeader());
    this.merges.refuseHeld(this.notLeader());
    this.watches.endAll(this.notLeader());
    this.#deps.logger.info({ range: this.rangeId }, 'no longer leads the range');
  }

  snapshot(): StateMachineSnapshot {
    return this.#rows.snapshot();
  }

  install(meta: SnapshotMeta): SnapshotReceiver {
    // Whoever is sent a snapshot follows; it may not have been told yet, as nothing is applied meanwhile.
    if (this.leading) this.#stopServing();
    const { replicaId } = this.group;
    return this.#rows.install(meta, {
      replicaId,
      settled: () => this.settled.then(() => this.#deps.checkpointer.run()), // splits.ts S8
      replaced: () => {
        this.hub.reset();
        this.closing.keysChanged();
      },
    });
  }

  /** Resolves when its splits are settled (splits.ts S8). */
  get settled(): Promise<void> {
    return this.#splits.durable;
  }

  /** R3. Its rows are being replaced by a snapshot. */
  get replacing(): boolean {
    return this.#rows.replacing;
  }

  /** Called for every replica as a checkpoint begins. */
  stage(): void {
    this.#rows.stage();
  }

  /** Called about every second: what a leader does by the clock. `latestMs`: the latest time of any range of the node. */
  housekeep(latestMs: number): void {
    this.hub.trim();
    if (!this.serving || this.merges.refusal !== undefined) return;
    this.#time.catchUp(latestMs);
    this.members.look();
    this.splitReasons.tick();
    this.#statsRecomputer.tick();
    if (this.#time.nowMs() - this.state.rangeTimeMs > this.#deps.options.timeCarryMs)
      this.#commands.propose({ type: 'noop' });
    const compactTo = this.#compactor.tick(this.#deps.clock.monotonicMs(), this.state);
    if (compactTo !== undefined) this.#commands.propose({ type: 'compact', revision: compactTo });
  }

  /** Its group may be elected yet, as long as the host runs: it does not serve any more. */
  close(): void {
    this.#closed = true;
    if (this.leading) this.#stopServing();
    this.#rows.close();
    this.watches.close();
  }

  // -------------------------------------------------------------------------------------------- requests

  execute(request: RangeRequest, onCancel: OnCancel, done: RangeDone): void {
    this.#requests.execute(request, onCancel, done);
  }

  reply(result: CommandResult | QueryResult, revision = this.state.revision): RangeReply {
    // What this node counted when it led last, or never, is no time of the range.
    const rangeTimeMs = this.serving ? this.#time.nowMs() : 0;
    return { revision, raftTerm: this.group.term, rangeTimeMs, result };
  }

  inFlight(): RangeInFlight {
    return {
      proposals: this.#commands.inFlight + this.#leases.waiting + this.#brake.waiting,
      lockCalls: Math.max(this.#waits.calls, this.#queries.awaiting),
      watches: this.hub.size + this.lockListeners.size,
      leasesKept: this.#leases.keeper.size,
      transactions: this.state.transactions.size,
      transactionWaits: this.#transactions.waits.size,
    };
  }

  /** A leader that has not caught up with its log does not know the range's time; one that hands over takes nothing. */
  get #answers(): boolean {
    return this.serving && !this.group.transferring;
  }

  info(): RangeInfo {
    return {
      rangeId: this.rangeId,
      leaderNode: this.leading && !this.#answers ? 0 : this.leadership.node,
      rangeTimeMs: this.serving ? this.#time.nowMs() : this.state.rangeTimeMs,
      revision: this.state.revision,
      term: this.#group?.term ?? 0,
    };
  }

  /** Whether the range has been split or merged since its epoch was this. */
  isStale(epoch: Epoch): boolean {
    return epoch.version !== this.state.descriptor.epoch.version;
  }

  /** For those who ask by an old epoch, or for keys that are not the range's. */
  staleEpoch(): ServiceError {
    return this.#splits.staleEpoch();
  }

  /** Why nothing can be read here now; undefined when it can (R3). */
  unreadable(): ServiceError | undefined {
    if (!this.replacing) return this.merges.refusal;
    return new ServiceError('UNAVAILABLE', 'this replica is installing a snapshot; ask again, or another replica', {
      details: { rangeId: this.rangeId },
    });
  }

  notLeader(): ServiceError {
    return this.leadership.notLeader();
  }

  /** Splits the range, on its leader; answers once that is applied here. */
  split(command: SplitCommand, done: SplitDone): void {
    this.#splits.propose(command, done);
  }
}
