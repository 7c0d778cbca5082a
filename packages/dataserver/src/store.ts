import {
  assert,
  type Clock,
  type Disk,
  type Engine,
  type Logger,
  ServiceError,
  type Span,
  type Timer,
  toServiceError,
} from '@remora/base';
import {
  decodeRangeRequest,
  encodeRangeRequest,
  FIRST_EPOCH,
  type RangeDescriptor,
  type RangeReport,
  type RangeRequest,
  type RpcRegistry,
  rangeExecute,
  rangeInfo,
  rangeWatch,
  type StreamContext,
  type WatchMessage,
  type WatchRequest,
} from '@remora/protocol';
import { type ConfState, confOf, type GroupId, MASTER_GROUP, type RaftHost, type RecoveredGroup } from '@remora/raft';
import type { Checkpointer } from './checkpointer.ts';
import { StoreDamagedError } from './engine/store-errors.ts';
import { Installer } from './install/installer.ts';
import type { InstallMarker } from './install/marker.ts';
import type { OnApplied } from './range/applied-command.ts';
import { type RangeOptions, RangeReplica } from './range/range-replica.ts';
import { spansOverlap } from './state/bounds.ts';
import { allLocalSpan, isStateKey, rangeIdOfLocalKey, stateKey } from './state/keys.ts';
import { decodeRangeMeta } from './state/meta-codec.ts';
import type { WatchStream } from './watch/watch-hub.ts';

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
  /** What the log held for each group when the node started. Each replica takes its own out, so that nothing is kept. */
  readonly recovered: Map<GroupId, RecoveredGroup>;
  readonly onApplied?: OnApplied;
}

const HOUSEKEEPING_MS = 1_000;
/** The voters of a new range campaign this far apart: the first that finds a quorum created leads. */
const FIRST_WAIT_TICKS_APART = 4;

/**
 * The ranges of one node.
 *
 * T1. A replica is created in one place (`createReplica`), once per range, and is durable before it votes (traps 13).
 * T2. Nothing is proposed that the log's codec would not read back: it would stop every replica, for good. What comes
 *     from other nodes has been through the codec; what comes from this process has not, and is tried here.
 * T3. A replica never runs with half a state: one whose rows a snapshot was replacing when the process ended runs once
 *     that is finished, and until then no replica that shares keys with it is created (design §6 ▸).
 * T4. A replica that joins a range begins without membership and is brought in by a snapshot (host-api.ts `applied`): the
 *     descriptor that it is created by has the membership of the day, the log the changes that led there.
 * T5. A replica that was removed from its range does not run after a restart, and none of that range is created beside
 *     what it left.
 * T6. A replica's state row is durable before its group writes to the log (T1), and goes after it does. So if the log has
 *     a range of which the engine holds nothing, the engine has lost it (docs/decisions/0012).
 * T7. No two replicas share keys, so none reads or changes what another has. A replica whose keys another has here yet,
 *     which has not applied a split of long ago say, is not created until that one is cut (traps 12).
 */
export class Store {
  readonly #deps: StoreDeps;
  readonly #replicas = new Map<number, RangeReplica>();
  /** Replicas that are being created, or whose snapshot is being installed after a restart. */
  readonly #creating = new Map<number, { readonly span: Span; readonly done: Promise<void> }>();
  readonly #installer: Installer;
  #timer: Timer | undefined;

  constructor(deps: StoreDeps) {
    this.#deps = deps;
    this.#installer = new Installer(deps);
  }

