import {
  assert,
  type Clock,
  type Disk,
  type Engine,
  type Logger,
  ServiceError,
  type Span,
  type SpokenVersions,
  type Timer,
} from '@remora/base';
import type { RangeDescriptor, RemovedReplica, RpcDialer, RpcRegistry, SplitPolicy } from '@remora/protocol';
import {
  type ConfState,
  type GroupId,
  MASTER_GROUP,
  NO_REPLICA,
  type RaftHost,
  type RecoveredGroup,
} from '@remora/raft';
import type { Checkpointer } from './checkpointer.ts';
import { StoreDamagedError } from './engine/store-errors.ts';
import { StoreHeat } from './heat/store-heat.ts';
import { Installer } from './install/installer.ts';
import type { InstallMarker } from './install/marker.ts';
import type { RangeDeps } from './range/range-deps.ts';
import type { RangeOptions } from './range/range-options.ts';
import { RangeReplica } from './range/range-replica.ts';
import type { ReplicaContext } from './range/replica-context.ts';
import type { OnApplied } from './range/requests/applied-command.ts';
import type { DiskRoom } from './range/requests/disk-room.ts';
import type { OtherRanges } from './range/reshape/other-ranges.ts';
import { SPLIT_OFF_MAX } from './range/reshape/split-off-ranges.ts';
import type { SplitOff } from './range/reshape/splits.ts';
import type { RangeTimes } from './range-times.ts';
import { ActiveRanges } from './replicas/active-ranges.ts';
import { type Beginning, createdBeginning, firstConf, splitOffBeginning } from './replicas/beginnings.ts';
import { type HeldReplica, HeldReplicas } from './replicas/held-replicas.ts';
import { RangeRounds } from './replicas/range-rounds.ts';
import { RemovedReplicaNotifier } from './replicas/removed-replica-notifier.ts';
import { ReplicaEnds } from './replicas/replica-ends.ts';
import { ReplicaRemover } from './replicas/replica-remover.ts';
import { ReplicaTable } from './replicas/replica-table.ts';
import { StoreMerges } from './replicas/store-merges.ts';
import { StoreService } from './replicas/store-service.ts';
import { ViewChanges } from './replicas/view-changes.ts';
import type { RevisionSource } from './revisions/revision-drawer.ts';
import { splitterOf } from './splitting/prepare-split.ts';
import type { OrderedSplit, Splitter, SplitterDeps } from './splitting/splitter.ts';
import type { RangeMeter, RangeStart } from './state/effects.ts';
import { allLocalSpan, isStateKey, rangeIdOfLocalKey, stateKey } from './state/keys.ts';
import { decodeRangeMeta } from './state/meta-codec.ts';
import type { RangeState } from './state/range-state.ts';
import { StoreHeartbeat } from './store-heartbeat.ts';
import type { TransactionPeers } from './transactions/intent-resolver.ts';

export type SplittingPorts = Pick<SplitterDeps, 'askIds'>;

export interface StoreDeps {
  readonly nodeId: number;
  readonly engine: Engine;
  /** Incoming snapshots are staged here under `snapshots/`. Its calls should not block the event loop. */
  readonly disk: Disk;
  readonly checkpointer: Checkpointer;
  readonly host: RaftHost;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: RangeOptions;
  /** The source of revisions for ranges that the master numbers. */
  readonly drawer: RevisionSource;
  /** The connection to the ranges of all nodes. */
  readonly others: OtherRanges;
  /** The revision of users and roles that this node knows; 0: none (range-requests.ts RE3). */
  readonly authRevision: () => number;
  /** What this node can write and read, and the version in force; absent: the first version. */
  readonly versions?: SpokenVersions;
  /** All ranges, as the masters last reported them. */
  readonly knownRanges: () => readonly RangeDescriptor[];
  /** What splits need; without it no range is split. */
  readonly splitting?: SplittingPorts;
  /** The connection to other ranges, for transactions over several ranges that coordinators abandon. */
  readonly transactionPeers?: TransactionPeers;
  /** Calls to the stores of other nodes, and to this one. */
  readonly dialer: Pick<RpcDialer, 'channel'>;
  /**
   * What the log held for each group when the node started. Each replica takes its own part out, so that nothing stays
   * in memory.
   */
  readonly recovered: Map<GroupId, RecoveredGroup>;
  readonly onApplied?: OnApplied;
  /** Counts what its ranges apply while they lead. */
  readonly meter?: RangeMeter;
  /** Measures the way of entries through its ranges. */
  readonly times?: RangeTimes;
  /** The free room on the node's disk; absent: it is not checked. */
  readonly room?: DiskRoom;
  /** Called for a failure after which the node must stop. */
  readonly onFailure: (error: unknown) => void;
}

