import { Authenticator, type KnownAuth, NO_AUDIT, PasswordHasher, RecentAudit } from '@remora/auth';
import { addressKey, BUILD_VERSIONS, type Engine, formatAddress } from '@remora/base';
import {
  type Checkpointer,
  discardUnfinishedSnapshots,
  RESIDENT_SPANS,
  type RevisionDrawer,
  type Store,
} from '@remora/dataserver';
import { Admission, type BackendInFlight, type RangeBackend } from '@remora/gateway';
import { ClockComparison, type FoundingPlan, type Master, MasterFinder, type NodeAgent } from '@remora/master';
import {
  type ClosableDialer,
  type ClusterView,
  createRpcRegistry,
  type NodeDescriptor,
  type RpcRegistry,
} from '@remora/protocol';
import {
  type GroupId,
  type GroupLog,
  HOST_DEFAULTS,
  type HostOptions,
  type NodeRaftHost,
  openGroupLog,
  type RecoveredGroup,
} from '@remora/raft';
import { CommandError } from '../exit-codes.ts';
import { advertised, type NodeOptions } from '../node-options.ts';
import { serveActivity } from './activity/activity-service.ts';
import { MinuteReporter } from './activity/minute-reporter.ts';
import { RateMeter } from './activity/rate-meter.ts';
import { type AgentParts, createAgent } from './agent.ts';
import { serveAudit } from './audit-service.ts';
import { Closers } from './closers.ts';
import { AddressTeller } from './cluster/address-teller.ts';
import { type Founders, recordedFounding, shownClusterId } from './cluster/cluster-identity.ts';
import { ExposureCheck } from './cluster/exposure-check.ts';
import { foundingPlan, isFresh } from './cluster/founding.ts';
import { joinCluster } from './cluster/join.ts';
import { keptUsers } from './cluster/kept-users.ts';
import { type AddressHints, KnownCluster } from './cluster/known-cluster.ts';
import { KnownVersion } from './cluster/known-version.ts';
import { PeerNetwork, type PeerNetworkDeps } from './cluster/peer-network.ts';
import { PeerRefusalPolicy } from './cluster/peer-refusal-policy.ts';
import { serveRecovery } from './cluster/recovery-service.ts';
import { createBackend, createRangeBackend } from './gateway-backend.ts';
import { NodeHealth } from './health.ts';
import { serveLogLevel } from './log-level-service.ts';
import type { MasterReplica } from './master-replica.ts';
import type { NodePlatform, Peers } from './platform.ts';
import { raftOptions } from './raft-options.ts';
import {
  createCheckpointer,
  createDrawer,
  createMasterReplica,
  createStore,
  handOver,
  type StateDeps,
  type StoreParts,
  splittingPorts,
} from './roles.ts';
import type { RunningNode } from './running-node.ts';
import { hostTimes } from './time-metrics.ts';

/** How long transactions over ranges may take to end once no client is served any more. */
const TRANSACTIONS_GRACE_MS = 1_000;

/** Assembles a node from its roles and runs it; closes the platform if that fails. */
export async function assembleNode(
  options: NodeOptions,
  platform: NodePlatform,
  signal: AbortSignal,
): Promise<AssembledNode> {
  const node = new Node({
    ...platform,
    platform,
    options,
    founders: recordedFounding(platform.records.identity),
    signal,
  });
  try {
    await node.start();
    return node;
  } catch (error) {
    const { logger } = platform;
    await node.stop().catch((cause: unknown) => logger.warn({ error: String(cause) }, 'could not clean up'));
    throw error;
  }
}

/** The parts that do the work of a node, for inspection. */
export interface NodeRoles {
  readonly host: NodeRaftHost;
  readonly engine: Engine;
  readonly checkpointer: Checkpointer;
  readonly master: Master | undefined;
  readonly store: Store | undefined;
  /** The gateway's work in flight. */
  readonly inFlight: () => Readonly<BackendInFlight>;
}

export interface AssembledNode extends Omit<RunningNode, 'reload'> {
  /** Absent until the node has reached this point of its start. */
  readonly roles: NodeRoles | undefined;
  /** Takes the addresses of other nodes from these options from now on. */
  hint(options: AddressHints): void;
}