  /**
   * Takes up every replica that the engine knows: at once, or once the snapshot is installed that a crash interrupted
   * (T3). Resolves when all of them run. Rejects when one cannot: the node must not go on.
   */
  async start(): Promise<void> {
    const interrupted = this.#installer.interrupted();
    const halves = new Set(interrupted.map(({ rangeId }) => rangeId));
    this.#checkNothingLost(halves);
    for (const { key, value } of this.#deps.engine.scanResident(allLocalSpan())) {
      if (isStateKey(key) && !halves.has(rangeIdOfLocalKey(key))) this.#open(value);
    }
    this.#armHousekeeping();
    const resumed = interrupted.map((marker) => this.#creation(marker, () => this.#resume(marker)));
    await Promise.all([this.#installer.clean(), ...resumed]);
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
    const state = this.#deps.engine.get(stateKey(marker.rangeId));
    assert(state !== undefined, 'a snapshot carries the state of its range');
    this.#open(state);
  }

  /**
   * Creates the local replica of a new range; does nothing when it is there. Resolves when it is durable and running.
   * Rejects with `UNAVAILABLE` while rows that it would share are being replaced.
   */
  createReplica(descriptor: RangeDescriptor, replicaId: number): Promise<void> {
    const { rangeId } = descriptor;
    if (this.#replicas.has(rangeId)) return Promise.resolve();
    const creation = { rangeId, span: descriptor };
    return this.#creating.get(rangeId)?.done ?? this.#creation(creation, () => this.#create(descriptor, replicaId));
  }

  /** T1. */
  #creation(
    { rangeId, span }: { readonly rangeId: number; readonly span: Span },
    create: () => Promise<void>,
  ): Promise<void> {
    const done = create().finally(() => this.#creating.delete(rangeId));
    this.#creating.set(rangeId, { span, done });
    return done;
  }

  async #create(descriptor: RangeDescriptor, replicaId: number): Promise<void> {
    const { rangeId } = descriptor;
    this.#checkNotShared(descriptor);
    this.#checkNothingLeft(rangeId);
    const conf = firstConf(descriptor);
    const replica = this.#replica(descriptor, conf);
    replica.stage();
    await this.#deps.checkpointer.run();
    const position = conf.voters.indexOf(replicaId);
    this.#run(replica, replicaId, position < 0 ? undefined : position * FIRST_WAIT_TICKS_APART);
    this.#deps.logger.info({ range: rangeId, replica: replicaId }, 'created a replica');
  }

  /** T3, T7. */
  #checkNotShared(descriptor: RangeDescriptor): void {
    const { rangeId } = descriptor;
    const other = this.#installer.replacing(descriptor) ?? this.#sharing(descriptor, rangeId);
    if (other === undefined) return;
    const message = `range ${rangeId} shares keys with range ${other}, which this node has yet; try again later`;
    throw new ServiceError('UNAVAILABLE', message, { details: { rangeId } });
  }

  /** Another range that has keys of the span here (T7). */
  #sharing(span: Span, rangeId: number): number | undefined {
    for (const { state } of this.#replicas.values()) {
      if (state.rangeId !== rangeId && spansOverlap(span, state.bounds)) return state.rangeId;
    }
    for (const [other, creation] of this.#creating) {
      if (other !== rangeId && spansOverlap(span, creation.span)) return other;
    }
    return undefined;
  }

  /** T5. */
  #checkNothingLeft(rangeId: number): void {
    if (this.#deps.engine.get(stateKey(rangeId)) === undefined) return;
    throw new ServiceError('UNAVAILABLE', `this node still holds what an earlier replica of range ${rangeId} left`);
  }

  /**
   * The ranges here whose membership has changed since the given version of it. A follower's word is as good as the
   * leader's, and may be the only one: a range that waits for a replica to be created may have no leader until it is.
   */
  changedSince(confVersionOf: (rangeId: number) => number): readonly RangeDescriptor[] {
    const descriptors = [...this.#replicas.values()].map((replica) => replica.state.descriptor);
    return descriptors.filter(({ rangeId, epoch }) => epoch.confVersion > confVersionOf(rangeId));
  }

  #open(state: Uint8Array): void {
    const { descriptor, conf } = decodeRangeMeta(state);
    const own = descriptor.replicas.find((r) => r.nodeId === this.#deps.nodeId);
    if (own !== undefined) return this.#run(this.#replica(descriptor, conf), own.replicaId);
    const { rangeId } = descriptor;
    this.#deps.logger.info({ range: rangeId }, 'this node has left the range: what it holds of it is not used'); // T5
  }

  #replica(descriptor: RangeDescriptor, conf: ConfState): RangeReplica {
    const sharing = (span: Span, rangeId: number): number | undefined => this.#sharing(span, rangeId);
    return new RangeReplica({ ...this.#deps, installer: this.#installer, sharing }, descriptor, conf);
  }

  #run(replica: RangeReplica, replicaId: number, firstWaitTicks?: number): void {
    const { state } = replica;
    const recovered = this.#deps.recovered.get(replica.rangeId);
    this.#deps.recovered.delete(replica.rangeId);
    const group = this.#deps.host.createGroup({
      groupId: replica.rangeId,
      replicaId,
      applied: state.applied,
      conf: state.conf,
      ...(recovered === undefined ? {} : { recovered }),
      ...(firstWaitTicks === undefined ? {} : { firstWaitTicks }),
      stateMachine: replica,
      locate: (id) => replica.state.descriptor.replicas.find((r) => r.replicaId === id)?.nodeId,
    });
    replica.attach(group);
    this.#replicas.set(replica.rangeId, replica);
    this.#deps.checkpointer.addGroup(group, {
      stage: () => replica.stage(),
      applied: () => replica.state.applied,
      replacing: () => replica.replacing,
    });
  }

  #armHousekeeping(): void {
    this.#timer = this.#deps.clock.setTimer(HOUSEKEEPING_MS, () => {
      for (const replica of this.#replicas.values()) replica.housekeep();
      this.#armHousekeeping();
    });
  }

  replicas(): IterableIterator<RangeReplica> {
    return this.#replicas.values();
  }

  reports(): readonly RangeReport[] {
    return [...this.#replicas.values()].map((replica) => ({
      rangeId: replica.rangeId,
      replicaId: replica.group.replicaId,
      leader: replica.leading,
      term: replica.group.term,
      applied: replica.state.applied.index,
      bytes: replica.state.bytes,
    }));
  }

  /** Serves the range calls of gateways, local and remote. */
  register(registry: RpcRegistry): void {
    registry.handle(rangeExecute, (request, context, done) => {
      const replica = this.#find(request.rangeId);
      if (replica instanceof ServiceError) return done(replica, undefined);
      const malformed = context.peer === 0 && request.body.kind === 'command' ? malformation(request) : undefined;
      if (malformed !== undefined) return done(malformed, undefined);
      replica.execute(request, (fn) => context.onCancel(fn), done);
    });
    registry.handle(rangeInfo, (request, _context, done) => {
      const replica = this.#find(request.rangeId);
      if (replica instanceof ServiceError) done(replica, undefined);
      else done(undefined, replica.info());
    });
    registry.handleStream(rangeWatch, (first, context) => new WatchSession((id) => this.#find(id), context, first));
  }

  #find(rangeId: number): RangeReplica | ServiceError {
    const replica = this.#replicas.get(rangeId);
    if (replica !== undefined) return replica;
    return new ServiceError('RANGE_NOT_FOUND', `this node holds no replica of range ${rangeId}`, {
      details: { rangeId },
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#installer.stop();
    for (const replica of this.#replicas.values()) replica.close();
  }
}

/** The membership of a replica that has applied nothing: the range's first, or none (T4). */
function firstConf({ epoch, replicas }: RangeDescriptor): ConfState {
  if (epoch.confVersion > FIRST_EPOCH.confVersion) return confOf([]);
  const idsOf = (type: 'voter' | 'learner') => replicas.filter((r) => r.type === type).map((r) => r.replicaId);
  return confOf(idsOf('voter'), idsOf('learner'));
}

/** T2. */
function malformation(request: RangeRequest): ServiceError | undefined {
  try {
    decodeRangeRequest(encodeRangeRequest(request));
    return undefined;
  } catch (error) {
    return toServiceError(error);
  }
}

/**
 * One gateway's stream of watches on this node; they may be on several ranges.
 *
 * WS1. A watch begins only while this replica leads: a watch on a replica that does not would fall silent unnoticed.
 * WS2. What is cancelled or closed while it waits for its ReadIndex never begins.
 */
class WatchSession {
  readonly #find: (rangeId: number) => RangeReplica | ServiceError;
  readonly #context: StreamContext<WatchMessage>;
  readonly #streams = new Map<RangeReplica, WatchStream>();
  readonly #owners = new Map<number, WatchStream>();
  readonly #beginning = new Set<number>();

  constructor(
    find: (rangeId: number) => RangeReplica | ServiceError,
    context: StreamContext<WatchMessage>,
    first: WatchRequest,
  ) {
    this.#find = find;
    this.#context = context;
    context.onDrain(() => {
      for (const stream of this.#streams.values()) stream.drained();
    });
    this.onMessage(first);
  }

  onMessage(request: WatchRequest): void {
    if (request.kind === 'cancel') {
      this.#beginning.delete(request.watchId);
      this.#owners.get(request.watchId)?.cancel(request.watchId);
      this.#owners.delete(request.watchId);
    } else if (request.kind === 'progress') {
      for (const stream of this.#streams.values()) stream.progress();
    } else this.#create(request);
  }

  #create(create: Extract<WatchRequest, { kind: 'create' }>): void {
    const { watchId } = create;
    const replica = this.#find(create.rangeId);
    if (replica instanceof ServiceError) return this.#refuse(watchId, replica);
    const refusal = replica.watchRefusal(create.epoch);
    if (refusal !== undefined) return this.#refuse(watchId, refusal);
    this.#beginning.add(watchId);
    // A watch "from now" begins at a state that holds what was committed when it was asked for.
    replica.group.readIndex((refused) => {
      if (!this.#beginning.delete(watchId)) return;
      const late = refused === undefined ? replica.watchRefusal(create.epoch) : replica.notLeader();
      if (late !== undefined) return this.#refuse(watchId, late);
      const stream = this.#stream(replica);
      this.#owners.set(watchId, stream);
      stream.create(create);
    });
  }

  #stream(replica: RangeReplica): WatchStream {
    let stream = this.#streams.get(replica);
    if (stream === undefined) {
      stream = replica.openWatchStream({ send: (message) => this.#send(message) });
      this.#streams.set(replica, stream);
    }
    return stream;
  }

  #send(message: WatchMessage): boolean {
    if (message.kind === 'ended') this.#owners.delete(message.watchId);
    return this.#context.send(message);
  }

  #refuse(watchId: number, error: ServiceError): void {
    this.#context.send({ kind: 'ended', watchId, code: error.code, message: error.message, compactRevision: 0 });
  }

  onClose(): void {
    for (const [replica, stream] of this.#streams) replica.closeWatchStream(stream);
    this.#streams.clear();
    this.#owners.clear();
    this.#beginning.clear();
  }
}
