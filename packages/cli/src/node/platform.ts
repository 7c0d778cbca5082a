/**
 * What a node stands on: everything in which a real process differs from a simulated one. `assemble.ts` puts the roles
 * together on top of it and knows neither sockets nor files, so that the simulator runs the same node.
 */
import type { Clock, Disk, Engine, ErrorCode, Logger, Metrics, Random, ServiceError } from '@remora/base';
import type { EngineDeps, OnApplied, RangeOptions, Store } from '@remora/dataserver';
import type {
  Admission,
  Backend,
  BackendDeps,
  BackendInFlight,
  ClusterNode,
  MasterCaller,
  RouteLookupStats,
} from '@remora/gateway';
import type { MasterOptions } from '@remora/master';
import type {
  Caller,
  FrameLink,
  LinkAnswer,
  LinkIdentity,
  NodeSpace,
  RpcDialer,
  RpcDispatcher,
} from '@remora/protocol';
import type {
  GroupLog,
  GroupLogOptions,
  HostOptions,
  NodeId,
  NodeRaftHost,
  RaftHostOptions,
  Transport,
} from '@remora/raft';
import type { NodeOptions } from '../node-options.ts';
import type { NodeHealth } from './health.ts';
import type { NodeRecords } from './node-records.ts';

export interface NodePlatform {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Of the program, as others are told. */
  readonly version: string;
  readonly records: NodeRecords;
  /** Holds the log: its syncs are short and many. */
  readonly logDisk: Disk;
  /** Where snapshots are staged: what is synced comes in bulk, and must not hold up the loop. */
  readonly stagingDisk: Disk;
  /** Of the disk that everything lies on, as of a moment ago. */
  space(): NodeSpace;
  /** Sizes and limits other than the usual ones. */
  readonly tuning?: NodeTuning;
  readonly onApplied?: OnApplied;
  /** What the node counts; absent: nothing. */
  readonly metrics?: Metrics;
  openEngine(deps: EngineDeps): Promise<Engine>;
  /** Runs the node's Raft groups; a simulation looks on. */
  createHost(options: RaftHostOptions): NodeRaftHost;
  /** Begins a link for calls to another node, in the name of `self`; `verify` looks at who answers. */
  connect(
    target: { readonly address: string; readonly nodeId: number },
    self: LinkIdentity,
    verify: (answer: LinkAnswer) => ServiceError | undefined,
  ): FrameLink;
  /** The node's end of the network between nodes. It hears nothing before `listen`. */
  openPeers(deps: PeersDeps): Peers;
  /** What the outside sees of the node. */
  openEntry(deps: EntryDeps): NodeEntry;
}

export interface NodeTuning {
  readonly host?: Partial<HostOptions>;
  readonly log?: GroupLogOptions;
  readonly ranges?: Partial<RangeOptions>;
  readonly gateway?: Pick<BackendDeps, 'waitsMax'>;
  readonly master?: Partial<MasterOptions>;
}

export interface PeersDeps {
  readonly self: LinkIdentity;
  /** `host:port` of a node as known now. */
  readonly resolveAddress: (nodeId: NodeId) => string | undefined;
  /** Who calls, of this cluster and with an id above 0; or why it is refused. */
  readonly identify: (peer: LinkIdentity) => Caller | ServiceError;
  /** Why a peer that answers a call is not the one it says it is. */
  readonly verify: (answer: LinkAnswer) => ServiceError | undefined;
  /** A peer will not have this node. */
  readonly onRefused: (by: NodeId, refusal: PeerRefusal) => void;
  /** A peer of the same cluster has reached this node, and may. */
  readonly onMet: () => void;
}

export interface PeerRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

export interface Peers {
  /** Carries the messages of Raft. */
  readonly transport: Transport;
  /** Takes what peers say: calls go to the registry. Once. */
  listen(registry: RpcDispatcher): Promise<void>;
  close(): void;
}

export interface EntryDeps {
  readonly options: NodeOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly nodeId: number;
  /** By which clients and operators know the cluster. */
  readonly shownClusterId: string;
  /** Behind the gateway's limit of requests per second. */
  readonly backend: Backend;
  readonly admission: Admission;
  /** The way to the master's leader, and to other nodes. */
  readonly master: MasterCaller;
  readonly dialer: RpcDialer;
  readonly inFlight: () => Readonly<BackendInFlight>;
  readonly lookupStats: Readonly<RouteLookupStats>;
  readonly host: NodeRaftHost;
  readonly log: GroupLog;
  readonly engine: Engine;
  readonly space: () => NodeSpace;
  readonly store: Store | undefined;
  readonly health: NodeHealth;
  /** The nodes of the cluster, also while no master can be reached. */
  readonly nodes: () => readonly ClusterNode[];
}

export interface NodeEntry {
  start(): Promise<void>;
  /** Refuses what is new, lets what is under way end, then closes. */
  stop(): Promise<void>;
}
