import { join } from 'node:path';
import {
  type Clock,
  type Engine,
  formatAddress,
  type Logger,
  nodeClock,
  nodeDisk,
  nodeRandom,
  type Random,
  ServiceError,
} from '@remora/base';
import { createPinoLogger } from '@remora/base/node';
import { Checkpointer, openLevelEngine, RESIDENT_SPANS, type Store } from '@remora/dataserver';
import { RangeBackend } from '@remora/gateway';
import { type Master, NodeAgent } from '@remora/master';
import {
  type ClosableDialer,
  type ClusterView,
  createRpcDialer,
  createRpcRegistry,
  createRpcService,
  type NodeDescriptor,
  type NodeTask,
  type PeerServer,
  type RpcService,
  startPeerServer,
} from '@remora/protocol';
import {
  createGrpcTransport,
  createRaftHost,
  type GroupId,
  type GroupLog,
  type GrpcTransport,
  grpcServerOptions,
  type NodeRaftHost,
  openGroupLog,
  type RecoveredGroup,
} from '@remora/raft';
import { CommandError } from '../exit-codes.ts';
import { advertised, type NodeOptions } from '../node-options.ts';
import { VERSION } from '../version.ts';
import { type Founders, foundersOf } from './cluster-identity.ts';
import { type DataDir, openDataDir } from './data-dir.ts';
import { Entry } from './entry.ts';
import { joinCluster } from './join.ts';
import { createMaster, createStore, handOver, type StateDeps } from './roles.ts';
import type { RunningNode } from './running-node.ts';

/** Length of one Raft tick: heartbeats and election timeouts are whole numbers of it. */
const TICK_MS = 25;

/** Assembles a node from its roles and runs it. */
export async function startNode(options: NodeOptions, signal: AbortSignal): Promise<RunningNode> {
  const clock = nodeClock();
  const random = nodeRandom();
  const logger = createPinoLogger({ level: options.logLevel, pretty: options.logFormat === 'pretty' }).child({
    node: options.name,
  });
  const founders = foundersOf(options);
  const dataDir = await openDataDir({
    dir: options.dataDir,
    name: options.name,
    random,
    ...(founders === undefined ? {} : { clusterId: founders.clusterId, nodeId: founders.ownNodeId }),
  });
  const node = new Node({ options, clock, random, logger, dataDir, founders, signal });
  try {
    await node.start();
    return node;
  } catch (error) {
    await node.stop().catch((cause: unknown) => logger.warn({ error: String(cause) }, 'could not clean up'));
    throw error;
  }
}

interface NodeParts {
  readonly options: NodeOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly dataDir: DataDir;
  readonly founders: Founders | undefined;
  /** Aborted when the process is to end while it is still starting. */
  readonly signal: AbortSignal;
}

/**
 * One process of a cluster.
 *
 * Starting goes from the disk outwards, so that nothing is asked before it can answer; stopping goes the other way.
 */
class Node implements RunningNode {
  readonly #parts: NodeParts;
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => {};
  #nodeId = 0;
  #clusterId = '';
  #view: ClusterView | undefined;
  /** What was started, in order; stopped from the end. */
  readonly #closers: { readonly name: string; readonly close: () => unknown }[] = [];
  #stopping: Promise<void> | undefined;

