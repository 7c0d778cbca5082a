/**
 * A cluster of data servers and gateways on one virtual clock: real stores, Raft hosts, RPC and routing over in-memory
 * engines and logs, and links that fail on command. One seed gives one run.
 */
import { assert, type Clock, nodeClock, SeededRandom, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { Checkpointer, RevisionDrawer, Store } from '@remora/dataserver';
import { RangeBackend } from '@remora/gateway';
import { lockSpan } from '@remora/lock';
import {
  type ClusterView,
  createDialer,
  createRpcRegistry,
  FIRST_EPOCH,
  kvRoutingKey,
  LEASE_SPACE,
  type RangeDescriptor,
  type RpcDialer,
  type SplitLoads,
  type SplitSizes,
} from '@remora/protocol';
import { createRaftHost, type NodeRaftHost } from '@remora/raft';
import { LocalNetwork } from '@remora/raft/testing';
import type { RevisionSource } from '../../../packages/dataserver/src/revisions/revision-drawer.ts';
import { NOBODY_NUMBERS } from '../../../packages/dataserver/test/support/own-revisions.ts';
import { deadly, type Kills } from './coordinator-kills.ts';
import { Links } from './links.ts';
import { RangeMaster } from './range-master.ts';
import { RevisionMaster } from './revision-master.ts';
import { SimNode } from './sim-node.ts';

export const DATA_NODES: readonly number[] = [1, 2, 3];
/** A gateway without data. The data nodes are gateways as well. */
export const GATEWAY_NODE = 4;
/** Has no replica at first. It exists in runs in which replicas move. */
const SPARE_NODE = 5;

/** In a plan: the start key of leases. Locks and plain keys follow. */
const LEASES = 'leases';

/** In a plan, followed by a lock's name: the start key of the lock's records. */
const LOCK = 'lock:';

/**
 * Start keys of ranges other than the first: plain keys, `LEASES` or locks. They apply from the start, or from some
 * later time.
 */
export interface RangePlan {
  readonly borders: readonly string[];
  readonly splits: readonly string[];
  /** How often neighbouring ranges are merged. */
  readonly merges?: number;
  /** How often replicas move, to and from a node that has none at first. */
  readonly moves?: number;
  /** Clients append to lists in several ranges, and coordinators end during that. */
  readonly transactions?: boolean;
  /** The sizes at which leaders split their ranges. Absent: they do not split by size. */
  readonly sizes?: SplitSizes;
  /**
   * Clients additionally put keys with leases, and stay silent for so long that checkpoints in the log contain their
   * remaining times.
   */
  readonly leases?: boolean;
}

const ONE_RANGE: RangePlan = { borders: [], splits: [] };
const NO_KEY = new Uint8Array(0);
/** Shorter than the pause between two heartbeats. */
const LEASE_CHECKPOINT_MS = 200;
/** No range is split because of its load. */
const NO_LOADS: SplitLoads = { requestsPerS: 0, bytesPerS: 0, holdMs: 1_000 };

/** The start key of a range of a plan. */
export function borderAt(border: string): Buffer {
  if (border === LEASES) return Buffer.from([LEASE_SPACE]);
  if (!border.startsWith(LOCK)) return kvRoutingKey(Buffer.from(border));
  const name = Buffer.from(border.slice(LOCK.length));
  return Buffer.from(lockSpan({ namespace: 'sim', name }).start);
}

/**
 * Each data node has a replica of every range. Range 2 covers everything if there are no borders between plain keys.
 */
function rangesBetween(borders: readonly string[]): readonly RangeDescriptor[] {
  const keys = borders.map(borderAt);
  return [NO_KEY, ...keys].map((start, i) => ({
    rangeId: 2 + i,
    start,
    end: keys[i] ?? NO_KEY,
    epoch: FIRST_EPOCH,
    replicas: DATA_NODES.map((nodeId) => ({ replicaId: replicaIdOn(nodeId, 2 + i), nodeId, type: 'voter' as const })),
    revisionSource: borders.length === 0 ? 'range' : 'master',
  }));
}

export function replicaIdOn(nodeId: number, rangeId: number): number {
  return 100 * (rangeId - 1) + nodeId;
}

/** Where a node's engine stores the markers of snapshot installations. */
const INSTALLS = {
  start: Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0x69]),
  end: Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0x6a]),
};

const realClock = nodeClock();

