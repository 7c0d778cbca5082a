/**
 * The platform of a node: everything in which a real process differs from a simulated one. `assemble.ts` combines the
 * roles on top of it and knows neither sockets nor files, so that the simulator runs the same node.
 */
import type { Audit, Authenticator, KnownAuth, PasswordThread } from '@remora/auth';
import type {
  CertificateNames,
  Clock,
  Disk,
  Engine,
  ErrorCode,
  FailedLookup,
  HistogramReading,
  Logger,
  Metrics,
  Random,
  ServiceError,
  VersionRange,
} from '@remora/base';
import type { EngineDeps, OnApplied, RangeOptions, Store } from '@remora/dataserver';
import type {
  Admission,
  Backend,
  BackendDeps,
  BackendInFlight,
  ClusterNode,
  MasterCaller,
  RouteLookupStats,
  SpanSink,
} from '@remora/gateway';
import type { HistoryStats, MasterOptions } from '@remora/master';
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
import type { KnownVersion } from './cluster/known-version.ts';
import type { CertificateExpiry, NodeHealth } from './health.ts';
import type { LogLevelSwitch } from './log-level-service.ts';
import type { NodeRecords } from './node-records.ts';

export interface NodePlatform {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The level of the log; absent: it cannot be changed. */
  readonly logLevel?: LogLevelSwitch | undefined;
  /** The version of the program, as other nodes learn it. */
  readonly version: string;
  /** What the program can write; `BUILD_VERSIONS` if absent. */
  readonly versions?: VersionRange;
  readonly records: NodeRecords;
  /** Holds the log: its syncs are short and many. */
  readonly logDisk: Disk;
  /** Snapshots are staged here: syncs of bulk data must not block the event loop. */
  readonly stagingDisk: Disk;
  /** The space on the disk with all data, measured recently. */
  space(): NodeSpace;
  /** Sizes and limits that differ from the defaults. */
  readonly tuning?: NodeTuning;
  readonly onApplied?: OnApplied;
  /** Where security events are recorded; absent: nowhere. */
  readonly audit?: Audit | undefined;
  /** The node's metrics; absent: nothing is counted. */
  readonly metrics?: Metrics;
  /** What a histogram among the metrics has counted, by its name; absent: nothing is known. */
  readonly reading?: (name: string) => HistogramReading | undefined;
  /** The trust domain in this node's certificate for its peers, if there is one. */
  readonly trustDomain?: () => string | undefined;
  /** When each certificate of this node expires; absent without TLS. */
  readonly certificates?: () => readonly CertificateExpiry[];
  /** Names of hosts that this node dials and cannot resolve; absent: it dials none. */
  readonly failedLookups?: () => readonly FailedLookup[];
  /** Takes the spans of traced requests; absent: none is made. */
  readonly spans?: SpanSink | undefined;
  /** Reads a file that an operator has made, such as one with a password. */
  readSecret(file: string): Promise<string>;
  /** Hashes passwords, one after the other, without holding the event loop. */
  passwordThread(): PasswordThread;
  openEngine(deps: EngineDeps): Promise<Engine>;
  /** Creates the host of the node's Raft groups; a simulation can observe it. */
  createHost(options: RaftHostOptions): NodeRaftHost;
  /** Begins a link for calls to another node, with the identity `self`; `verify` checks the answering node. */
  connect(
    target: { readonly address: string; readonly nodeId: number },
    self: LinkIdentity,
    verify: (answer: LinkAnswer) => ServiceError | undefined,
  ): FrameLink;
  /** The node's end of the network between nodes. It receives nothing before `listen`. */
  openPeers(deps: PeersDeps): Peers;
  /** The node's ports for clients and operators. */
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
  /** Returns the current `host:port` of a node. */
  readonly resolveAddress: (nodeId: NodeId) => string | undefined;
  /** An attempt to reach the node at this address has failed. */
  readonly onUnreached: (nodeId: NodeId, address: string) => void;
  /** Returns the caller, which is of this cluster and has an id above 0; or why it is refused. */
  readonly identify: (peer: LinkIdentity, certificate?: CertificateNames) => Caller | ServiceError;
  /** Returns why an answering peer is not the one that it claims to be. */
  readonly verify: (answer: LinkAnswer) => ServiceError | undefined;
  /** A peer refused this node. */
  readonly onRefused: (by: NodeId, refusal: PeerRefusal) => void;
  /** An accepted peer of the same cluster has reached this node. */
  readonly onMet: (peer: LinkIdentity) => void;
  /** A verified node calls this one. */
  readonly onNode: (peer: LinkIdentity) => void;
}

export interface PeerRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

export interface Peers {
  /** Carries Raft's messages. */
  readonly transport: Transport;
  /** Accepts peers: calls go to the registry. Called once. */
  listen(registry: RpcDispatcher): Promise<void>;
  close(): void;
}

export interface EntryDeps {
  readonly options: NodeOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly nodeId: number;
  /** The id by which clients and operators know the cluster. */
  readonly shownClusterId: string;
  /** After the gateway's limit of requests per second, and what users may do. */
  readonly backend: Backend;
  readonly authenticator: Authenticator;
  /** What this node knows of users and roles. */
  readonly known: KnownAuth;
  readonly audit: Audit;
  readonly admission: Admission;
  /** Calls the master's leader, and other nodes. */
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
  readonly versions: KnownVersion;
  /** The size of the history that this node keeps as the masters' leader; undefined: it runs no master. */
  readonly historyStats: () => HistoryStats | undefined;
  /** The nodes of the cluster, even while no master can be reached. */
  readonly nodes: () => readonly ClusterNode[];
}

export interface NodeEntry {
  start(): Promise<void>;
  /** Refuses new work, lets work in progress end, then closes. */
  stop(): Promise<void>;
}
