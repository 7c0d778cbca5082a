import {
  type Address,
  address,
  bytes,
  defineOptions,
  durationMs,
  formatAddress,
  INPUT_LIMITS,
  type InputLimits,
  int,
  LOG_LEVELS,
  list,
  type Options,
  oneOf,
  string,
} from '@remora/base';
import { LOCK_LIMITS } from '@remora/dataserver';
import { hostName } from '@remora/gateway';
import { RANGE_RELATIONS } from '@remora/master';
import { HOST_DEFAULTS, SEGMENT_BYTES_DEFAULT } from '@remora/raft';
import { areClientsKnown, INSECURITIES, isExposureAllowed } from './exposure.ts';
import { DEFAULT_BASE_PORT, localPorts } from './local-ports.ts';
import { hostname, label, member, NAME } from './node-option-types.ts';
import { rangeOptions } from './range-options.ts';
import { auditOptions, foundingOptions, SECURITY_RELATIONS } from './security-options.ts';
import { clientTlsMode, peerTlsMode, TLS_RELATIONS, tlsOptions } from './tls-options.ts';

export const ROLES = ['master', 'data', 'gateway'] as const;
export type NodeRole = (typeof ROLES)[number];

const PORTS = localPorts(DEFAULT_BASE_PORT, 1);

/** With a lower rate, parts of a snapshot would arrive later than a receiver waits for them. */
const SNAPSHOT_RATE_MIN = 2 ** 20;
/** The log makes its next segment while it writes the current one. */
const DISK_RESERVE_MIN = 2 * SEGMENT_BYTES_DEFAULT;
/** The size of a frame beyond the largest request in it. */
const REQUEST_ROOM_BYTES = 4 * 2 ** 20;

