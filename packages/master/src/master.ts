import { assert, type Clock, type Logger, ServiceError, type Timer, unreachable } from '@remora/base';
import {
  type AskSplitReply,
  type AskSplitRequest,
  type ClusterView,
  type Done,
  type JoinRequest,
  masterAskSplit,
  masterDrawRevisions,
  masterHeartbeat,
  masterJoin,
  masterRangeChanged,
  masterView,
  type NodeDescriptor,
  type NodeHeartbeat,
  type NodeHeartbeatReply,
  type NodeState,
  type NodeTask,
  type RangeDescriptor,
  type RpcRegistry,
} from '@remora/protocol';
import type {
  ConfState,
  Entry,
  Group,
  Refusal,
  Role,
  SnapshotMeta,
  SnapshotReceiver,
  StateMachine,
  StateMachineSnapshot,
} from '@remora/raft';
import { MasterAdmin } from './admin/master-admin.ts';
import type { Knowledge, LastHeard } from './admin/overview.ts';
import { type ClusterSettings, SettingsSchema } from './admin/settings.ts';
import { decodeMasterCommand, decodeMasterImage, encodeMasterCommand, encodeMasterImage } from './codec.ts';
import { RangeOrders } from './range-orders.ts';
import { ReplicaIds } from './replica-ids.ts';
import { replicaTasks } from './replica-tasks.ts';
import { RevisionIssuer } from './revision-issuer.ts';
import { encodeMasterSnapshot, receiveMasterSnapshot } from './snapshot.ts';
import { type MasterCommand, type MasterResult, MasterState } from './state.ts';

export interface MasterDeps {
  readonly nodeId: number;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: MasterOptions;
  /** Where the state lies between checkpoints. */
  readonly storage: { load(): Uint8Array | undefined; save(bytes: Uint8Array): void };
  /** Makes what was saved durable. */
  readonly checkpoint: () => Promise<void>;
}

export interface MasterOptions {
  /** Replicas of the first range; and of all others unless it is set (admin/settings.ts). */
  readonly replicas: number;
  /** Revisions that a leader takes into reserve through the log at a time; at an election as many are skipped at most. */
  readonly revisionWindow: number;
}

type CommandDone = (error: ServiceError | undefined, result: MasterResult | undefined) => void;

interface Heard {
  readonly atMs: number;
  readonly heartbeat: NodeHeartbeat;
}

const TICK_MS = 100;

/**
 * One replica of the master group: the cluster's metadata, and on the leader the care for it.
 *
 * M3. Only a leader that has applied an entry of its own term answers from its state.
 * M4. What nodes report (health, leaders) is kept in the leader's memory only and built anew by each leader.
 * M5. Every proposal is answered once: with its result, or with an error when leadership moved before it was known.
 */
export class Master implements StateMachine {
  readonly #deps: MasterDeps;
  readonly state: MasterState;
  /** What leaders of ranges are to do. */
  readonly orders: RangeOrders;
  /** For replicas that are to be added. */
  readonly replicaIds: ReplicaIds;
  readonly #waiting = new Map<number, { readonly term: number; readonly done: CommandDone }>();
  readonly #heard = new Map<number, Heard>();
  readonly #revisions: RevisionIssuer;
  readonly #schema: SettingsSchema;
  #group: Group | undefined;
  #settings: { readonly version: number; readonly values: ClusterSettings } | undefined;
  #leaderTerm = 0;
  #leaderSinceMs = 0;
  #leaderReplica = 0;
  #bootstrapping = false;
  #timer: Timer | undefined;

