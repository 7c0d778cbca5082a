import {
  assert,
  type Clock,
  type Disk,
  type Engine,
  type Logger,
  ServiceError,
  type Span,
  type Timer,
} from '@remora/base';
import type { Epoch, RangeDescriptor, RemovedReplica, RpcDialer, RpcRegistry, SplitPolicy } from '@remora/protocol';
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
import { Installer } from './install/installer.ts';
import type { InstallMarker } from './install/marker.ts';
import type { RangeOptions } from './range/range-options.ts';
import { RangeReplica } from './range/range-replica.ts';
import type { ReplicaContext } from './range/replica-context.ts';
import type { OnApplied } from './range/requests/applied-command.ts';
import type { DiskRoom } from './range/requests/disk-room.ts';
import type { OtherRanges } from './range/reshape/other-ranges.ts';
import { SPLIT_OFF_MAX } from './range/reshape/split-off-ranges.ts';
import type { SplitOff } from './range/reshape/splits.ts';
import { type Beginning, createdBeginning, firstConf, splitOffBeginning } from './replicas/beginnings.ts';
import { type HeldReplica, HeldReplicas } from './replicas/held-replicas.ts';
import { RemovedReplicaNotifier } from './replicas/removed-replica-notifier.ts';
import { ReplicaEnds } from './replicas/replica-ends.ts';
import { ReplicaRemover } from './replicas/replica-remover.ts';
import { ReplicaTable } from './replicas/replica-table.ts';
import { StoreMerges } from './replicas/store-merges.ts';
import { StoreService } from './replicas/store-service.ts';
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
  /** Where incoming snapshots are staged, under `snapshots/`. Its calls should not hold up the loop. */
  readonly disk: Disk;
  readonly checkpointer: Checkpointer;
  readonly host: RaftHost;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: RangeOptions;
  /** Where ranges that the master numbers get their revisions. */
  readonly drawer: RevisionSource;
  /** The way to the ranges of all nodes, for what they have to tell each other. */
  readonly others: OtherRanges;
  /** All ranges, as the masters told last. */
  readonly knownRanges: () => readonly RangeDescriptor[];
  /** What it takes to split ranges; without it none of them is. */
  readonly splitting?: SplittingPorts;
  /** The way to other ranges, for what coordinators leave of transactions over several. */
  readonly transactionPeers?: TransactionPeers;
  /** Calls to the stores of other nodes, and to this one. */
  readonly dialer: Pick<RpcDialer, 'channel'>;
  /**
   * What the log held for each group when the node started. Each replica takes its own out, so that nothing is kept.
   */
  readonly recovered: Map<GroupId, RecoveredGroup>;
  readonly onApplied?: OnApplied;
  /** Counts what its ranges apply while they lead. */
  readonly meter?: RangeMeter;
  /** What is left on the node's disk; absent: that is not looked at. */
  readonly room?: DiskRoom;
  /** Something broke that the node must not go on with. */
  readonly onFailure: (error: unknown) => void;
}

const NO_SPLITS: OrderedSplit = { outcome: 'refused', reason: 'this node splits no ranges' };

const HOUSEKEEPING_MS = 1_000;
/** Recent events of a range keep at least so much memory, however many ranges there are. */
const WATCH_RING_MIN = 64 * 1024;
type Removing = () => Promise<void>;

/**
 * The ranges of one node.
 *
 * T1. A replica is created in one place (`createReplica`), once per range, and is durable before it votes (traps 13).
 * T2. Nothing is proposed that the log's codec would not read back (range-service.ts).
 * T3. A replica never runs with half a state: one whose rows a snapshot was replacing when the process ended runs once
 *     that is finished, and until then no replica that shares keys with it is created (design §6 ▸).
 * T4. A replica that joins a range begins without membership and is brought in by a snapshot (host-api.ts `applied`):
 *     the descriptor that it is created by has the membership of the day, the log the changes that led there. So does
 *     one of a range that a split made or cut: its log does not begin with nothing.
 * T5. A replica that was removed from its range ends for good: it is taken away, with its log, its rows and its place
 *     in memory, and no other of that range is created here before (replicas/replica-ends.ts). It knows that it was
 *     removed when it applies that, or by the master's word or that of a member (replicas/removed-replica-notifier.ts),
 *     which counts from a `confVersion` above its own (design §5 ▸).
 * T6. A replica's state row is durable before its group writes to the log (T1), and goes after it does. So if the log
 *     has a range of which the engine holds nothing, the engine has lost it (docs/decisions/0012).
 * T7. No two replicas share keys, so none reads or changes what another has. A replica whose keys another has here yet,
 *     which has not applied a split of long ago say, or which is being taken away, is not created until that one is cut
 *     or gone (traps 12).
 * T8. Which replica of a range is the node's own says its held row, put with the first state and with the last
 *     (held-replicas.ts): a descriptor may name the next one already.
 * T9. The replica of a source of a merge ends when the target's has its keys (replicas/merged-replicas.ts MP1–MP3).
 */
