import {
  assert,
  type Bytes,
  type Clock,
  type ClusterVersion,
  type Logger,
  ServiceError,
  type Timer,
} from '@remora/base';
import type { ClusterView, RpcRegistry } from '@remora/protocol';
import {
  type ConfChange,
  type ConfState,
  decodeConfChange,
  type Entry,
  type Group,
  isMember,
  isVoter,
  type Role,
  type SnapshotMeta,
  type SnapshotReceiver,
  type StateMachine,
  type StateMachineSnapshot,
} from '@remora/raft';
import { registerAuth } from './admin/auth-service.ts';
import { ClusterHealth } from './admin/cluster-health.ts';
import { MasterAdmin, RESTORE_NOTE } from './admin/master-admin.ts';
import type { Knowledge } from './admin/overview.ts';
import type { RangeSettings } from './admin/range-settings.ts';
import { type ClusterSettings, SettingsSchema } from './admin/settings.ts';
import { registerSteering } from './admin/steering.ts';
import { ClusterHistory, type HistoryStats } from './history/cluster-history.ts';
import { registerHistory } from './history/history-service.ts';
import { MasterService } from './master-service.ts';
import { MasterMembershipController } from './masters/master-membership-controller.ts';
import type { MasterCommand } from './metadata/master-commands.ts';
import { type MasterImage, MasterState } from './metadata/master-state.ts';
import { decodeMasterCommand, decodeMasterImage, encodeMasterImage } from './metadata/metadata-codec.ts';
import { encodeMasterSnapshot, receiveMasterSnapshot } from './metadata/metadata-snapshot.ts';
import { AuthRollout } from './nodes/auth-rollout.ts';
import { NodeReports } from './nodes/node-reports.ts';
import { Upgrade } from './nodes/upgrade.ts';
import { FirstRange } from './ranges/first-range.ts';
import { Founding, type FoundingPlan } from './ranges/founding.ts';
import { RangeOrders } from './ranges/range-orders.ts';
import { ReplicaIds } from './ranges/replica-ids.ts';
import type { Liveness } from './scheduling/cluster-model.ts';
import { beginTerm, type LeaderTerm } from './term/leader-term.ts';
import { type CommandDone, Proposals, refusal } from './term/proposals.ts';
import { RevisionIssuer } from './term/revision-issuer.ts';
import type { ScheduleCoordinator } from './term/schedule-coordinator.ts';

export interface MasterDeps {
  readonly nodeId: number;
  /** The id by which nodes identify the cluster to each other; joining nodes receive it. */
  readonly clusterId: string;
  /** The id by which clients and operators know the cluster. */
  readonly shownClusterId: string;
  /** The names of the founding members, if this node is one of them: no other node may join under them. */
  readonly founderNames?: readonly string[];
  /** How this node founds the cluster, if it is a founder. */
  readonly founding?: FoundingPlan | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: MasterOptions;
  /** Storage of the state between checkpoints. */
  readonly storage: { load(): Uint8Array | undefined; save(bytes: Uint8Array): void };
  /** Makes saved state durable. */
  readonly checkpoint: () => Promise<void>;
  /** The master has applied that it is no longer a member of the group. Called from within `apply`. */
  readonly onLeft: () => void;
  /** The version in force, once it is known and whenever it has risen. Called from within `apply`, too. */
  readonly onVersion?: (version: ClusterVersion) => void;
}

export interface MasterOptions {
  /**
   * The number of replicas of the first range, and of all others unless a setting says otherwise (admin/settings.ts).
   */
  readonly replicas: number;
  /** Routing keys at which the further ranges of a new cluster begin, in order; none by default. */
  readonly borders?: readonly Bytes[];
  /** Revisions that a leader reserves through the log at a time; at most this many are skipped at an election. */
  readonly revisionWindow: number;
  /** Whether ranges are repaired and balanced, unless a setting says otherwise; true by default. */
  readonly scheduling?: boolean;
  /** When ranges are split and merged automatically, unless settings say otherwise. */
  readonly ranges?: Partial<RangeSettings>;
}

/** The number in a cluster that was founded by enough nodes. */
const REPLICAS_USUAL = 3;
/** How often it looks whether it stood still (nodes/node-reports.ts NR1). */
const TICK_MS = 250;
/** The same while there is no range yet, and clients wait for the first one. */
const FOUNDING_TICK_MS = 100;
/** How often a leader cares for the cluster. */
const CARE_MS = 1_000;

/**
 * One replica of the master group: the cluster's metadata and, on the leader, the management of the cluster.
 *
 * M3. Only a leader that has applied an entry of its own term answers from its state.
 * M4. What nodes report (health, leaders) is kept only in the leader's memory; each new leader collects it again.
 * M5. Every proposal is answered once: with its result, or with an error if the leader changed before the result was
 *     known.
 * M6. Requests by administrators are answered only by a leader that is known to lead after the request arrived. A
 *     deposed leader that has not heard of its successor could report states or operators that the successor does not
 *     know.
 */