  constructor(parts: NodeParts) {
    this.#parts = parts;
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject;
    });
    // Whoever runs the node watches `failed`; a failure before that is reported by `start`.
    this.failed.catch(() => {});
    this.#onStop('data directory', () => parts.dataDir.close());
  }

  #onStop(name: string, close: () => unknown): void {
    this.#closers.push({ name, close });
  }

  async start(): Promise<void> {
    const { options, logger } = this.#parts;
    const descriptor = await this.#identify();
    const { log, recovered } = await this.#openLog();
    let host: NodeRaftHost | undefined;
    const engine = await this.#openEngine(() => host?.logDurable() ?? Promise.resolve());
    const checkpointer = this.#checkpointer(engine);
    const registry = createRpcRegistry();
    const raft = this.#transport(descriptor);
    host = this.#host(log, raft);
    const dialer = this.#dialer(descriptor, registry);
    const master = this.#master({ host, engine, checkpointer, recovered });
    master?.register(registry);
    const store = this.#store({ host, engine, checkpointer, recovered });
    store?.register(registry);
    log.forgetRecovered();
    const backend = new RangeBackend({ ...this.#parts, nodeId: this.#nodeId, dialer, view: () => this.#currentView() });
    const rpc = createRpcService({
      registry,
      clock: this.#parts.clock,
      logger,
      identity: () => this.#identity(descriptor),
      acceptPeer: (peer) => (peer.nodeId === 0 ? undefined : this.#parts.dataDir.checkPeer(peer)),
    });
    await this.#listenForPeers(raft, rpc);
    this.#onStop('leaderships', () => {
      const ranges = [...(store?.replicas() ?? [])].map((replica) => replica.group);
      return handOver(master === undefined ? ranges : [master.group, ...ranges], this.#parts.clock);
    });
    this.#agent(descriptor, dialer, store);
    const entry = new Entry({
      ...this.#parts,
      nodeId: this.#nodeId,
      clusterId: this.#clusterId,
      backend,
      host,
      log,
      engine,
      store,
      view: () => this.#view,
    });
    this.#onStop('entry', () => entry.stop());
    await entry.start();
    logger.info({ nodeId: this.#nodeId, cluster: this.#clusterId, roles: options.roles }, 'node is running');
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const { logger } = this.#parts;
    for (const { name, close } of this.#closers.reverse()) {
      try {
        await close();
      } catch (error) {
        logger.warn({ part: name, error: String(error) }, 'could not stop a part');
      }
    }
    logger.info({}, 'node has stopped');
  }

  // -------------------------------------------------------------------------------------------- identity

  /** Who this node is: by its options when it founds the cluster, otherwise as the cluster says. */
  async #identify(): Promise<NodeDescriptor> {
    const { options, dataDir, founders } = this.#parts;
    const addresses = advertised(options);
    const base = {
      name: options.name,
      incarnation: dataDir.identity.incarnation,
      roles: options.roles,
      peerAddress: formatAddress(addresses.peer),
      clientAddress: formatAddress(addresses.client),
      httpAddress: formatAddress(addresses.http),
      version: VERSION,
    };
    let { clusterId, nodeId } = dataDir.identity;
    if (clusterId === undefined || nodeId === undefined) {
      if (founders !== undefined) throw new CommandError('internal', 'a founder knows its id from its options');
      ({ clusterId, nodeId } = await joinCluster(options, { ...base, nodeId: 0 }, this.#parts));
      await dataDir.assign({ clusterId, nodeId });
    }
    this.#clusterId = clusterId;
    this.#nodeId = nodeId;
    return { ...base, nodeId };
  }

  #identity({ incarnation }: NodeDescriptor) {
    return { clusterId: this.#clusterId, nodeId: this.#nodeId, incarnation };
  }

  #address(nodeId: number): string | undefined {
    const known = this.#view?.nodes.find((node) => node.descriptor.nodeId === nodeId)?.descriptor.peerAddress;
    if (known !== undefined) return known;
    const founder = this.#parts.founders?.members[nodeId - 1];
    return founder === undefined ? undefined : formatAddress(founder.peer);
  }

  #currentView(): ClusterView {
    return this.#view ?? { clusterId: this.#clusterId, nodes: [], ranges: [], leaders: [], masterLeader: 0 };
  }

  /** The cluster will not have this node: going on could only do harm. */
  #refused(error: ServiceError): void {
    this.#fail(new CommandError('dataDir', `the cluster refuses this node: ${error.message}`, { cause: error }));
  }

  // -------------------------------------------------------------------------------------------- disk

  async #openLog(): Promise<{ log: GroupLog; recovered: ReadonlyMap<GroupId, RecoveredGroup> }> {
    const { dataDir, logger } = this.#parts;
    const disk = nodeDisk(dataDir.path);
    const log = await openGroupLog({ disk, dir: 'log', logger, onFailure: (error) => this.#fail(error) });
    this.#onStop('log', () => log.close());
    return { log, recovered: log.recovered() };
  }

  async #openEngine(logDurable: () => Promise<void>): Promise<Engine> {
    const { dataDir, logger, clock } = this.#parts;
    const engine = await openLevelEngine({
      dir: join(dataDir.path, 'engine'),
      options: { resident: RESIDENT_SPANS },
      clock,
      logger,
      logDurable,
      onFailure: (error) => this.#fail(error),
    });
    this.#onStop('engine', () => engine.close());
    return engine;
  }

  #checkpointer(engine: Engine): Checkpointer {
    const { options, clock, logger } = this.#parts;
    return new Checkpointer(engine, {
      clock,
      logger,
      options: { intervalMs: options.checkpointInterval, bytes: options.checkpointBytes },
    });
  }

  // -------------------------------------------------------------------------------------------- between nodes

  #transport(descriptor: NodeDescriptor): GrpcTransport {
    const { clock, random, logger, dataDir } = this.#parts;
    return createGrpcTransport({
      local: this.#identity(descriptor),
      resolveAddress: (nodeId) => this.#address(nodeId),
      clock,
      random,
      logger,
      verifyPeer: (peer) => dataDir.checkPeer(peer)?.message,
      onRefused: (node, { code, message }) => {
        if (code !== 'NODE_CONFLICT' && code !== 'WRONG_CLUSTER') return;
        this.#fail(new CommandError('dataDir', `node ${node} refuses this node: ${message}`));
      },
    });
  }

  #host(log: GroupLog, raft: GrpcTransport): NodeRaftHost {
    const { clock, random, logger, options } = this.#parts;
    const host = createRaftHost({
      nodeId: this.#nodeId,
      clock,
      random,
      log,
      transport: raft.transport,
      options: {
        tickMs: TICK_MS,
        heartbeatTicks: Math.max(1, Math.round(options.heartbeatInterval / TICK_MS)),
        electionTicks: Math.max(3, Math.round(options.electionTimeout / TICK_MS)),
      },
      logger,
      onFatal: (error) => this.#fail(error),
    });
    host.start();
    this.#onStop('raft', () => host.stop());
    return host;
  }

  #dialer(descriptor: NodeDescriptor, registry: ReturnType<typeof createRpcRegistry>): ClosableDialer {
    const { clock, random, logger } = this.#parts;
    const dialer = createRpcDialer({
      localNodeId: this.#nodeId,
      identity: () => this.#identity(descriptor),
      registry,
      resolveAddress: (nodeId) => this.#address(nodeId),
      clock,
      random,
      logger,
    });
    this.#onStop('calls to peers', () => dialer.close());
    return dialer;
  }

  async #listenForPeers(raft: GrpcTransport, rpc: RpcService): Promise<PeerServer> {
    const { options } = this.#parts;
    const server = await startPeerServer({
      host: options.listenHost,
      port: options.peerPort,
      services: [raft.service, rpc],
      options: grpcServerOptions(),
    }).catch((cause: unknown) => {
      const message = `cannot listen on ${options.listenHost}:${options.peerPort}; is it taken? Choose another --peer-port`;
      throw new CommandError('portTaken', message, { cause });
    });
    this.#onStop('peer port', () => {
      rpc.close();
      server.stop();
    });
    return server;
  }

  // -------------------------------------------------------------------------------------------- roles

  #master(deps: StateDeps): Master | undefined {
    const { options, founders } = this.#parts;
    if (founders === undefined || !options.roles.includes('master')) return undefined;
    const master = createMaster({ ...this.#parts, ...deps, nodeId: this.#nodeId, founders });
    this.#onStop('master', () => master.stop());
    return master;
  }

  #store(deps: StateDeps): Store | undefined {
    this.#onStop('last checkpoint', () => deps.checkpointer.stop());
    if (!this.#parts.options.roles.includes('data')) return undefined;
    const store = createStore({
      ...this.#parts,
      ...deps,
      nodeId: this.#nodeId,
      onFailure: (error) => this.#fail(error),
    });
    this.#onStop('ranges', () => store.stop());
    return store;
  }

  #agent(descriptor: NodeDescriptor, dialer: ClosableDialer, store: Store | undefined): void {
    const { options, founders, clock, random, logger } = this.#parts;
    const agent = new NodeAgent(
      {
        dialer,
        clock,
        random,
        logger,
        seeds: options.join.map(formatAddress),
        masters: founders?.members.map((_member, i) => i + 1) ?? [],
        reachable: (nodeId) => this.#address(nodeId) !== undefined,
        reports: () => store?.reports() ?? [],
        onTask: (task) => this.#perform(task, store),
        onView: (view) => {
          this.#view = view;
        },
        onRefused: (error) => this.#refused(error),
      },
      descriptor,
    );
    agent.start();
    this.#onStop('agent', () => agent.stop());
  }

  #perform(task: NodeTask, store: Store | undefined): void {
    store?.createReplica(task.descriptor, task.replicaId).catch((error: unknown) => {
      // Not now: the master asks again.
      if (error instanceof ServiceError) this.#parts.logger.warn({ error: error.message }, 'no replica was created');
      else this.#fail(error);
    });
  }
}