export class Store {
  readonly heartbeat: StoreHeartbeat;
  readonly #deps: StoreDeps;
  readonly #replicas = new ReplicaTable();
  readonly #installer: Installer;
  readonly #held: HeldReplicas;
  readonly #remover: ReplicaRemover;
  readonly #ends: ReplicaEnds;
  readonly #splitter: Splitter | undefined;
  readonly #service: StoreService;
  readonly #removedReplicaNotifier: RemovedReplicaNotifier;
  readonly merges: StoreMerges;
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
    this.#service = new StoreService({
      ...deps,
      replicas,
      moved: (rangeId) => this.merges.moved(rangeId),
      removed: (removed) => this.removeReplica(removed),
    });
    const onMoved = (rangeId: number): void => this.#service.changed(rangeId);
    this.merges = new StoreMerges({ ...deps, replicas, held: this.#held, remover: this.#remover, onMoved });
    const isAwaited = (state: RangeState): boolean => this.merges.isAwaited(state);
    this.#ends = new ReplicaEnds({ ...deps, replicas, remover: this.#remover, isAwaited });
    const replica = (rangeId: number): RangeReplica | undefined => this.#replicas.get(rangeId)?.replica;
    this.#splitter = deps.splitting && splitterOf({ ...deps, ...deps.splitting, replicas: () => this.replicas() });
    this.heartbeat = new StoreHeartbeat({
      ...{ clock: deps.clock, replica, replicas: () => this.replicas() },
      split: (ordered, at) => this.#splitter?.order(ordered, at) ?? NO_SPLITS,
      merge: (wanted) => this.merges.carryOut(wanted),
      isMerging: (rangeId) => this.merges.isMerging(rangeId),
    });
  }

  /**
   * Takes up every replica that the engine knows: at once, or once the snapshot is installed that a crash interrupted
   * (T3). Goes on with taking away what has ended (T5). Resolves when all of that is done; rejects when it cannot be
   * done: the node must not go on.
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
    if (this.#stopped) return; // the next start runs it: what was interrupted is whole by now
    const state = this.#deps.engine.get(stateKey(marker.rangeId));
    assert(state !== undefined, 'a snapshot carries the state of its range');
    for (const remove of this.#open(state)) await remove();
  }

  /**
   * Creates the local replica of a range; does nothing when it is there. Resolves when it is durable and running.
   * Rejects with `UNAVAILABLE` when it cannot be created now: while rows that it would share are being replaced or
   * cleared away, also those of an earlier replica of the range, which goes first if it was removed since (T5), or
   * while another one of the range is being created. Rejects with `INVALID_ARGUMENT` when it can never be.
   */
  async createReplica(descriptor: RangeDescriptor, replicaId: number): Promise<void> {
    const { rangeId } = descriptor;
    const running = this.#replicas.get(rangeId)?.replica;
    if (running?.group.replicaId === replicaId) return;
    const creating = this.#replicas.creating(rangeId);
    if (creating !== undefined) {
      await creating; // perhaps of another one
      if (this.#stopped || this.#replicas.get(rangeId)?.replica.group.replicaId === replicaId) return;
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
   * The master, or a member, says that a replica is none of its range any more, as of this `confVersion`. Nothing
   * happens when it is not here, or when what it knows itself is not older (T5).
   */
  removeReplica(removed: RemovedReplica): void {
    this.#ends.removed(removed);
  }

  /** A replica on another node asks for votes in a range, and is no member of it as far as is known here. */
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
    if (this.#stopped) return;
    this.#run(replica, replicaId, createdBeginning(conf, replicaId));
    logger.info({ range: rangeId, replica: replicaId }, 'created a replica');
  }

  /**
   * The replica of a range that a split has just made, on this node: durable together with its parent's split, then
   * running (range/reshape/splits.ts S1, S2, S7).
   */
  #adopt(child: SplitOff, parent: ReplicaContext): Promise<void> {
    const { start } = child;
    const { descriptor, conf } = start.meta;
    const { rangeId } = descriptor;
    const { nodeId, checkpointer, logger, onFailure } = this.#deps;
    const own = descriptor.replicas.find((replica) => replica.nodeId === nodeId);
    // Not in this step: the entry that is the split is not applied whole yet (A6 of the range state).
    const durable = Promise.resolve().then(() => checkpointer.run());
    if (own === undefined || !this.#held.accepts(rangeId, own.replicaId)) return durable; // S6
    // The parent may be on its way out already: it was applying what came before its end was known (RM4 of the
    // remover).
    const sharing = this.#sharing(descriptor, rangeId) ?? parent.rangeId;
    assert(sharing === parent.rangeId, 'T7: a range has no keys that another one has');
    const replica = this.#replica(descriptor, conf, start);
    replica.stage();
    this.#held.begins(rangeId, own.replicaId);
    const beginning = splitOffBeginning(child, own.replicaId, parent);
    const done = this.#replicas.create({ rangeId, span: descriptor }, async () => {
      await durable;
      // Not resolved: it takes no part in checkpoints, so the parent's rows have to stay (range/reshape/splits.ts S8).
      if (this.#stopped) throw new ServiceError('UNAVAILABLE', 'the node is stopping');
      this.#run(replica, own.replicaId, beginning);
      logger.info({ range: rangeId, replica: own.replicaId, of: parent.rangeId }, 'split off a range');
    });
    done.catch((error: unknown) => {
      if (!this.#stopped) onFailure(error); // a failed checkpoint is told by the engine as well
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

  /** Another range that has keys of the span here (T7). */
  #sharing(span: Span, rangeId: number): number | undefined {
    return this.#replicas.sharing(span, rangeId) ?? this.#beingRemoved(span, rangeId);
  }

  #beingRemoved(span: Span, rangeId: number): number | undefined {
    const removing = this.#remover.removing(span);
    return removing === rangeId ? undefined : removing;
  }

  /**
   * The ranges here that are not known by this epoch, or a later one: their membership has changed, or they were cut,
   * or a split made them. A follower's word is as good as the leader's, and may be the only one: a range that waits for
   * a replica to be created may have no leader until it is.
   */
  changedSince(epochOf: (rangeId: number) => Epoch | undefined): readonly RangeDescriptor[] {
    return this.#replicas.changedSince(epochOf);
  }

  /** Runs a replica, or gives what takes away what is left of it. (T5, T8) */
  #open(state: Uint8Array): readonly Removing[] {
    const { descriptor, conf } = decodeRangeMeta(state);
    const held = this.#held.of(descriptor.rangeId) ?? this.#heldBefore(descriptor);
    const isMember = descriptor.replicas.some(({ replicaId }) => replicaId === held.replicaId);
    if (held.ended || !isMember) return [() => this.#ends.clear(descriptor, { replicaId: held.replicaId })];
    this.#run(this.#replica(descriptor, conf), held.replicaId);
    return [];
  }

  /** Versions without held rows knew the own replica by the descriptor. */
  #heldBefore({ rangeId, replicas }: RangeDescriptor): HeldReplica {
    const own = replicas.find(({ nodeId }) => nodeId === this.#deps.nodeId);
    if (own !== undefined) this.#held.begins(rangeId, own.replicaId);
    return { replicaId: own?.replicaId ?? NO_REPLICA, ended: own === undefined };
  }

  #replica(descriptor: RangeDescriptor, conf: ConfState, start?: RangeStart): RangeReplica {
    const onLeft = (rangeId: number): void => this.#ends.left(rangeId);
    const onSplit = (child: SplitOff, parent: ReplicaContext): Promise<void> => this.#adopt(child, parent);
    const following = (range: RangeDescriptor) => this.#replicas.following(range, SPLIT_OFF_MAX);
    const sharing = (span: Span, rangeId: number): number | undefined =>
      this.merges.keepsOut(span, rangeId) ?? this.#beingRemoved(span, rangeId);
    const onSplitWish = (): void => this.#splitter?.tick();
    const deps = {
      ...this.#deps,
      ...this.merges.seams,
      installer: this.#installer,
      sharing,
      onLeft,
      onSplit,
      following,
      onSplitWish,
      onServing: (id: number) => this.#service.changed(id),
      splitPolicy: () => this.#splitPolicy,
      watchRingShare: () => this.#watchRingShare,
    };
    return new RangeReplica(deps, descriptor, conf, start);
  }

  get #watchRingShare(): number {
    const { watchRingsBytesMax = Number.POSITIVE_INFINITY } = this.#deps.options;
    return Math.max(WATCH_RING_MIN, watchRingsBytesMax / Math.max(1, this.#replicas.size));
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
      let latestMs = 0;
      for (const replica of this.replicas()) latestMs = Math.max(latestMs, replica.info().rangeTimeMs);
      for (const replica of this.replicas()) replica.housekeep(latestMs);
      this.#splitter?.tick();
      this.merges.housekeep();
      this.#armHousekeeping();
    });
  }

  /** When its ranges are split by themselves, from now on. */
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