export class Master implements StateMachine {
  readonly #deps: MasterDeps;
  readonly state: MasterState;
  /** Instructions for the leaders of ranges. */
  readonly orders: RangeOrders;
  /** Ids for replicas that will be added. */
  readonly replicaIds: ReplicaIds;
  readonly #proposals: Proposals;
  readonly #founding: Founding;
  readonly #firstRange: FirstRange;
  readonly #reports = new NodeReports();
  readonly #history = new ClusterHistory();
  readonly #rollout: AuthRollout;
  readonly #upgrade: Upgrade;
  readonly #revisions: RevisionIssuer;
  readonly #masters: MasterMembershipController;
  readonly #health: ClusterHealth;
  readonly #service: MasterService;
  #group: Group | undefined;
  #schema: { readonly replicas: number; readonly schema: SettingsSchema } | undefined;
  #settings:
    | { readonly schema: SettingsSchema; readonly version: number; readonly values: ClusterSettings }
    | undefined;
  #leaderTerm = 0;
  #term: LeaderTerm | undefined;
  #leaderReplica = 0;
  #timer: Timer | undefined;
  #sinceCareMs = 0;

  constructor(deps: MasterDeps, conf: ConfState) {
    this.#deps = deps;
    this.state = new MasterState(conf);
    this.orders = new RangeOrders(deps.logger);
    this.replicaIds = new ReplicaIds(
      (count, done) =>
        this.#propose({ type: 'allocateReplicas', count }, (error, result) =>
          done(error, result?.type === 'allocateReplicas' ? result.first : undefined),
        ),
      () => this.state.nextReplicaId,
    );
    const stored = deps.storage.load();
    if (stored !== undefined) this.#restore(decodeMasterImage(stored));
    this.#proposals = new Proposals({ group: () => this.group, notLeader: () => this.#notLeader() });
    this.#masters = new MasterMembershipController({
      ...{ nodeId: deps.nodeId, logger: deps.logger, state: this.state, group: () => this.group },
      stateOf: (nodeId) => this.#stateOf(nodeId),
      settled: () => this.#isSettled(),
    });
    this.#upgrade = new Upgrade({
      state: this.state,
      heard: (nodeId) => this.#reports.last(nodeId),
      stateOf: (nodeId) => this.#stateOf(nodeId),
    });
    this.#founding = new Founding({
      ...{ logger: deps.logger, state: this.state, plan: deps.founding ?? { kind: 'open' } },
      planOf: (nodeId) => this.#reports.last(nodeId)?.founding,
      propose: (command, done) => this.#propose(command, done),
    });
    this.#firstRange = new FirstRange({
      ...{ clock: deps.clock, logger: deps.logger, state: this.state },
      ...{ replicas: deps.options.replicas, borders: deps.options.borders ?? [] },
      isUp: (nodeId) => this.#stateOf(nodeId) === 'up',
      founding: this.#founding,
      version: () => this.#upgrade.founding(),
      propose: (command, done) => this.#propose(command, done),
    });
    this.#revisions = new RevisionIssuer({
      group: () => this.group,
      bound: () => this.state.revisionBound,
      lift: (upTo, done) => this.#propose({ type: 'liftRevisions', upTo }, done),
      notLeader: () => this.#notLeader(),
      refusal,
      window: deps.options.revisionWindow,
    });
    this.#rollout = new AuthRollout({
      ...{ state: this.state, reports: this.#reports },
      isSilent: (nodeId) => this.#isSilent(nodeId),
      notLeader: () => this.#notLeader(),
    });
    this.#health = this.#newHealth();
    this.#service = this.#newService();
  }

  attach(group: Group): void {
    this.#group = group;
  }

  get group(): Group {
    assert(this.#group !== undefined, 'the master is attached to its group before it serves');
    return this.#group;
  }

  /** The leader's management of the cluster; undefined while it does not lead. */
  get care(): ScheduleCoordinator | undefined {
    return this.#term?.care;
  }

  /** The number of commands that are not answered. */
  get proposalsInFlight(): number {
    return this.#proposals.inFlight;
  }

  /** The size of what it remembers as leader. */
  get historyStats(): HistoryStats {
    return this.#history.stats;
  }

  get leading(): boolean {
    return this.#leaderTerm !== 0 && this.group.ready;
  }

  /** The leader as far as this master knows; 0: none. */
  get leader(): number {
    return this.leading ? this.#deps.nodeId : this.#leaderReplica;
  }

  view(): ClusterView {
    return this.#service.view();
  }

  // -------------------------------------------------------------------------------------------- state machine

  apply(entries: readonly Entry[], conf: ConfState): void {
    if (conf !== this.state.conf) this.state.reconfigure(conf);
    for (const entry of entries) this.#applyEntry(entry);
    if (!isMember(conf, this.#deps.nodeId)) this.#deps.onLeft();
  }

  /**
   * Only learners are removed, as in ranges (docs/decisions/0013), and no former master returns (masters/plan.ts MS3).
   */
  admitsConf({ steps }: ConfChange): boolean {
    const { conf, formerMasters } = this.state;
    return steps.every(({ type, replica }) =>
      type === 'remove' ? !isVoter(conf, replica) : !formerMasters.includes(replica),
    );
  }

  #applyEntry(entry: Entry): void {
    this.state.applied = { index: entry.index, term: entry.term };
    const mine = this.#proposals.takeFor(entry);
    if (entry.type === 'conf' && decodeConfChange(entry.data).transition === 'forced') this.state.goOnAlone();
    if (entry.type === 'conf' || entry.data.length === 0) return;
    try {
      const result = this.state.apply(decodeMasterCommand(entry.data));
      if (result.type === 'finalizeUpgrade') this.#deps.onVersion?.(this.state.clusterVersion);
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
    this.#reports.termBegan(this.#nowMs);
    this.#health.termBegan();
    this.#history.termBegan();
    this.orders.termBegan(change.term);
    this.replicaIds.termBegan(change.term);
    this.#proposals.loseAll(); // M5
    this.#revisions.roleChanged();
    this.#rollout.roleChanged();
    this.#term = term === 0 ? undefined : this.#newTerm(term);
    this.#timer?.cancel();
    if (this.#term === undefined) return;
    this.#arm();
    this.orders.directBy(this.#term.care);
    this.#deps.logger.info({ term }, 'this node now leads the master group');
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
      this.#restore(image);
      this.stage();
      await this.#deps.checkpoint();
    });
  }

  #restore(image: MasterImage): void {
    this.state.restore(image);
    this.#deps.onVersion?.(image.clusterVersion);
  }

  /** Called when a checkpoint begins. */
  stage(): void {
    this.#deps.storage.save(encodeMasterImage(this.state.image()));
  }

  // -------------------------------------------------------------------------------------------- service

  register(registry: RpcRegistry): void {
    this.#admin().register(registry);
    registerSteering(registry, (act) =>
      this.#confirm((error) => act(error ?? this.#term?.actions ?? this.#notLeader())),
    );
    this.#service.register(registry);
    registerHistory(registry, { ...this.#deps, history: this.#history, confirm: (done) => this.#confirm(done) });
    registerAuth(registry, {
      ...{ logger: this.#deps.logger, state: this.state, rollout: this.#rollout },
      leading: () => this.leading,
      notLeader: () => this.#notLeader(),
      propose: (command, done) => this.#propose(command, done),
    });
  }

  #newService(): MasterService {
    const { nodeId, clusterId, shownClusterId, founderNames = [], clock, logger } = this.#deps;
    return new MasterService({
      ...{ nodeId, clusterId, shownClusterId, founderNames, clock, logger, state: this.state, orders: this.orders },
      ...{ reports: this.#reports, revisions: this.#revisions, firstRange: this.#firstRange, health: this.#health },
      ...{ rollout: this.#rollout, founding: this.#founding, history: this.#history },
      settings: () => this.settings,
      leading: () => this.leading,
      leader: () => this.leader,
      term: () => this.#leaderTerm,
      care: () => this.care,
      stateOf: (id) => this.#stateOf(id),
      isSilent: (id) => this.#isSilent(id),
      notLeader: () => this.#notLeader(),
      confirm: (done) => this.#confirm(done),
      propose: (command, done) => this.#propose(command, done),
    });
  }

  #admin(): MasterAdmin {
    const { nodeId, shownClusterId } = this.#deps;
    return new MasterAdmin({
      nodeId,
      clusterId: shownClusterId,
      settings: () => this.#settingsSchema,
      state: this.state,
      confirm: (done) => this.#confirm(done),
      leadingMs: () => this.#reports.leadingMs(this.#nowMs),
      knowledge: () => this.#knowledge(),
      health: this.#health,
      upgrade: this.#upgrade,
      propose: (command, done) => this.#propose(command, (error) => done(error)),
    });
  }

  #newHealth(): ClusterHealth {
    const { clock, options } = this.#deps;
    return new ClusterHealth({
      clock,
      knowledge: () => this.#knowledge(),
      replicas: () => this.settings.replicas,
      firstReplicas: options.replicas,
      unheard: (id) => this.#reports.last(id) === undefined && !this.#isSilent(id),
      more: () => [...(this.#term?.care.conditions() ?? []), ...this.#upgrade.conditions()],
    });
  }

  #newTerm(term: number): LeaderTerm {
    const { clock, logger } = this.#deps;
    return beginTerm({
      ...{ term, clock, logger, state: this.state, reports: this.#reports, masters: this.#masters },
      settings: () => this.settings,
      nextReplicaId: () => this.replicaIds.next(),
      propose: (command, done) => this.#propose(command, (error) => done(error)),
    });
  }

  get #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  #stateOf(nodeId: number): Liveness {
    return this.#reports.stateOf(nodeId, this.#nowMs, this.settings);
  }

  #isSilent(nodeId: number): boolean {
    return this.#reports.isSilent(nodeId, this.#nowMs, this.settings);
  }

  /** The settings in force. */
  get settings(): ClusterSettings {
    const { version, texts } = this.state.settings;
    const schema = this.#settingsSchema;
    if (this.#settings?.version !== version || this.#settings.schema !== schema) {
      this.#settings = { schema, version, values: schema.effective(texts) };
    }
    return this.#settings.values;
  }

  /**
   * By default a range has at most as many replicas as nodes founded the cluster; a master that joined later finds that
   * number in the state.
   */
  get #settingsSchema(): SettingsSchema {
    const { options } = this.#deps;
    const replicas = Math.max(1, Math.min(options.replicas, this.state.mastersWanted));
    if (this.#schema?.replicas !== replicas) {
      this.#schema = { replicas, schema: new SettingsSchema({ ...options, replicas }) };
    }
    return this.#schema.schema;
  }

  #knowledge(): Knowledge {
    const stateOf = (nodeId: number) => this.#stateOf(nodeId);
    const dutyOf = (nodeId: number) => this.state.dutyOf(nodeId);
    const wallMs = this.#deps.clock.wallMs();
    const mergedInto = (rangeId: number) => this.state.mergedInto(rangeId);
    const heard = this.#reports.all(this.#nowMs);
    const isMaster = (nodeId: number) => isMember(this.state.conf, nodeId);
    const [nodes, ranges] = [this.state.nodes(), this.state.ranges()];
    const isRestoring = this.state.settings.texts.has(RESTORE_NOTE);
    return { nodes, ranges, heard, stateOf, dutyOf, isMaster, mergedInto, wallMs, isRestoring };
  }

  /** The replica ids of the master group are node ids. */
  #notLeader(): ServiceError {
    const leaderNode = this.#leaderReplica === this.#deps.nodeId ? 0 : this.#leaderReplica;
    const leaderAddress = this.state.node(leaderNode)?.peerAddress ?? '';
    return new ServiceError('NOT_LEADER', 'this node does not lead the master group', {
      details: { leaderNode, leaderAddress },
    });
  }

  /** M6. */
  #confirm(done: (error: ServiceError | undefined) => void): void {
    if (!this.leading) return done(this.#notLeader());
    this.group.leaseRead((refused) => {
      if (refused !== undefined) done(refusal(refused) ?? this.#notLeader());
      else done(this.leading ? undefined : this.#notLeader());
    });
  }

  #propose(command: MasterCommand, done: CommandDone): void {
    this.#proposals.propose(command, done);
  }

  // -------------------------------------------------------------------------------------------- care

  /** Only for a leader: the others have nothing to do. */
  #arm(): void {
    const delayMs = this.state.ranges().length === 0 ? FOUNDING_TICK_MS : TICK_MS;
    this.#timer = this.#deps.clock.setTimer(delayMs, () => {
      this.#reports.looked(this.#nowMs);
      this.#rollout.look();
      this.#sinceCareMs += delayMs;
      if (this.leading) this.#firstRange.look();
      if (this.#sinceCareMs >= CARE_MS) {
        this.#sinceCareMs = 0;
        if (this.leading) this.#care();
      }
      this.#arm();
    });
  }

  /**
   * Earlier programs assumed another default number of replicas on masters that had not founded the cluster, unless it
   * was set.
   */
  #isSettled(): boolean {
    const { replicas } = this.#deps.options;
    const { version, texts } = this.state.settings;
    if (replicas === REPLICAS_USUAL || texts.has('replicas')) return true;
    this.#propose({ type: 'changeSetting', expected: version, name: 'replicas', text: String(replicas) }, () => {});
    return false;
  }

  #care(): void {
    const care = this.#term?.care;
    care?.tick();
    if (care?.restsBecause === undefined) this.#masters.tick();
  }

  /** From now on it answers that it does not lead, and no caller waits for it. */
  stop(): void {
    this.#timer?.cancel();
    this.#leaderTerm = 0;
    this.#leaderReplica = 0;
    this.#proposals.loseAll();
    this.#rollout.roleChanged();
  }
}