export class RangeCluster {
  readonly clock = new ManualClock();
  readonly dataNodes: readonly number[];
  /** Includes the nodes that are only gateways. */
  readonly allNodes: readonly number[];
  readonly random: SeededRandom;
  readonly network: LocalNetwork;
  readonly nodes: ReadonlyMap<number, SimNode>;
  readonly failures: unknown[] = [];
  /** For features that were added later, so that the draws of earlier runs stay the same. */
  readonly laterRandom: SeededRandom;
  /** Nodes that died while they installed a snapshot and completed it at their next start. */
  resumed = 0;
  /** The cluster view that the master would send. It learns of splits late. */
  view: ClusterView;
  /** Coordinators that ended, by their last message. */
  readonly kills: Kills = new Map();
  /** The faults of the nodes, by kind. */
  readonly misfortunes = new Map<string, number>();
  /** The master's part in range changes. */
  readonly ranges: RangeMaster;
  readonly #plan: RangePlan;
  readonly #master: RevisionMaster;
  readonly #links: Links;

  constructor(seed: number, plan: RangePlan = ONE_RANGE) {
    const ranges = rangesBetween(plan.borders);
    this.#plan = plan;
    this.dataNodes = plan.moves === undefined ? DATA_NODES : [...DATA_NODES, SPARE_NODE];
    this.allNodes = [...DATA_NODES, GATEWAY_NODE, ...(plan.moves === undefined ? [] : [SPARE_NODE])];
    this.view = { clusterId: 'sim', nodes: [], ranges, leaders: [], masterLeader: 0 };
    this.random = new SeededRandom(seed);
    this.laterRandom = new SeededRandom(seed + 0x1000_0000);
    this.#master = new RevisionMaster(this.laterRandom);
    this.network = new LocalNetwork({
      clock: this.clock,
      random: this.random,
      faults: { delayMs: 1, jitterMs: 3, dropPerMille: 5, duplicatePerMille: 5 },
    });
    const { clock, random, network } = this;
    this.#links = new Links({ clock, random, network, node: (id) => this.node(id) });
    this.nodes = new Map(this.allNodes.map((id) => [id, new SimNode(this, id)]));
    this.ranges = new RangeMaster(this, { seed, plan });
  }

  node(id: number): SimNode {
    const node = this.nodes.get(id);
    assert(node !== undefined, `there is no node ${id}`);
    return node;
  }

  async start(): Promise<void> {
    for (const id of this.allNodes) this.startNode(id);
    for (const range of this.view.ranges) {
      for (const { nodeId, replicaId } of range.replicas) {
        void this.node(nodeId).running?.store?.createReplica(range, replicaId);
      }
    }
    this.ranges.start();
    await this.run(1_500);
  }

