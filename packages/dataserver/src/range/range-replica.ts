import type { ServiceError } from '@remora/base';
import type { RangeDescriptor, RangeInfo } from '@remora/protocol';
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
import type { LockListeners } from '../lock-watch/lock-listeners.ts';
import type { SplitReasons } from '../splitting/split-reasons.ts';
import type { RangeStart } from '../state/effects.ts';
import type { RangeState } from '../state/range-state.ts';
import type { SplitCommand } from '../state/reshape/split.ts';
import type { WatchHub } from '../watch/watch-hub.ts';
import { AutoCompactor } from './auto-compactor.ts';
import type { LocalReplica } from './local-replica.ts';
import type { Leadership, RoleChange } from './membership/leadership.ts';
import type { RangeMembers } from './membership/range-members.ts';
import type { RangeDeps } from './range-deps.ts';
import type { RangeInFlight } from './range-options.ts';
import { type ReplicaParts, replicaParts } from './replica-parts.ts';
import type { ClosedRevisions } from './requests/closed-revisions.ts';
import type { RangeRequests } from './requests/range-requests.ts';
import type { RangeWatches } from './requests/range-watches.ts';
import type { Merges } from './reshape/merges.ts';
import type { SplitDone } from './reshape/splits.ts';
import type { ServedReplica } from './served-replica.ts';
import type { RangeLoad } from './stats/range-load.ts';

/**
 * One local replica of a range: the state machine that its Raft group drives, and the parts that serve its requests.
 *
 * R1. Commands go through `Commands` (CM1, CM2), after their epoch was checked.
 * R2. Reads are answered from a state that holds everything committed when they arrived (ReadIndex).
 * R3. The replica serves nothing while a snapshot replaces its rows (replica-rows.ts RR1), nor while it is sealed for a
 *     merge (merges.ts MR1).
 */
export class RangeReplica implements StateMachine, ServedReplica {
  readonly #deps: RangeDeps;
  readonly #parts: ReplicaParts;
  readonly context: LocalReplica;
  readonly #compactor: AutoCompactor;
  readonly state: RangeState;
  readonly leadership: Leadership;
  readonly load: RangeLoad;
  readonly requests: RangeRequests;
  readonly hub: WatchHub;
  readonly lockListeners: LockListeners;
  readonly watches: RangeWatches;
  /** The revision up to which this range is complete. */
  readonly closing: ClosedRevisions;
  readonly members: RangeMembers;
  readonly merges: Merges;
  /** The reasons to split the range, as its leader sees them. */
  readonly splitReasons: SplitReasons;
  #closed = false;

  /** `start`: the initial state, if it comes from another range and the engine has none. */
  constructor(deps: RangeDeps, descriptor: RangeDescriptor, conf: ConfState, start?: RangeStart) {
    this.#deps = deps;
    const parts = replicaParts(deps, descriptor, conf, start);
    this.#parts = parts;
    this.context = parts.context;
    this.#compactor = new AutoCompactor(deps.options.compactionRetentionMs);
    this.state = parts.context.state;
    this.leadership = parts.context.leadership;
    this.load = parts.context.load;
    this.requests = parts.requests;
    this.hub = parts.hub;
    this.lockListeners = parts.lockListeners;
    this.watches = parts.watches;
    this.closing = parts.closing;
    this.members = parts.members;
    this.merges = parts.merges;
    this.splitReasons = parts.splitReasons;
  }

  get rangeId(): number {
    return this.state.rangeId;
  }

  /** The group that drives this replica; set once, before anything else is called. */
  attach(group: Group): void {
    this.context.attach(group);
    this.#parts.proposals.attach(group);
  }

  get group(): Group {
    return this.context.group;
  }

  get leading(): boolean {
    return this.leadership.leading;
  }

  get serving(): boolean {
    return this.leadership.serving;
  }

  get sealed(): ServiceError | undefined {
    return this.context.sealed;
  }

  /** R3. */
  get replacing(): boolean {
    return this.context.replacing;
  }

  notLeader(): ServiceError {
    return this.context.notLeader();
  }

  // -------------------------------------------------------------------------------------------- state machine

  /** Returns a promise when an entry needs cold data; no other call may come before it resolves. */
  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void> {
    const { applier } = this.#parts;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i];
      if (entry === undefined) break;
      if (entry.type === 'conf') {
        applier.reconfigure(entry, conf); // a configuration change comes alone
        this.#applied(entry);
        if (!this.#isMember) this.#deps.onLeft(this.rangeId);
        return;
      }
      const startMs = this.#deps.times?.now() ?? 0;
      const waiting = applier.begin(entry)?.apply();
      if (waiting !== undefined) {
        return waiting.then(() => this.#applied(entry, startMs)).then(() => this.apply(entries.slice(i + 1), conf));
      }
      this.#applied(entry, startMs);
    }
  }

  get #isMember(): boolean {
    return this.state.descriptor.replicas.some(({ replicaId }) => replicaId === this.group.replicaId);
  }

  admitsConf(change: ConfChange): boolean {
    return this.members.admits(change);
  }

  /** Something has happened to it or its group: periodic work visits it (replicas/active-ranges.ts AC1). */
  touched(): void {
    this.members.touched();
    this.#deps.onActive?.(this.rangeId);
  }