interface NodeParts extends Pick<NodePlatform, 'clock' | 'random' | 'logger' | 'records'> {
  readonly options: NodeOptions;
  readonly platform: NodePlatform;
  readonly founders: Founders | undefined;
  /** Aborted when the process should end while it is still starting. */
  readonly signal: AbortSignal;
}

/** What the roles of a node run on. */
interface Base extends StateDeps {
  readonly log: GroupLog;
  readonly registry: PeerNetworkDeps['registry'];
  readonly dialer: ClosableDialer;
  readonly peers: Peers;
}

interface Services extends Omit<ReportedToMasters, 'onFirstView'> {
  readonly hasher: PasswordHasher;
  readonly admission: Admission;
  readonly ranges: RangeBackend;
  readonly audit: RecentAudit;
}

type ReportedToMasters = Pick<
  AgentParts,
  'finder' | 'store' | 'seat' | 'health' | 'founding' | 'activity' | 'onFirstView'
>;

/**
 * One process of a cluster.
 *
 * The parts start from the disk outwards, so that no part is called before it can answer; they stop in the opposite
 * order.
 */
class Node implements AssembledNode {
  readonly #parts: NodeParts;
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => {};
  #nodeId = 0;
  #clusterId = '';
  #agent: NodeAgent | undefined;
  readonly #cluster: KnownCluster;
  /** Users and roles. */
  readonly #auth: KnownAuth;
  readonly #versions: KnownVersion;
  readonly #exposure: ExposureCheck;
  readonly #refusals: PeerRefusalPolicy;
  #roles: NodeRoles | undefined;
  #health: NodeHealth | undefined;
  readonly #clocks = new ClockComparison();
  readonly #closers = new Closers();
  /** Transfers the leaderships of this node to others. */
  #handOverAll: () => Promise<void> = async () => {};
  #stopping: Promise<void> | undefined;