  startNode(id: number): void {
    const node = this.node(id);
    assert(node.running === undefined, 'a node runs once at a time');
    const { clock, engine, log } = node;
    clock.begin();
    const drawer = this.#drawer(clock);
    const registry = createRpcRegistry();
    const dialer = createDialer({
      localNodeId: id,
      registry,
      resolveAddress: (nodeId) => String(nodeId),
      connect: ({ nodeId }) => this.#links.connect(id, nodeId),
      clock,
      random: this.random,
    });
    const isData = this.dataNodes.includes(id);
    let host: NodeRaftHost | undefined;
    let store: Store | undefined;
    if (isData) {
      host = createRaftHost({
        nodeId: id,
        clock,
        random: this.random,
        log,
        transport: this.#links.transport(id),
        options: {
          tickMs: 25,
          electionTicks: 10,
          heartbeatTicks: 3,
          tailEntries: 20,
          snapshotRetryMs: 100,
          snapshotHoldMs: 500,
        },
        onFatal: (error) => this.failures.push(error),
      });
      host.start();
      const checkpointer = new Checkpointer(engine, {
        clock,
        logger: silentLogger,
        options: { intervalMs: 400, bytes: 1_000_000 },
      });
      store = new Store({
        nodeId: id,
        engine,
        disk: node.disk.mount(),
        checkpointer,
        host,
        clock,
        logger: silentLogger,
        options: {
          watchRingBytesMax: 4_000,
          compactionRetentionMs: 0,
          outcomeBytesMax: 1_000_000,
          timeCarryMs: 30_000,
          ...(this.#plan.leases && { leaseCheckpointMs: LEASE_CHECKPOINT_MS }),
          ...(this.#plan.sizes && { splits: { automatic: true, sizes: this.#plan.sizes, loads: NO_LOADS } }),
        },
        ...{ drawer, dialer },
        splitting: { askIds: (request) => this.ranges.desk.askIds(clock, request) },
        onApplied: (command) => this.ranges.desk.applied(command),
        knownRanges: () => this.view.ranges,
        authRevision: () => 0,
        others: { command: (...call) => backend.command(...call), query: (...call) => backend.query(...call) },
        transactionPeers: {
          push: (...call) => backend.peers.push(...call),
          resolve: (...call) => backend.peers.resolve(...call),
        },
        recovered: new Map(log.recovered()),
        onFailure: (error) => this.failures.push(error),
      });
      this.resumed += engine.scanResident(INSTALLS).length;
      store.start().catch((error: unknown) => this.failures.push(error));
      store.register(registry);
    }
    const backend = new RangeBackend({
      nodeId: id,
      dialer: this.#plan.transactions ? this.#deadly(dialer, id) : dialer,
      view: () => this.view,
      master: {
        newest: (floor, done) => drawer.newest(floor, done),
        draw: (floor, done) => drawer.one(floor, done),
        view: (done) => done(undefined, this.view),
      },
      clock,
      random: this.random,
      logger: silentLogger,
    });
    node.running = { host, store, dialer, backend, registry };
  }

  /** Like a power failure: unsynced data is lost, and nothing of the process runs any more. */
  async crash(id: number): Promise<void> {
    const node = this.node(id);
    const running = node.running;
    if (running === undefined) return;
    node.clock.kill();
    node.log.crash();
    node.running = undefined;
    node.life++;
    this.#links.breakAllOf(id);
    void running.host?.stop();
    await this.flush();
    node.engine.crash();
    node.engine.rebuilding = false;
    node.disk.crash();
  }

  #deadly(dialer: RpcDialer, id: number): RpcDialer {
    const { laterRandom: random, kills } = this;
    return deadly(dialer, { random, kills, kill: () => this.#killAwhile(id) });
  }

  /** The node restarts automatically. */
  #killAwhile(id: number): void {
    void this.crash(id);
    const { life } = this.node(id);
    this.clock.setTimer(50 + this.laterRandom.int(400), () => {
      const node = this.node(id);
      if (node.life === life && node.running === undefined) this.startNode(id);
    });
  }

  pause(id: number): void {
    this.node(id).pauses++;
    this.node(id).clock.pause();
  }

  resume(id: number): void {
    this.node(id).clock.resume();
  }

  /** Cuts these nodes off from the others. Open links carry nothing until the partition ends. */
  partition(cut: readonly number[]): void {
    this.#links.partition(cut, this.allNodes);
  }

  heal(): void {
    this.#links.heal();
  }

  /** Breaks a link, and loses everything in transit on it. */
  breakSomeLink(): void {
    this.#links.breakSome();
  }

  /** Lets time pass, and lets promises settle meanwhile. */
  async run(ms: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    for (;;) {
      const next = this.clock.nextTimerMs();
      if (next === undefined || next > endMs) break;
      this.clock.fireNext();
      await this.flush();
      if (this.failures.length > 0) throw this.failures[0];
    }
    this.clock.advance(endMs - this.clock.monotonicMs());
    await this.flush();
  }

  async flush(): Promise<void> {
    for (let turn = 0; turn < 3 || this.clock.hasImmediates; turn++) {
      await new Promise<void>((resolve) => realClock.setImmediate(resolve));
      this.clock.runImmediates();
    }
  }

  leaders(rangeId = 2): readonly number[] {
    return this.dataNodes.filter((id) => this.node(id).running?.host?.group(rangeId)?.ready === true);
  }

  met(misfortune: string): void {
    this.misfortunes.set(misfortune, (this.misfortunes.get(misfortune) ?? 0) + 1);
  }

  #drawer(clock: Clock): RevisionSource {
    const master = this.#master;
    const { borders, splits, sizes } = this.#plan;
    if (borders.length + splits.length === 0 && sizes === undefined) return NOBODY_NUMBERS;
    const { laterRandom: random } = this;
    return new RevisionDrawer({ clock, random, logger: silentLogger, call: (...call) => master.call(clock, ...call) });
  }
}