  /** An entry is applied completely. `startMs`: since when, if that is measured. */
  #applied(entry: Entry, startMs = 0): void {
    const { times } = this.#deps;
    if (startMs !== 0) times?.applied(times.now() - startMs);
    this.touched();
    const { grants, leases, rows, transactions } = this.#parts;
    this.splitReasons.written(entry.data.length, this.serving);
    this.hub.flush();
    this.lockListeners.flush();
    grants.flush();
    this.closing.applied();
    rows.collect();
    if (this.leading && entry.term === this.leadership.ownTerm && !this.serving) this.#startServing();
    transactions.applied();
    leases.applied();
  }

  roleChanged(change: RoleChange): void {
    this.leadership.told(change);
    const term = change.role === 'leader' && !this.#closed ? change.term : 0;
    if (term === this.leadership.ownTerm) return;
    if (this.leading) this.#stopServing();
    this.members.termBegan();
    if (term === 0) return;
    this.leadership.begin(term);
    this.context.time.reset(this.state.rangeTimeMs);
  }

  /** An entry of the replica's own term is applied: the state is current, and time may run. */
  #startServing(): void {
    this.leadership.serve();
    this.splitReasons.reset();
    this.context.time.rebase(Math.max(this.state.rangeTimeMs, this.#deps.latestTimeMs?.() ?? 0));
    if (this.context.servingTerm !== 0) this.#parts.leases.start(this.leadership.ownTerm);
    this.#compactor.reset();
    this.#deps.logger.info(
      { range: this.rangeId, term: this.leadership.ownTerm, revision: this.state.revision },
      'leads the range',
    );
    this.#deps.onServing?.(this.rangeId);
  }

  #stopServing(): void {
    const { leases, proposals, queries, transactions } = this.#parts;
    this.leadership.end();
    this.splitReasons.reset();
    leases.stop(this.notLeader());
    proposals.abandon();
    this.closing.abandon();
    queries.interrupt(this.notLeader());
    transactions.stop(this.notLeader());
    this.merges.refuseHeld(this.notLeader());
    this.watches.endAll(this.notLeader());
    this.#deps.logger.info({ range: this.rangeId }, 'no longer leads the range');
  }

  snapshot(): StateMachineSnapshot {
    return this.#parts.rows.snapshot();
  }

  install(meta: SnapshotMeta): SnapshotReceiver {
    // A replica that is sent a snapshot is a follower, but may not know it yet, because nothing is applied meanwhile.
    if (this.leading) this.#stopServing();
    const { replicaId } = this.group;
    return this.#parts.rows.install(meta, {
      replicaId,
      settled: () => this.settled.then(() => this.#deps.checkpointer.run()), // splits.ts S8
      replaced: () => {
        this.hub.reset();
        this.closing.keysChanged();
        this.touched();
      },
    });
  }

  /** Resolves when its splits are settled (splits.ts S8). */
  get settled(): Promise<void> {
    return this.#parts.splits.durable;
  }

  /** Called for every replica when a checkpoint begins. */
  stage(): void {
    this.#parts.rows.stage();
  }

  /**
   * A leader's periodic work: called about every second while something happens, and now and then otherwise
   * (replicas/active-ranges.ts AC3). `latestMs`: the latest time of any range of the node.
   */
  housekeep(latestMs: number): void {
    const { time, servingTerm } = this.context;
    const { statsRecomputer, queue } = this.#parts;
    this.hub.trim();
    if (servingTerm === 0) return;
    time.catchUp(latestMs);
    this.members.look();
    this.splitReasons.tick();
    statsRecomputer.tick();
    const compactTo = this.#compactor.tick(this.#deps.clock.monotonicMs(), this.state);
    if (compactTo !== undefined) queue.propose({ type: 'compact', revision: compactTo });
  }

  /** Periodic work finds nothing to do here until something happens (replicas/active-ranges.ts AC2). */
  get resting(): boolean {
    const { state, load, splitReasons, members } = this;
    if (state.merging.seal !== undefined) return false;
    if (!this.serving) return true;
    const isCounted = state.outcomes.count === 0 && state.estimatedSince === 0;
    return isCounted && load.quiet && members.liveness.allHeard && !splitReasons.pending;
  }

  /** Writes its time to the log; only while it serves. */
  writeTime(): void {
    this.#parts.queue.propose({ type: 'noop' });
  }

  /** The time of the range, as far as this replica knows it. */
  get timeMs(): number {
    return this.serving ? this.context.time.nowMs() : this.state.rangeTimeMs;
  }

  /** Its group may still be elected while the host runs, but the replica no longer serves. */
  close(): void {
    this.#closed = true;
    if (this.leading) this.#stopServing();
    this.#parts.rows.close();
    this.watches.close();
  }

  // -------------------------------------------------------------------------------------------- its services

  inFlight(): RangeInFlight {
    const { queue, leases, backpressure, waits, queries, intentWaitQueue } = this.#parts;
    return {
      proposals: queue.inFlight + leases.waiting + backpressure.waiting,
      lockCalls: Math.max(waits.calls, queries.awaiting),
      watches: this.hub.size + this.lockListeners.size,
      leasesKept: leases.keeper.size,
      transactions: this.state.transactions.size,
      transactionWaits: intentWaitQueue.size,
    };
  }

  info(): RangeInfo {
    const { term } = this.context;
    // A leader that has not caught up with its log does not know the range's time; a leader that hands over takes no
    // requests.
    const isNotReady = this.leading && (!this.serving || this.group.transferring);
    return {
      rangeId: this.rangeId,
      leaderNode: isNotReady ? 0 : this.leadership.node,
      rangeTimeMs: this.timeMs,
      revision: this.state.revision,
      term,
    };
  }

  split(command: SplitCommand, done: SplitDone): void {
    this.#parts.splits.propose(command, done);
  }
}