/** Every option of a node: the source of flags, `REMORA_*` variables, keys of the configuration file and `--help`. */
export const nodeSchema = defineOptions({
  envPrefix: 'REMORA',
  definitions: {
    name: {
      type: string({ placeholder: '<name>', pattern: NAME, maxLength: 64 }),
      default: 'n1',
      desc: 'Name of this node, unique in its cluster. A data directory belongs to the name it was created with.',
      group: 'Node',
    },
    dataDir: {
      type: string({ placeholder: '<path>' }),
      default: 'remora-data',
      desc: 'Directory for all data of this node. Only one process may use it; never copy it to a second node.',
      group: 'Node',
    },
    roles: {
      type: list(oneOf(ROLES), { minLength: 1 }),
      default: ROLES,
      desc: 'What this node does: master keeps the cluster metadata, data stores ranges, gateway serves clients. The founding members are the masters; a node that joins with the role master replaces a master that leaves.',
      group: 'Node',
    },
    clientListen: {
      type: address(),
      default: { host: '127.0.0.1', port: PORTS.client },
      desc: 'Address for clients: the gRPC APIs of etcd v3 and Remora, and HTTP as at --http-listen. Any address but loopback requires TLS and authentication, or --insecure clients,anonymous. IPv6 in brackets: [::1]:7480.',
      group: 'Network',
    },
    peerListen: {
      type: address(),
      default: { host: '127.0.0.1', port: PORTS.peer },
      desc: 'Address for messages between nodes. Any address but loopback requires TLS, or --insecure peers.',
      group: 'Network',
    },
    httpListen: {
      type: address(),
      default: { host: '127.0.0.1', port: PORTS.http },
      desc: "Address for HTTP: the lock API in JSON (/openapi.json), etcd's API in JSON (/v3), and the paths of --health-listen. Any address but loopback requires the same as --client-listen.",
      group: 'Network',
    },
    healthListen: {
      type: address(),
      default: { host: '127.0.0.1', port: PORTS.health },
      desc: 'Address of a separate port for /health, /ready and /metrics, which answers however busy the HTTP port is. For probes from other hosts, set 0.0.0.0:7483. It has no TLS and does not require --insecure, because it is read-only and shows no keys or locks.',
      group: 'Network',
    },
    httpAllowedHosts: {
      type: list(hostname(), { maxLength: 100 }),
      default: [],
      desc: 'Host headers to accept in HTTP requests, besides localhost, IP addresses and the advertised names; for example, the name of a load balancer. Other names are refused, to prevent DNS rebinding by web pages.',
      group: 'Network',
    },
    console: {
      type: oneOf(['on', 'off']),
      default: 'on',
      desc: 'Whether browsers find the console, a view of the cluster, at the address of --http-listen. It uses the HTTP API, which stays on.',
      group: 'Network',
    },
    advertiseClient: {
      type: address(),
      desc: 'Client address that this node announces. Default: --client-listen.',
      group: 'Network',
    },
    advertisePeer: {
      type: address(),
      desc: 'Peer address that this node announces. Default: --peer-listen.',
      group: 'Network',
    },
    advertiseHttp: {
      type: address(),
      desc: 'HTTP address that this node announces. Default: --http-listen, or its port on the host of --advertise-client if it listens on all addresses.',
      group: 'Network',
    },
    insecure: {
      type: list(oneOf(INSECURITIES)),
      default: [],
      desc: 'Beyond loopback, what to leave open: clients (they may use plain text), peers (nodes use plain text), anonymous (the cluster is founded without authentication). Everybody who reaches the ports can then read or change what they protect.',
      group: 'Network',
    },
    ...tlsOptions,
    labels: {
      type: list(label(), { maxLength: 16 }),
      default: [],
      desc: 'Location of this node, such as zone=a,rack=a3. The replicas of a range are placed in different zones, then racks, then hosts.',
      group: 'Cluster',
    },
    initialCluster: {
      type: list(member(), { maxLength: 9 }),
      default: [],
      desc: 'Founding members and their peer addresses (n1=10.0.0.1:7481,n2=...), identical on all of them at the first start. Later only hints where to look for nodes that have moved. Without it and without --join, the node forms a cluster by itself.',
      group: 'Cluster',
    },
    ...foundingOptions,
    clusterToken: {
      type: string({ placeholder: '<token>', maxLength: 128 }),
      default: 'remora',
      desc: 'Makes the id of a new cluster unique, together with --initial-cluster. Give each cluster its own token, so that nodes of different clusters refuse each other. Used only to found a cluster.',
      group: 'Cluster',
    },
    join: {
      type: list(address(), { maxLength: 100 }),
      default: [],
      desc: 'Peer addresses of nodes of a running cluster, which a new node joins. A node that has data looks there for nodes that have moved. A DNS name may have several addresses; all of them are tried.',
      group: 'Cluster',
    },
    peerProxies: {
      type: list(member(), { maxLength: 1_000 }),
      default: [],
      desc: 'Addresses at which this node dials other nodes, by name, instead of their announced addresses; for tunnels and proxies.',
      group: 'Cluster',
    },
    heartbeatInterval: {
      type: durationMs({ min: 10, max: 10_000 }),
      default: 75,
      desc: 'Time between heartbeats of a leader to its followers. Set it to at least the round trip between nodes.',
      group: 'Raft',
    },
    electionTimeout: {
      type: durationMs({ min: 50, max: 60_000 }),
      default: 400,
      desc: 'Time without a leader after which followers start an election; each adds up to half of it at random. A leader whose process ended is replaced without this wait. Use at least five heartbeat intervals, and more on machines that pause and on slow networks.',
      group: 'Raft',
    },
    snapshotBytesPerSecondMax: {
      type: bytes({ min: 0, max: 2 ** 40 }),
      default: HOST_DEFAULTS.snapshotBytesPerSecondMax,
      desc: 'Rate at which an idle node sends snapshots of ranges to nodes that fell too far behind, all snapshots together. 0: no limit.',
      group: 'Raft',
    },
    snapshotBytesPerSecondBusy: {
      type: bytes({ min: 0, max: 2 ** 40 }),
      default: HOST_DEFAULTS.snapshotBytesPerSecondBusy,
      desc: 'Rate at which the node sends, and rate at which it receives, snapshots while it serves reads or writes. 0: the same as when idle. Higher rates increase the latency of requests.',
      group: 'Raft',
    },
    snapshotSendsMax: {
      type: int({ min: 1, max: 100 }),
      default: HOST_DEFAULTS.snapshotSendsMax,
      desc: 'Maximum number of snapshots that this node sends at a time.',
      group: 'Raft',
    },
    snapshotReceivesMax: {
      type: int({ min: 1, max: 100 }),
      default: HOST_DEFAULTS.snapshotReceivesMax,
      desc: 'Maximum number of snapshots that this node receives at a time. Each needs disk space for two copies of a range.',
      group: 'Raft',
    },
    checkpointInterval: {
      type: durationMs({ min: 100, max: 3_600_000 }),
      default: 30_000,
      desc: 'Maximum time that changes stay in memory and in the log before they are written to LevelDB.',
      group: 'Storage',
    },
    checkpointBytes: {
      type: bytes({ min: 2 ** 16, max: 2 ** 32 }),
      default: 16 * 2 ** 20,
      desc: 'Bytes of changes that trigger this write early. While they are written, they take up to four times this much memory.',
      group: 'Storage',
    },
    diskReserve: {
      type: bytes({ min: 0, max: 2 ** 50 }),
      default: 256 * 2 ** 20,
      desc: 'Disk space to keep free. If less is free, the node refuses new values with RESOURCE_EXHAUSTED; locks, reads, deletes and compactions still work. At least 32 MiB, for the log. 0: no reserve.',
      group: 'Storage',
    },
    compactionRetention: {
      type: durationMs(),
      default: 3_600_000,
      desc: 'How long old versions of keys are kept for watches and reads of the past. 0: forever.',
      group: 'Storage',
    },
    ...rangeOptions,
    requestBytesMax: {
      type: bytes({ min: 1024, max: 32 * 2 ** 20 }),
      default: 1.5 * 2 ** 20,
      desc: 'Maximum size of a request, identical on all nodes. Above 2 MiB, also raise requestBytesMax in the clients.',
      group: 'Limits',
    },
    txnOpsMax: {
      type: int({ min: 1, max: 10_000 }),
      default: 128,
      desc: 'Maximum number of operations in one transaction, identical on all nodes.',
      group: 'Limits',
    },
    sessionsMax: {
      type: int({ min: 1 }),
      default: LOCK_LIMITS.sessionsMax,
      desc: 'Maximum number of sessions of one range, including leases of etcd clients. More are refused with RESOURCE_EXHAUSTED.',
      group: 'Limits',
    },
    sessionLocksMax: {
      type: int({ min: 1 }),
      default: LOCK_LIMITS.sessionLocksMax,
      desc: 'Maximum number of locks of one range that one session holds or waits for. Up to a tenth more may be admitted.',
      group: 'Limits',
    },
    lockWaitersMax: {
      type: int({ min: 1, max: LOCK_LIMITS.waitersMax }),
      default: LOCK_LIMITS.waitersMax,
      desc: 'Maximum number of waiters for one lock.',
      group: 'Limits',
    },
    lockDataBytesMax: {
      type: bytes({ min: 0, max: LOCK_LIMITS.dataBytesMax }),
      default: LOCK_LIMITS.dataBytesMax,
      desc: 'Maximum size of the data that a holder attaches to a lock, identical on all nodes. More is refused with INVALID_ARGUMENT.',
      group: 'Limits',
    },
    requestsPerSecondMax: {
      type: int({ min: 0, max: 10_000_000 }),
      default: 0,
      desc: 'Maximum requests per second that this gateway accepts from all clients. 0: no limit. More are refused with RESOURCE_EXHAUSTED; heartbeats, releases and watches are never refused.',
      group: 'Limits',
    },
    connectionsMax: {
      type: int({ min: 1 }),
      default: INPUT_LIMITS.connectionsMax,
      desc: 'Maximum number of connections to the client port; more are closed. The peer port has its own limits.',
      group: 'Limits',
    },
    connectionsPerAddressMax: {
      type: int({ min: 1 }),
      default: INPUT_LIMITS.connectionsPerAddressMax,
      desc: 'Maximum number of connections to the client port from one address (IPv6: one /64). Clients behind a NAT share an address.',
      group: 'Limits',
    },
    unfinishedBytesMax: {
      type: bytes({ min: 2 ** 20 }),
      default: INPUT_LIMITS.bytesMax,
      desc: 'Maximum bytes of partly received requests at one port. Above it, the port closes the connection whose request is oldest.',
      group: 'Limits',
    },
    unfinishedBytesPerAddressMax: {
      type: bytes({ min: 2 ** 20 }),
      default: INPUT_LIMITS.bytesPerAddressMax,
      desc: 'Maximum bytes of partly received requests from one address. At least --request-bytes-max plus 4 MiB.',
      group: 'Limits',
    },
    ...auditOptions,
    logLevel: { type: oneOf(LOG_LEVELS), default: 'info', desc: 'Lowest level that is logged.', group: 'Logging' },
    otlpEndpoint: {
      type: string({ placeholder: '<url>', maxLength: 1_000 }),
      desc: 'Where spans of requests are sent to whose callers pass a W3C trace context: the URL of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318. Without it, no spans are made.',
      group: 'Logging',
    },
    slowRequest: {
      type: durationMs({ min: 0, max: 60_000 }),
      default: 1_000,
      desc: 'Requests, commits and synced writes to the log that take this long are logged as warnings, with where the time went; at most one line of each kind a minute. Below 200ms, only a sample of requests is logged. 0: none.',
      group: 'Logging',
    },
    logFormat: {
      type: oneOf(['json', 'pretty']),
      default: 'json',
      desc: 'Log format: JSON for machines, plain lines for people. Logs go to standard error.',
      group: 'Logging',
    },
    drainDelay: {
      type: durationMs({ min: 0, max: 600_000 }),
      default: 0,
      desc: 'How long a stopping node still serves after /ready has turned 503 and other nodes lead, so that load balancers send clients elsewhere first.',
      group: 'Node',
    },
    shutdownTimeout: {
      type: durationMs({ min: 100, max: 600_000 }),
      default: 10_000,
      desc: 'Time allowed for a clean stop, after which the process exits anyway.',
      group: 'Node',
    },
  },
  relations: [
    {
      between: ['electionTimeout', 'heartbeatInterval'],
      holds: ({ electionTimeout, heartbeatInterval }) => electionTimeout > 2 * heartbeatInterval,
      must: 'be more than twice --heartbeat-interval',
    },
    {
      between: ['diskReserve'],
      holds: ({ diskReserve }) => diskReserve === 0 || diskReserve >= DISK_RESERVE_MIN,
      must: 'be 0 or at least 32MiB: with less, the log could not grow while the node makes room',
    },
    {
      between: ['drainDelay', 'shutdownTimeout'],
      holds: ({ drainDelay, shutdownTimeout }) => drainDelay < shutdownTimeout,
      must: 'be less than --shutdown-timeout, which includes it',
    },
    {
      between: ['snapshotBytesPerSecondMax'],
      holds: ({ snapshotBytesPerSecondMax: rate }) => rate === 0 || rate >= SNAPSHOT_RATE_MIN,
      must: 'be 0 or at least 1MiB: at lower rates, receivers time out',
    },
    {
      between: ['preSplit', 'preSplitCount'],
      holds: ({ preSplit, preSplitCount }) => preSplit.length === 0 || preSplitCount === 1,
      must: 'not be given together with --pre-split-count',
    },
    {
      between: ['connectionsPerAddressMax', 'connectionsMax'],
      holds: ({ connectionsPerAddressMax, connectionsMax }) => connectionsPerAddressMax <= connectionsMax,
      must: 'be at most --connections-max',
    },
    {
      between: ['unfinishedBytesPerAddressMax', 'unfinishedBytesMax'],
      holds: ({ unfinishedBytesPerAddressMax, unfinishedBytesMax }) =>
        unfinishedBytesPerAddressMax <= unfinishedBytesMax,
      must: 'be at most --unfinished-bytes-max',
    },
    {
      between: ['unfinishedBytesPerAddressMax', 'requestBytesMax'],
      holds: ({ unfinishedBytesPerAddressMax, requestBytesMax }) =>
        unfinishedBytesPerAddressMax >= requestBytesMax + REQUEST_ROOM_BYTES,
      must: 'be at least --request-bytes-max plus 4MiB, or the largest request could never arrive',
    },
    ...RANGE_RELATIONS,
    ...SECURITY_RELATIONS,
    ...TLS_RELATIONS,
    {
      between: ['snapshotBytesPerSecondBusy'],
      holds: ({ snapshotBytesPerSecondBusy: rate }) => rate === 0 || rate >= SNAPSHOT_RATE_MIN,
      must: 'be 0 or at least 1MiB: at lower rates, receivers time out',
    },
    {
      between: ['clientListen', 'peerListen', 'httpListen', 'healthListen'],
      holds: ({ clientListen, peerListen, httpListen, healthListen }) =>
        areDistinct([clientListen, peerListen, httpListen, healthListen]),
      must: 'differ from the other addresses to listen on',
    },
    {
      between: ['clientListen', 'httpListen', 'insecure'],
      holds: (options) => isExposureAllowed('clients', clientTlsMode(options) === 'tls', options),
      must: 'be a loopback address, as --http-listen must, or clients must use TLS: give --tls-cert and --tls-key ("remora cert" makes them), or allow plain text by --insecure clients',
    },
    {
      between: ['peerListen', 'insecure'],
      holds: (options) => isExposureAllowed('peers', peerTlsMode(options) === 'tls', options),
      must: 'be a loopback address, or nodes must use TLS: give --tls-peer-cert, --tls-peer-key and --tls-peer-ca ("remora cert" makes them), or allow plain text by --insecure peers',
    },
    {
      between: ['clientListen', 'httpListen', 'insecure'],
      holds: (options) => isExposureAllowed('anonymous', areClientsKnown(options), options),
      must: 'be a loopback address, as --http-listen must, or the cluster needs authentication: give --initial-root-password-file, or --tls-client-ca and --tls-client-certificates required (root then logs in with the certificate "remora cert client root" makes), or serve everybody by --insecure anonymous',
    },
    {
      between: ['advertisePeer', 'peerListen'],
      holds: ({ advertisePeer, peerListen }) => advertisePeer !== undefined || !isWildcard(peerListen),
      must: 'be set when listening on all addresses, or other nodes and clients could not reach this node',
    },
    {
      between: ['advertiseClient', 'clientListen'],
      holds: ({ advertiseClient, clientListen }) => advertiseClient !== undefined || !isWildcard(clientListen),
      must: 'be set when listening on all addresses, or other nodes and clients could not reach this node',
    },
    {
      between: ['join', 'initialCluster'],
      holds: ({ join, initialCluster }) => join.length === 0 || initialCluster.length === 0,
      must: 'not be given together with --initial-cluster: a node either founds a cluster or joins one',
    },
    {
      between: ['initialCluster', 'name'],
      holds: ({ initialCluster, name }) =>
        initialCluster.length === 0 || initialCluster.some((member) => member.name === name),
      must: 'contain this node by its --name',
    },
    {
      between: ['initialCluster'],
      holds: ({ initialCluster }) =>
        new Set(initialCluster.map(({ name }) => name)).size === initialCluster.length &&
        new Set(initialCluster.map(({ peer }) => formatAddress(peer))).size === initialCluster.length,
      must: 'name every member and every address only once',
    },
    {
      between: ['labels'],
      holds: ({ labels }) => new Set(labels.map(({ level }) => level)).size === labels.length,
      must: 'give each level only once',
    },
    {
      between: ['peerProxies', 'name'],
      holds: ({ peerProxies, name }) =>
        new Set(peerProxies.map((proxy) => proxy.name)).size === peerProxies.length &&
        !peerProxies.some((proxy) => proxy.name === name),
      must: 'name every other node at most once, and not this one',
    },
    {
      between: ['initialCluster', 'roles'],
      holds: ({ initialCluster, roles, join }) =>
        initialCluster.length > 0 || join.length > 0 || ROLES.every((role) => roles.includes(role)),
      must: 'be given (or --join) unless the node has all roles',
    },
    {
      between: ['roles', 'initialCluster'],
      holds: ({ roles, initialCluster }) => initialCluster.length === 0 || roles.includes('master'),
      must: 'contain "master", because the founding members are the masters. To add a node without this role, use --join and leave it out of --initial-cluster',
    },
  ],
});