  constructor(parts: NodeParts) {
    this.#parts = parts;
    this.#cluster = new KnownCluster({
      ...parts,
      masterKnows: (nodeId) => this.#roles?.master?.state.named(nodeId),
    });
    this.#versions = new KnownVersion({
      ...parts,
      builds: parts.platform.versions ?? BUILD_VERSIONS,
      onUnfit: (error) => this.#fail(error),
    });
    this.#auth = keptUsers({ ...parts, hurry: () => this.#agent?.hurry() });
    this.#exposure = new ExposureCheck({
      ...{ ...parts, known: this.#auth, isNew: isFresh(parts.records) },
      isFounded: () => this.#cluster.isFounded,
      onRefused: (error) => this.#fail(error),
    });
    this.#refusals = new PeerRefusalPolicy({
      ...parts,
      isMember: () => this.#cluster.hasTaken(this.#nodeId),
      onFinal: (error) => this.#fail(error),
    });
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject;
    });
    // The caller watches `failed`; a failure before that is reported by `start`.
    this.failed.catch(() => {});
    this.#closers.add('data directory', () => parts.platform.records.close());
  }

  get roles(): NodeRoles | undefined {
    return this.#roles;
  }

  async start(): Promise<void> {
    const { logger } = this.#parts;
    this.#versions.check();
    const descriptor = await this.#identify();
    const base = await this.#startBase(descriptor);
    const services = await this.#createServices(base);
    await this.#meetNodes(descriptor, base, services);
    await this.#meetClients(base, services);
    const { roles } = descriptor;
    logger.info({ nodeId: this.#nodeId, cluster: shownClusterId(this.#clusterId), roles }, 'node is running');
  }

  /** Opens the disk, and starts what Raft groups and calls between nodes run on. */
  async #startBase(descriptor: NodeDescriptor): Promise<Base> {
    let host: NodeRaftHost | undefined;
    await discardUnfinishedSnapshots(this.#parts.platform.stagingDisk);
    const { log, recovered } = await this.#openLog((error) => {
      this.#fail(error);
      host?.logFailed(error);
    });
    const engine = await this.#openEngine(() => host?.logDurable() ?? Promise.resolve());
    const checkpointer = createCheckpointer(engine, this.#parts);
    const registry = createRpcRegistry();
    const { dialer, peers } = this.#network(descriptor, registry);
    host = this.#host(log, peers);
    this.#closers.add('calls to peers', () => dialer.close());
    return { log, recovered, engine, checkpointer, registry, dialer, peers, host };
  }

  /** Creates the roles, and what they answer other nodes. Nobody reaches them yet. */
  async #createServices(base: Base): Promise<Services> {
    const { options, platform, clock, logger, founders } = this.#parts;
    const { log, recovered, engine, checkpointer, registry, dialer, host } = base;
    const state: StateDeps = { host, engine, checkpointer, recovered };
    const hasher = this.#passwordHasher();
    const founding = founders && (await foundingPlan({ ...this.#parts, hasher }));
    const seat = this.#masterReplica(state, registry, founding);
    const finder = this.#finder(dialer, seat);
    const health = this.#newHealth(host, finder);
    const drawer = this.#drawer(finder);
    const admission = new Admission({ clock, logger }, options);
    const view = (): ClusterView => this.#currentView();
    const nodeId = this.#nodeId;
    const ranges = createRangeBackend({ ...this.#parts, admission, nodeId, dialer, finder, drawer, view });
    const store = this.#store(state, {
      ...{ drawer, dialer, splitting: splittingPorts(finder), others: ranges, transactionPeers: ranges.peers },
      knownRanges: () => view().ranges,
      authRevision: () => this.#auth.revision,
      versions: this.#versions,
    });
    store?.register(registry);
    const { electionTicks } = { ...HOST_DEFAULTS, ...this.#hostOptions() };
    serveRecovery(registry, { nodeId, electionTicks, master: () => seat.master, store: () => store });
    serveLogLevel(registry, { logger, logLevel: platform.logLevel });
    const activity = this.#activity(store);
    serveActivity(registry, activity);
    const isAuthenticating = (): boolean => this.#auth.lastKnown?.enabled === true;
    const audit = new RecentAudit({ log: platform.audit ?? NO_AUDIT, isAuthenticating, clock });
    serveAudit(registry, audit);
    log.forgetRecovered();
    this.#roles = {
      ...{ host, engine, checkpointer, store, inFlight: () => ranges.inFlight() },
      get master() {
        return seat.master;
      },
    };
    return { hasher, founding, seat, finder, health, admission, ranges, store, activity, audit };
  }

  /** From now on other nodes reach this one, and it reports to the masters. */
  async #meetNodes(descriptor: NodeDescriptor, base: Base, services: Services): Promise<void> {
    const { clock } = this.#parts;
    const { registry, dialer, peers } = base;
    const { seat, store, ranges } = services;
    await peers.listen(registry);
    this.#closers.add('peer port', () => peers.close());
    this.#handOverAll = () => {
      const groups = [...(store?.replicas() ?? [])].map((replica) => replica.group);
      return handOver(seat.master === undefined ? groups : [seat.master.group, ...groups], clock);
    };
    this.#closers.add('leaderships returned by their previous holders', () => this.#handOverAll());
    const teller = new AddressTeller({ nodeId: this.#nodeId, clock, dialer });
    this.#closers.add('calls to all nodes', async () => teller.stop());
    const hasMoved = this.#cluster.hasMoved(descriptor);
    const onFirstView = (view: ClusterView): void => {
      if (hasMoved) teller.tell(view);
      if (this.#cluster.isFounded) this.#sayIgnored();
    };
    this.#startAgent(descriptor, { ...services, onFirstView });
    this.#closers.add('transactions', () => ranges.transactionsEnded(TRANSACTIONS_GRACE_MS));
  }

  /** Opens the ports for clients and operators. */
  async #meetClients({ dialer, host, log, engine }: Base, services: Services): Promise<void> {
    const { options, platform, clock, random, logger } = this.#parts;
    const { hasher, seat, finder, health, admission, ranges, store, audit } = services;
    const known = this.#auth;
    const entry = platform.openEntry({
      ...{ options, clock, random, logger, admission, known, audit, host, log, engine, store, dialer, health },
      backend: createBackend({ ...this.#parts, ranges, known, audit, admission }),
      authenticator: new Authenticator({ known, hasher, clock, random, logger, audit }),
      master: finder,
      inFlight: () => ranges.inFlight(),
      lookupStats: ranges.lookupStats,
      space: () => platform.space(),
      nodeId: this.#nodeId,
      shownClusterId: shownClusterId(this.#clusterId),
      versions: this.#versions,
      historyStats: () => seat.master?.historyStats,
      nodes: () => this.#cluster.nodes,
    });
    this.#closers.add('entry', () => entry.stop());
    // While clients are served: each of the two delays them a little, and both at once would add up.
    this.#closers.add('leaderships', () => this.#handOverAll());
    await entry.start();
  }

  hint(options: AddressHints): void {
    this.#cluster.hint(options);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const { clock, logger, options } = this.#parts;
    this.#health?.stopping();
    if (this.#roles !== undefined && options.drainDelay > 0) {
      logger.info({ delayMs: options.drainDelay }, 'draining: this node is not ready any more, and still serves');
      await this.#handOverAll();
      await new Promise<void>((resolve) => clock.setTimer(options.drainDelay, resolve));
    }
    await this.#closers.close(logger);
    logger.info({}, 'node has stopped');
  }

  // -------------------------------------------------------------------------------------------- identity

  /** Returns this node's identity: from its data directory, or from the cluster that it joins now. */
  async #identify(): Promise<NodeDescriptor> {
    const { options, platform, records, founders } = this.#parts;
    const addresses = advertised(options);
    const base = {
      name: options.name,
      incarnation: records.identity.incarnation,
      roles: options.roles,
      peerAddress: formatAddress(addresses.peer),
      clientAddress: formatAddress(addresses.client),
      httpAddress: formatAddress(addresses.http),
      version: platform.version,
    };
    let { clusterId, nodeId } = records.identity;
    if (clusterId === undefined || nodeId === undefined) {
      if (founders !== undefined) throw new CommandError('internal', 'a founder knows its id from its data directory');
      ({ clusterId, nodeId } = await joinCluster(
        options,
        { ...base, nodeId: 0 },
        { ...this.#parts, versions: this.#versions },
      ));
      this.#refusals.joined();
      await records.assign({ clusterId, nodeId });
    }
    this.#clusterId = clusterId;
    this.#nodeId = nodeId;
    return { ...base, nodeId };
  }

  #currentView(): ClusterView {
    // Runs for each answer to an etcd client: the id is hashed only while there is no view.
    const { view } = this.#cluster;
    if (view !== undefined) return view;
    return { clusterId: shownClusterId(this.#clusterId), nodes: [], ranges: [], leaders: [], masterLeader: 0 };
  }

  // -------------------------------------------------------------------------------------------- disk

  async #openLog(
    onFailure: (error: Error) => void,
  ): Promise<{ log: GroupLog; recovered: Map<GroupId, RecoveredGroup> }> {
    const { platform, logger } = this.#parts;
    const log = await openGroupLog({
      disk: platform.logDisk,
      dir: 'log',
      logger,
      onFailure,
      ...(platform.tuning?.log === undefined ? {} : { options: platform.tuning.log }),
    });
    this.#closers.add('log', () => log.close());
    return { log, recovered: new Map(log.recovered()) };
  }

  async #openEngine(logDurable: () => Promise<void>): Promise<Engine> {
    const { platform, logger, clock } = this.#parts;
    const engine = await platform.openEngine({
      options: { resident: RESIDENT_SPANS },
      clock,
      logger,
      logDurable,
      onFailure: (error) => this.#fail(error),
    });
    this.#closers.add('engine', () => engine.close());
    return engine;
  }

  // -------------------------------------------------------------------------------------------- between nodes

  #network(self: NodeDescriptor, registry: PeerNetworkDeps['registry']): PeerNetwork {
    return new PeerNetwork({
      ...{ ...this.#parts, self, registry, clusterId: this.#clusterId },
      ...{ versions: this.#versions, cluster: this.#cluster, refusals: this.#refusals },
      askMasters: () => this.#agent?.hurry(),
    });
  }

  #host(log: GroupLog, peers: Peers): NodeRaftHost {
    const { clock, random, logger, platform } = this.#parts;
    const host = platform.createHost({
      nodeId: this.#nodeId,
      clock,
      random,
      log,
      transport: peers.transport,
      options: this.#hostOptions(),
      times: platform.metrics && hostTimes(platform.metrics),
      logger,
      onFatal: (error) => this.#fail(error),
      onSilence: ({ groupId }) => this.#roles?.store?.heartbeat.silent(groupId),
      onNonMember: ({ groupId }, stranger) => this.#roles?.store?.nonMemberHeard(groupId, stranger),
    });
    host.start();
    this.#closers.add('raft', () => host.stop());
    return host;
  }

  #hostOptions(): Partial<HostOptions> {
    const { options, platform } = this.#parts;
    return { ...raftOptions(options), ...platform.tuning?.host };
  }

  // -------------------------------------------------------------------------------------------- roles

  #masterReplica(deps: StateDeps, registry: RpcRegistry, founding: FoundingPlan | undefined): MasterReplica {
    const seat = createMasterReplica({
      ...{ ...this.#parts, ...deps, registry, founding },
      nodeId: this.#nodeId,
      clusterId: this.#clusterId,
      onVersion: (version) => this.#versions.learn(version),
      onFailure: (error) => this.#fail(error),
    });
    this.#closers.add('master', () => seat.stop());
    return seat;
  }

  #passwordHasher(): PasswordHasher {
    const hasher = new PasswordHasher(() => this.#parts.platform.passwordThread(), addressKey);
    this.#closers.add('passwords', async () => hasher.close());
    return hasher;
  }

  #drawer(finder: MasterFinder): RevisionDrawer {
    const drawer = createDrawer(finder, this.#parts);
    this.#closers.add('revisions', () => drawer.stop());
    return drawer;
  }

  #store(deps: StateDeps, ports: Omit<StoreParts, 'platform' | 'onFailure'>): Store | undefined {
    this.#closers.add('last checkpoint', () => deps.checkpointer.stop());
    if (!this.#parts.options.roles.includes('data')) return undefined;
    const store = createStore({
      ...this.#parts,
      ...deps,
      ...ports,
      nodeId: this.#nodeId,
      onFailure: (error) => this.#fail(error),
    });
    this.#closers.add('ranges', () => store.stop());
    return store;
  }

  #newHealth(host: NodeRaftHost, finder: MasterFinder): NodeHealth {
    const { clock, founders, options, platform } = this.#parts;
    this.#health = new NodeHealth({
      exposure: this.#exposure,
      ...{ clock, founders, nodeId: this.#nodeId, name: options.name, cluster: this.#cluster },
      space: () => platform.space(),
      reserveBytes: options.diskReserve,
      logHangs: () => host.logHangs,
      certificates: platform.certificates,
      failedLookups: platform.failedLookups,
      clockDifference: () => this.#clocks.difference,
      mastersSilence: () => finder.silence,
    });
    return this.#health;
  }

  /** Of the first answer of the masters in this life. */
  #sayIgnored(): void {
    const { initialRootPasswordFile: file } = this.#parts.options;
    if (file === undefined) return;
    const message = 'the cluster was founded before; --initial-root-password-file has no effect any more';
    this.#parts.logger.info({ file }, message);
  }

  #finder(dialer: ClosableDialer, seat: MasterReplica): MasterFinder {
    const { options, clock } = this.#parts;
    return new MasterFinder({
      ...{ clock, dialer },
      seeds: options.join.map(formatAddress),
      masters: this.#cluster.firstIds,
      reachable: (nodeId) => this.#cluster.addresses.next(nodeId) !== undefined,
      onLeaderAddress: (nodeId, address) => this.#cluster.addresses.passedOn(nodeId, address),
      leaderHere: () => seat.master?.leader ?? 0,
    });
  }

  /** What this node counts, for the history of the masters' leader. */
  #activity(store: Store | undefined): MinuteReporter {
    const { clock, platform } = this.#parts;
    const { reading = () => undefined } = platform;
    return new MinuteReporter({ clock, meter: new RateMeter({ clock, reading }), heat: () => store?.heat.take() });
  }

  #startAgent(descriptor: NodeDescriptor, parts: ReportedToMasters): void {
    const agent = createAgent(descriptor, {
      ...{ ...this.#parts, ...parts, cluster: this.#cluster, auth: this.#auth, versions: this.#versions },
      ...{ exposure: this.#exposure, clocks: this.#clocks },
      onFailure: (error) => this.#fail(error),
    });
    agent.start();
    this.#agent = agent;
    this.#closers.add('agent', () => agent.stop());
  }
}