const NO_SPLITS: OrderedSplit = { outcome: 'refused', reason: 'this node splits no ranges' };

const HOUSEKEEPING_MS = 1_000;
/** The recent events of a range have at least this much memory, however many ranges there are. */
const WATCH_RING_MIN = 64 * 1024;
type Removing = () => Promise<void>;

/**
 * The ranges of one node.
 *
 * T1. A replica is created in one place (`createReplica`), once per range, and is durable before it votes (traps 13).
 * T2. Nothing is proposed that the log's codec could not read back (range-service.ts).
 * T3. A replica never runs with half a state. If a snapshot was replacing its rows when the process ended, the replica
 *     runs once that is finished, and until then no replica that shares keys with it is created (design §6 ▸).
 * T4. A replica that joins a range begins without membership, and a snapshot brings it in (host-api.ts `applied`): its
 *     descriptor has the current membership, and the log has the changes that led there. The same holds for a replica
 *     of a range that a split made or cut, because the log of that range does not begin with an empty state.
 * T5. A replica that was removed from its range ends for good: its log, its rows and its place in memory are deleted,
 *     and until then no other replica of that range is created here (replicas/replica-ends.ts). The replica learns of
 *     its removal when it applies it, or from the master or a member (replicas/removed-replica-notifier.ts), whose word
 *     counts from a `confVersion` above the replica's own (design §5 ▸).
 * T6. A replica's state row is durable before its group writes to the log (T1), and is deleted after the log. So if the
 *     log has a range that the engine does not hold, the engine has lost it (docs/decisions/0012).
 * T7. No two replicas share keys, so none reads or changes another's data. Another replica here may still have keys of
 *     a new one, for example because it has not applied an old split, or because it is being removed. Then the new
 *     replica is not created until the other is cut or gone (traps 12).
 * T8. A replica's held row records which replica of the range is the node's own. It is written with the first state and
 *     with the last (held-replicas.ts): a descriptor may already name the next one.
 * T9. The replica of a source of a merge ends when the target's has its keys (replicas/merged-replicas.ts MP1–MP3).
 */