export type NodeOptions = Options<typeof nodeSchema>;

/** The addresses at which others reach this node. */
export function advertised(options: NodeOptions): {
  readonly client: Address;
  readonly peer: Address;
  readonly http: Address;
} {
  const { clientListen, peerListen, httpListen } = options;
  const client = options.advertiseClient ?? clientListen;
  const http = isWildcard(httpListen) ? { host: client.host, port: httpListen.port } : httpListen;
  return { client, peer: options.advertisePeer ?? peerListen, http: options.advertiseHttp ?? http };
}

/** The names that HTTP clients may use for this node, besides localhost and IP addresses. */
export function httpNames(options: NodeOptions): ReadonlySet<string> {
  const { client, peer, http } = advertised(options);
  const { clientListen, peerListen, httpListen, healthListen } = options;
  const own = [clientListen, peerListen, httpListen, healthListen, client, peer, http];
  return new Set(
    [...own.map(({ host }) => hostName(host)), ...options.httpAllowedHosts].filter((name) => name !== undefined),
  );
}

/** A node's location, by level. */
export function labelsOf({ labels }: NodeOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(labels.map(({ level, value }) => [level, value]));
}

function isWildcard({ host }: Address): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Whether a process can listen on all of the addresses at once. */
function areDistinct(addresses: readonly Address[]): boolean {
  const overlap = (a: Address, b: Address): boolean =>
    a.port === b.port && (a.host === b.host || isWildcard(a) || isWildcard(b));
  return addresses.every((one, i) => !addresses.slice(i + 1).some((other) => overlap(one, other)));
}

/** Limits on what connections to a port may hold before they have sent something complete. */
export function inputLimitsOf(options: NodeOptions): Partial<InputLimits> {
  return {
    connectionsMax: options.connectionsMax,
    connectionsPerAddressMax: options.connectionsPerAddressMax,
    bytesMax: options.unfinishedBytesMax,
    bytesPerAddressMax: options.unfinishedBytesPerAddressMax,
  };
}