  constructor(deps: MasterDeps, conf: ConfState) {
    this.#deps = deps;
    this.#schema = new SettingsSchema(deps.options);
    this.state = new MasterState(conf);
    this.orders = new RangeOrders(deps.logger);
    this.replicaIds = new ReplicaIds((count, done) =>
      this.#propose({ type: 'allocateReplicas', count }, (error, result) =>
        done(error, result?.type === 'allocateReplicas' ? result.first : undefined),
      ),
    );
    const stored = deps.storage.load();
    if (stored !== undefined) this.state.restore(decodeMasterImage(stored));
    this.#revisions = new RevisionIssuer({
      group: () => this.group,
      bound: () => this.state.revisionBound,
      lift: (upTo, done) => this.#propose({ type: 'liftRevisions', upTo }, done),
      notLeader: () => this.#notLeader(),
      refusal,
      window: deps.options.revisionWindow,
    });
  }

  attach(group: Group): void {
    this.#group = group;
    this.#arm();
  }

  get group(): Group {
    assert(this.#group !== undefined, 'the master is attached to its group before it serves');
    return this.#group;
  }

  /** Commands that are not answered. */
  get proposalsUnderWay(): number {
    return this.#waiting.size;
  }

  get leading(): boolean {
    return this.#leaderTerm !== 0 && this.group.ready;
  }

  // -------------------------------------------------------------------------------------------- state machine

  apply(entries: readonly Entry[], conf: ConfState): void {
    this.state.conf = conf;
    for (const entry of entries) this.#applyEntry(entry);
  }

  #applyEntry(entry: Entry): void {
    const waiting = this.#waiting.get(entry.index);
    this.#waiting.delete(entry.index);
    this.state.applied = { index: entry.index, term: entry.term };
    const mine = waiting?.term === entry.term ? waiting.done : undefined;
    if (waiting !== undefined && mine === undefined) waiting.done(this.#notLeader(), undefined);
    if (entry.type === 'conf' || entry.data.length === 0) return;
    try {
      const result = this.state.apply(decodeMasterCommand(entry.data));
      mine?.(undefined, result);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      mine?.(error, undefined);
    }
  }

  roleChanged(change: { readonly role: Role; readonly term: number; readonly leader: number }): void {
    this.#leaderReplica = change.leader;
    const term = change.role === 'leader' ? change.term : 0;
    if (term === this.#leaderTerm) return;
    this.#leaderTerm = term;
    this.#leaderSinceMs = this.#deps.clock.monotonicMs();
    this.#heard.clear();
    this.orders.termBegan(change.term);
    this.replicaIds.termBegan(change.term);
    // M5. Also from one own term to the next: what was proposed in the earlier one may be lost.
    for (const index of [...this.#waiting.keys()]) this.#lose(index);
    this.#revisions.roleChanged();
    if (term !== 0) this.#deps.logger.info({ term }, 'leads the master group');
  }

  #lose(index: number): void {
    const waiting = this.#waiting.get(index);
    this.#waiting.delete(index);
    const message = 'the master changed while the command was being replicated';
    waiting?.done(new ServiceError('UNKNOWN_OUTCOME', message), undefined);
  }

  snapshot(): StateMachineSnapshot {
    const image = this.state.image();
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield encodeMasterSnapshot(image);
    }
    return { meta: { ...image.applied, conf: image.conf }, chunks: chunks(), release() {} };
  }

  install(meta: SnapshotMeta): SnapshotReceiver {
    return receiveMasterSnapshot(meta, async (image) => {
      this.state.restore(image);
      this.stage();
      await this.#deps.checkpoint();
    });
  }

  /** Called as a checkpoint begins. */
  stage(): void {
    this.#deps.storage.save(encodeMasterImage(this.state.image()));
  }

  // -------------------------------------------------------------------------------------------- service

  register(registry: RpcRegistry): void {
    this.#admin().register(registry);
    registry.handle(masterJoin, (request, _context, done) => this.#join(request, done));
    registry.handle(masterHeartbeat, (heartbeat, _context, done) => {
      const reply = this.#heartbeat(heartbeat);
      if (reply instanceof ServiceError) done(reply, undefined);
      else done(undefined, reply);
    });
    registry.handle(masterRangeChanged, (descriptor, _context, done) => this.#rangeChanged(descriptor, done));
    registry.handle(masterAskSplit, (request, _context, done) => this.#askSplit(request, done));
    registry.handle(masterDrawRevisions, (request, _context, done) =>
      this.leading ? this.#revisions.draw(request, done) : done(this.#notLeader(), undefined),
    );
    registry.handle(masterView, (_request, _context, done) =>
      this.leading ? done(undefined, this.view()) : done(this.#notLeader(), undefined),
    );
  }

  #admin(): MasterAdmin {
    const { nodeId, clusterId, clock } = this.#deps;
    return new MasterAdmin({
      nodeId,
      clusterId,
      settings: this.#schema,
      state: this.state,
      leading: () => this.leading,
      leadingMs: () => clock.monotonicMs() - this.#leaderSinceMs,
      notLeader: () => this.#notLeader(),
      knowledge: () => this.#knowledge(),
      schedulingProblems: () => [],
      propose: (command, done) => this.#propose(command, (error) => done(error)),
    });
  }

  #join(
    request: JoinRequest,
    done: (error: ServiceError | undefined, reply: { nodeId: number; clusterId: string } | undefined) => void,
  ): void {
    if (!this.leading) return done(this.#notLeader(), undefined);
    const descriptor: NodeDescriptor = { ...request.descriptor, nodeId: request.nodeId };
    const conflict = this.state.registrationConflict(descriptor);
    if (conflict !== undefined) return done(conflict, undefined);
    this.#propose({ type: 'registerNode', descriptor }, (error, result) => {
      if (result?.type !== 'registerNode') return done(error ?? this.#notLeader(), undefined);
      this.#deps.logger.info({ node: result.nodeId, name: descriptor.name }, 'registered a node');
      done(undefined, { nodeId: result.nodeId, clusterId: this.#deps.clusterId });
    });
  }

  #rangeChanged(descriptor: RangeDescriptor, done: (error: ServiceError | undefined, reply: undefined) => void): void {
    if (!this.leading) return done(this.#notLeader(), undefined);
    const news = this.state.newsOf(descriptor);
    if (news === undefined) return done(undefined, undefined);
    const type = news === 'all' ? 'describeRange' : 'changeRange';
    this.#propose({ type, descriptor }, (error) => done(error, undefined));
  }

  #askSplit({ range }: AskSplitRequest, done: Done<AskSplitReply>): void {
    if (!this.leading) return done(this.#notLeader(), undefined);
    this.#propose({ type: 'askSplit', descriptor: range }, (error, result) => {
      if (result?.type !== 'askSplit') return done(error ?? this.#notLeader(), undefined);
      const { childId, replicas } = result.asked;
      done(undefined, { childId, replicas: replicas.map(({ nodeId, replicaId }) => ({ nodeId, replicaId })) });
    });
  }

  #heartbeat(heartbeat: NodeHeartbeat): NodeHeartbeatReply | ServiceError {
    if (!this.leading) return this.#notLeader();
    const node = this.state.node(heartbeat.nodeId);
    if (node === undefined) {
      return new ServiceError('INVALID_ARGUMENT', `node ${heartbeat.nodeId} has not joined`, {
        details: { join: true },
      });
    }
    if (this.state.isRemoved(heartbeat.nodeId)) return this.state.removedConflict(heartbeat.nodeId);
    if (node.incarnation !== heartbeat.incarnation) {
      return new ServiceError('NODE_CONFLICT', `node id ${heartbeat.nodeId} belongs to another data directory`);
    }
    this.#heard.set(heartbeat.nodeId, { atMs: this.#deps.clock.monotonicMs(), heartbeat });
    this.#bootstrapFirstRange();
    for (const result of heartbeat.results) this.orders.ended(result);
    const tasks = [...replicaTasks(this.state, heartbeat), ...this.#orderTasks(heartbeat)];
    return { tasks, view: this.view() };
  }

  #orderTasks({ ranges }: NodeHeartbeat): readonly NodeTask[] {
    return ranges.flatMap((report) => {
      const range = this.state.range(report.rangeId);
      const order = range === undefined ? undefined : this.orders.reported(range, report);
      return order === undefined ? [] : [{ type: 'order', order }];
    });
  }

  view(): ClusterView {
    const leaders = new Map<number, { readonly node: number; readonly term: number }>();
    for (const [node, { heartbeat }] of this.#heard) {
      for (const report of heartbeat.ranges) {
        const known = leaders.get(report.rangeId);
        if (report.lead !== undefined && (known === undefined || known.term < report.term)) {
          leaders.set(report.rangeId, { node, term: report.term });
        }
      }
    }
    return {
      clusterId: this.#deps.clusterId,
      nodes: this.state.nodes().map((descriptor) => {
        const state = this.#stateOf(descriptor.nodeId);
        const { duty } = this.state.dutyOf(descriptor.nodeId);
        if (duty === 'removed') return { descriptor, state: duty };
        return { descriptor, state: state === 'up' && duty !== 'serving' ? 'draining' : state };
      }),
      ranges: this.state.ranges(),
      leaders: [...leaders].map(([rangeId, { node }]) => [rangeId, node] as const),
      masterLeader: this.leading ? this.#deps.nodeId : this.#leaderReplica,
    };
  }

  #stateOf(nodeId: number): NodeState {
    const { suspectAfter, downAfter } = this.settings;
    const nowMs = this.#deps.clock.monotonicMs();
    const heard = this.#heard.get(nodeId);
    const silentMs = nowMs - (heard?.atMs ?? this.#leaderSinceMs);
    if (silentMs > downAfter) return 'down';
    return heard === undefined || silentMs > suspectAfter ? 'suspect' : 'up';
  }

  /** Those in force. */
  get settings(): ClusterSettings {
    const { version, texts } = this.state.settings;
    if (this.#settings?.version !== version) this.#settings = { version, values: this.#schema.effective(texts) };
    return this.#settings.values;
  }

  #knowledge(): Knowledge {
    const nowMs = this.#deps.clock.monotonicMs();
    const heard = new Map<number, LastHeard>();
    for (const [nodeId, { atMs, heartbeat }] of this.#heard) heard.set(nodeId, { silentMs: nowMs - atMs, heartbeat });
    const stateOf = (nodeId: number) => this.#stateOf(nodeId);
    const dutyOf = (nodeId: number) => this.state.dutyOf(nodeId);
    const wallMs = this.#deps.clock.wallMs();
    const mergedInto = (rangeId: number) => this.state.mergedInto(rangeId);
    return { nodes: this.state.nodes(), ranges: this.state.ranges(), heard, stateOf, dutyOf, mergedInto, wallMs };
  }

  /** Replica ids of the master group are node ids. */
  #notLeader(): ServiceError {
    const leaderNode = this.#leaderReplica === this.#deps.nodeId ? 0 : this.#leaderReplica;
    const leaderAddress = this.state.node(leaderNode)?.peerAddress ?? '';
    return new ServiceError('NOT_LEADER', 'this node does not lead the master group', {
      details: { leaderNode, leaderAddress },
    });
  }

  #propose(command: MasterCommand, done: CommandDone): void {
    const proposed = this.group.propose(encodeMasterCommand(command));
    if ('refused' in proposed) return done(refusal(proposed.refused) ?? this.#notLeader(), undefined);
    this.#lose(proposed.index);
    this.#waiting.set(proposed.index, { term: proposed.term, done });
  }

  // -------------------------------------------------------------------------------------------- care

  #arm(): void {
    this.#timer = this.#deps.clock.setTimer(TICK_MS, () => {
      if (this.leading) this.#bootstrapFirstRange();
      this.#arm();
    });
  }

  /** Creates the first range once enough data nodes are up. */
  #bootstrapFirstRange(): void {
    if (this.#bootstrapping || this.state.ranges().length > 0) return;
    const up = this.state
      .nodes()
      .filter((node) => node.roles.includes('data') && this.#stateOf(node.nodeId) === 'up')
      .map((node) => node.nodeId)
      .sort((a, b) => a - b);
    if (up.length < this.#deps.options.replicas) return;
    this.#bootstrapping = true;
    const nodeIds = up.slice(0, this.#deps.options.replicas);
    this.#propose({ type: 'bootstrapRange', nodeIds }, (error, result) => {
      this.#bootstrapping = false;
      if (result?.type === 'bootstrapRange') {
        this.#deps.logger.info({ range: result.rangeId, nodes: nodeIds }, 'created the first range');
      } else this.#deps.logger.warn({ error: error?.message }, 'could not create the first range');
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }
}

/** Why a leader takes no command at the moment; undefined when it is none. */
export function refusal(refused: Refusal): ServiceError | undefined {
  switch (refused) {
    case 'notLeader':
      return undefined;
    case 'queueFull':
      return new ServiceError('RESOURCE_EXHAUSTED', 'the master has too much to replicate');
    case 'transferring':
      return new ServiceError('UNAVAILABLE', 'the master is handing over');
    case 'noOwnTermCommit':
    case 'confPending':
      return new ServiceError('UNAVAILABLE', 'another change of the masters is under way');
    case 'confInvalid':
    case 'notVoter':
      return new ServiceError('INVALID_ARGUMENT', 'the change of the masters is not possible');
    default:
      return unreachable(refused);
  }
}