export class Store {
  readonly heartbeat: StoreHeartbeat;
  /** The load on its ranges by key. */
  readonly heat = new StoreHeat();
  readonly #deps: StoreDeps;
  readonly #active = new ActiveRanges();
  readonly #replicas = new ReplicaTable((rangeId) => this.#active.mark(rangeId));
  readonly #rounds: RangeRounds;
  readonly #viewChanges = new ViewChanges(this.#replicas, this.#active.reader());
  readonly #installer: Installer;
  readonly #held: HeldReplicas;
  readonly #remover: ReplicaRemover;
  readonly #ends: ReplicaEnds;
  readonly #splitter: Splitter | undefined;
  readonly #service: StoreService;
  readonly #removedReplicaNotifier: RemovedReplicaNotifier;
  readonly merges: StoreMerges;
  /** The same for all replicas. */
  #rangeDeps: RangeDeps | undefined;
  #splitPolicy: SplitPolicy | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(deps: StoreDeps) {
    this.#deps = deps;
    this.#splitPolicy = deps.options.splits;
    this.#installer = new Installer(deps);
    this.#held = new HeldReplicas(deps.engine);
    this.#removedReplicaNotifier = new RemovedReplicaNotifier(deps);
    this.#remover = new ReplicaRemover(deps, this.#held);
    const replicas = this.#replicas;
    const active = (): Iterable<RangeReplica> => this.#rounds.active();
    this.#rounds = new RangeRounds({ ...deps, ...deps.options, replicas, active: this.#active });
    this.#service = new StoreService({
      ...deps,
      replicas,
      moved: (rangeId) => this.merges.moved(rangeId),
      removed: (removed) => this.removeReplica(removed),
    });
    const onMoved = (rangeId: number): void => this.#service.changed(rangeId);
    this.merges = new StoreMerges({ ...deps, replicas, active, held: this.#held, remover: this.#remover, onMoved });
    const isAwaited = (state: RangeState): boolean => this.merges.isAwaited(state);
    this.#ends = new ReplicaEnds({ ...deps, replicas, remover: this.#remover, isAwaited });
    const replica = (rangeId: number): RangeReplica | undefined => this.#replicas.get(rangeId)?.replica;
    this.#splitter = deps.splitting && splitterOf({ ...deps, ...deps.splitting, replica, candidates: active });
    this.heartbeat = new StoreHeartbeat({
      ...{ clock: deps.clock, replica, replicas: () => this.replicas(), count: () => replicas.size },
      marks: this.#active.reader(),
      split: (ordered, at) => this.#splitter?.order(ordered, at) ?? NO_SPLITS,
      merge: (wanted) => this.merges.carryOut(wanted),
      isMerging: (rangeId) => this.merges.isMerging(rangeId),
    });
  }

  /**
   * Starts every replica that the engine knows: at once, or after the snapshot that a crash interrupted is installed
   * (T3). Continues the removal of ended replicas (T5). Resolves when all of that is done. Rejects when it cannot be
   * done; then the node must stop.
   */
  async start(): Promise<void> {
    const interrupted = this.#installer.interrupted();
    const halves = new Set(interrupted.map(({ rangeId }) => rangeId));
    this.#checkNothingLost(halves);
    this.#remover.clean();
    this.#held.forget();
    const left: Removing[] = [];
    for (const { key, value } of this.#deps.engine.scanResident(allLocalSpan())) {
      if (isStateKey(key) && !halves.has(rangeIdOfLocalKey(key))) left.push(...this.#open(value));
    }
    const removals = left.map((remove) => remove()); // RM4: all others take part in checkpoints by now
    this.#armHousekeeping();
    const resumed = interrupted.map((marker) => this.#replicas.create(marker, () => this.#resume(marker)));
    await Promise.all([this.#installer.clean(), ...removals, ...resumed]);
  }

  /** T6. */
  #checkNothingLost(halves: ReadonlySet<number>): void {
    const { recovered, engine } = this.#deps;
    for (const groupId of recovered.keys()) {
      if (groupId === MASTER_GROUP || halves.has(groupId) || engine.get(stateKey(groupId)) !== undefined) continue;
      throw new StoreDamagedError(`range ${groupId}`, 'the write-ahead log has entries of it, and the engine nothing');
    }
  }

  async #resume(marker: InstallMarker): Promise<void> {
    await this.#installer.resume(marker);
    if (this.#ending) return; // the next start runs it: the interrupted installation is complete by now
    const state = this.#deps.engine.get(stateKey(marker.rangeId));
    assert(state !== undefined, 'a snapshot carries the state of its range');
    for (const remove of this.#open(state)) await remove();
  }

  /**
   * Creates the local replica of a range; does nothing if it exists. Resolves when the replica is durable and running.
   * Rejects with `UNAVAILABLE` if it cannot be created now: while rows of its keys are being replaced or deleted, or
   * while another replica of the range is being created. An earlier replica of the range that was removed since is
   * deleted first (T5). Rejects with `INVALID_ARGUMENT` if the replica can never be created.
   */
  async createReplica(descriptor: RangeDescriptor, replicaId: number): Promise<void> {
    const { rangeId } = descriptor;
    const running = this.#replicas.get(rangeId)?.replica;
    if (running?.group.replicaId === replicaId) return;
    const creating = this.#replicas.creating(rangeId);
    if (creating !== undefined) {
      await creating; // perhaps another replica
      if (this.#ending || this.#replicas.get(rangeId)?.replica.group.replicaId === replicaId) return;
      throw new ServiceError('UNAVAILABLE', `another replica of range ${rangeId} was being created; try again later`);
    }
    if (!this.#held.accepts(rangeId, replicaId)) {
      const message = `replica ${replicaId} of range ${rangeId} was here before, or a later one`;
      throw new ServiceError('INVALID_ARGUMENT', message);
    }
    if (running !== undefined) this.#ends.makeWay(running, descriptor);
    await this.#replicas.create({ rangeId, span: descriptor }, () => this.#create(descriptor, replicaId));
  }

  /**
   * The master or a member reports that a replica does not belong to its range as of this `confVersion`. Nothing
   * happens if the replica is not here, or if its own membership is not older (T5).
   */
  removeReplica(removed: RemovedReplica): void {
    this.#ends.removed(removed);
  }

  /** A replica on another node asks for votes in a range, and is not a member as far as this node knows. */
  nonMemberHeard(rangeId: number, sender: { readonly replicaId: number; readonly node: number }): void {
    const running = this.#replicas.get(rangeId);
    if (running !== undefined) this.#removedReplicaNotifier.heard(running.replica.state.descriptor, sender);
  }

  async #create(descriptor: RangeDescriptor, replicaId: number): Promise<void> {
    const { rangeId } = descriptor;
    const { engine, checkpointer, logger } = this.#deps;
    this.#checkNotShared(descriptor);
    assert(engine.get(stateKey(rangeId)) === undefined, 'T5: nothing of an earlier replica is left');
    const conf = firstConf(descriptor);
    const replica = this.#replica(descriptor, conf);
    replica.stage();
    this.#held.begins(rangeId, replicaId);
    await checkpointer.run();
    if (this.#ending) return;
    this.#run(replica, replicaId, createdBeginning(conf, replicaId));
    logger.info({ range: rangeId, replica: replicaId }, 'created a replica');
  }

  /**
   * Starts the replica of a range that a split has just made on this node: first it becomes durable together with its
   * parent's split, then it runs (range/reshape/splits.ts S1, S2, S7).
   */
  #adopt(child: SplitOff, parent: ReplicaContext): Promise<void> {
    const { start } = child;
    const { descriptor, conf } = start.meta;
    const { rangeId } = descriptor;
    const { nodeId, checkpointer, logger, onFailure } = this.#deps;
    const own = descriptor.replicas.find((replica) => replica.nodeId === nodeId);
    // Not in this step: the split's entry is not applied completely yet (A6 of the range state).
    const durable = Promise.resolve().then(() => checkpointer.run());
    if (own === undefined || !this.#held.accepts(rangeId, own.replicaId)) return durable; // S6
    // The parent may be ending already: it was applying entries from before its end was known (RM4 of the remover).
    const sharing = this.#sharing(descriptor, rangeId) ?? parent.rangeId;
    assert(sharing === parent.rangeId, 'T7: a range has no keys that another one has');
    const replica = this.#replica(descriptor, conf, start);
    replica.stage();
    this.#held.begins(rangeId, own.replicaId);
    const beginning = splitOffBeginning(child, own.replicaId, parent);
    const done = this.#replicas.create({ rangeId, span: descriptor }, async () => {
      await durable;
      // Not resolved: the child takes no part in checkpoints, so the parent's rows have to stay
      // (range/reshape/splits.ts S8).
      if (this.#ending) throw new ServiceError('UNAVAILABLE', 'the node is stopping');
      this.#run(replica, own.replicaId, beginning);
      logger.info({ range: rangeId, replica: own.replicaId, of: parent.rangeId }, 'split off a range');
    });
    done.catch((error: unknown) => {
      if (!this.#ending) onFailure(error); // the engine reports a failed checkpoint as well
    });
    return done;
  }

  /** T3, T5, T7. */
  #checkNotShared(descriptor: RangeDescriptor): void {
    const { rangeId } = descriptor;
    const changing = this.#installer.replacing(descriptor) ?? this.#remover.removing(descriptor);
    const other = changing ?? this.#sharing(descriptor, rangeId);
    if (other === undefined) return;
    const message = `range ${rangeId} shares keys with range ${other}, which this node has yet; try again later`;
    throw new ServiceError('UNAVAILABLE', message, { details: { rangeId } });
  }

  /** Returns another range that has keys of the span here (T7). */
  #sharing(span: Span, rangeId: number): number | undefined {
    return this.#replicas.sharing(span, rangeId) ?? this.#beingRemoved(span, rangeId);
  }

  #beingRemoved(span: Span, rangeId: number): number | undefined {
    const removing = this.#remover.removing(span);
    return removing === rangeId ? undefined : removing;
  }

  /**
   * Returns the ranges here whose epoch is later than in this list of the masters, or that it does not have: their
   * membership has changed, or they were cut, or a split made them. A follower's report is as good as the leader's, and
   * may be the only one: a range that waits for the creation of a replica may have no leader until then.
   */
  changedSince(ranges: readonly RangeDescriptor[]): readonly RangeDescriptor[] {
    return this.#viewChanges.since(ranges);
  }

  /** Runs a replica, or returns a function that deletes what is left of it (T5, T8). */
  #open(state: Uint8Array): readonly Removing[] {
    const { descriptor, conf } = decodeRangeMeta(state);
    const held = this.#held.of(descriptor.rangeId) ?? this.#heldBefore(descriptor);
    const isMember = descriptor.replicas.some(({ replicaId }) => replicaId === held.replicaId);
    if (held.ended || !isMember) return [() => this.#ends.clear(descriptor, { replicaId: held.replicaId })];
    this.#run(this.#replica(descriptor, conf), held.replicaId);
    return [];
  }

  /** Versions without held rows found the node's own replica in the descriptor. */
  #heldBefore({ rangeId, replicas }: RangeDescriptor): HeldReplica {
    const own = replicas.find(({ nodeId }) => nodeId === this.#deps.nodeId);
    if (own !== undefined) this.#held.begins(rangeId, own.replicaId);
    return { replicaId: own?.replicaId ?? NO_REPLICA, ended: own === undefined };
  }

  #replica(descriptor: RangeDescriptor, conf: ConfState, start?: RangeStart): RangeReplica {
    this.#rangeDeps ??= this.#depsOfRanges();
    return new RangeReplica(this.#rangeDeps, descriptor, conf, start);
  }

  #depsOfRanges(): RangeDeps {
    const sharing = (span: Span, rangeId: number): number | undefined =>
      this.merges.keepsOut(span, rangeId) ?? this.#beingRemoved(span, rangeId);
    return {
      ...this.#deps,
      ...this.merges.seams,
      installer: this.#installer,
      heat: this.heat,
      sharing,
      onLeft: (rangeId) => this.#ends.left(rangeId),
      onSplit: (child, parent) => this.#adopt(child, parent),
      following: (range) => this.#replicas.following(range, SPLIT_OFF_MAX),
      onSplitWish: () => this.#splitter?.tick(),
      onServing: (id) => this.#service.changed(id),
      splitPolicy: () => this.#splitPolicy,
      watchRingShare: () => this.#watchRingShare,
      latestTimeMs: () => this.#rounds.latestTimeMs,
      onActive: (rangeId) => this.#active.mark(rangeId),
    };
  }

  get #watchRingShare(): number {
    const { watchRingsBytesMax = Number.POSITIVE_INFINITY } = this.#deps.options;
    return Math.max(WATCH_RING_MIN, watchRingsBytesMax / Math.max(1, this.#replicas.size));
  }

  /** No replica can be run any more: the store was stopped, or the host stopped itself and has reported why. */
  get #ending(): boolean {
    return this.#stopped || this.#deps.host.stopped;
  }

  #run(replica: RangeReplica, replicaId: number, beginning: Beginning = {}): void {
    const { state } = replica;
    const recovered = this.#deps.recovered.get(replica.rangeId);
    this.#deps.recovered.delete(replica.rangeId);
    const group = this.#deps.host.createGroup({
      groupId: replica.rangeId,
      replicaId,
      applied: state.applied,
      conf: state.conf,
      ...(recovered === undefined ? {} : { recovered }),
      ...beginning,
      stateMachine: replica,
      locate: (id) => replica.state.descriptor.replicas.find((r) => r.replicaId === id)?.nodeId,
    });
    replica.attach(group);
    const leaveCheckpoints = this.#deps.checkpointer.addGroup(group, {
      stage: () => replica.stage(),
      applied: () => replica.state.applied,
      replacing: () => replica.replacing,
    });
    this.#replicas.add({ replica, leaveCheckpoints });
  }

  #armHousekeeping(): void {
    this.#timer = this.#deps.clock.setTimer(HOUSEKEEPING_MS, () => {
      this.#rounds.round();
      this.#splitter?.tick();
      this.merges.housekeep();
      this.#armHousekeeping();
    });
  }

  /** Sets the policy for automatic splits from now on. */
  splitBy(policy: SplitPolicy): void {
    this.#splitPolicy = policy;
  }

  replicas(): IterableIterator<RangeReplica> {
    return this.#replicas.all();
  }

  /** Serves the range calls of gateways, local and remote. */
  register(registry: RpcRegistry): void {
    this.#service.register(registry);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#splitter?.stop();
    this.#installer.stop();
    this.#remover.stop();
    this.merges.stop();
    for (const replica of this.replicas()) replica.close();
  }
}
