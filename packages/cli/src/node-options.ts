import {
  type Address,
  address,
  bool,
  bytes,
  defineOptions,
  durationMs,
  formatAddress,
  INPUT_LIMITS,
  type InputLimits,
  int,
  list,
  type Options,
  type OptionType,
  oneOf,
  parseAddress,
  string,
} from '@remora/base';
import { LOG_LEVELS } from '@remora/base/node';
import { LOCK_LIMITS } from '@remora/dataserver';
import { hostName } from '@remora/gateway';
import { RANGE_RELATIONS } from '@remora/master';
import { HOST_DEFAULTS } from '@remora/raft';
import { DEFAULT_BASE_PORT } from './local-ports.ts';
import { rangeOptions } from './range-options.ts';

export const ROLES = ['master', 'data', 'gateway'] as const;
export type NodeRole = (typeof ROLES)[number];

/** A node by its name, and an address that leads to its peer port. */
export interface Member {
  readonly name: string;
  readonly peer: Address;
}

/** Where a node stands, on one level: its zone, its rack. */
export interface Label {
  readonly level: string;
  readonly value: string;
}

const LABEL_LENGTH_MAX = 128;
const NAME = { regex: /^[A-Za-z0-9][A-Za-z0-9._-]*$/, says: 'letters, digits, dots, dashes and underscores' };
const port = () => int({ min: 1, max: 65_535 });

/** Below this, parts of a snapshot would come later than a receiver waits for them. */
const SNAPSHOT_RATE_MIN = 2 ** 20;
/** What a frame has around the largest request in it. */
const REQUEST_ROOM_BYTES = 4 * 2 ** 20;

/** Every option of a node: flags, `REMORA_*` variables, keys of the configuration file and `--help` come from here. */
export const nodeSchema = defineOptions({
  envPrefix: 'REMORA',
  definitions: {
    name: {
      type: string({ placeholder: '<name>', pattern: NAME, maxLength: 64 }),
      default: 'n1',
      desc: 'The name of this node, unique in its cluster. A data directory keeps the name it was made with.',
      group: 'Node',
    },
    dataDir: {
      type: string({ placeholder: '<path>' }),
      default: 'remora-data',
      desc: 'Where this node keeps everything. One process at a time; never copy it to a second node.',
      group: 'Node',
    },
    roles: {
      type: list(oneOf(ROLES), { minLength: 1 }),
      default: ROLES,
      desc: 'What this node does: cluster metadata, ranges, client entry. Founding members are the masters; a node that joins with this role takes the place of one that leaves.',
      group: 'Node',
    },
    listenHost: {
      type: string({ placeholder: '<host>' }),
      default: '127.0.0.1',
      desc: 'The address to listen on. Anything but loopback needs --insecure, as nothing is encrypted or checked.',
      group: 'Network',
    },
    clientPort: {
      type: port(),
      default: DEFAULT_BASE_PORT,
      desc: 'gRPC for clients: etcd v3 and Remora.',
      group: 'Network',
    },
    peerPort: { type: port(), default: 7481, desc: 'Messages between nodes.', group: 'Network' },
    httpPort: {
      type: port(),
      default: 7482,
      desc: 'HTTP: locks as JSON (/openapi.json), and what --health-listen has.',
      group: 'Network',
    },
    healthListen: {
      type: address(),
      default: { host: '127.0.0.1', port: 7483 },
      desc: 'Where /health, /ready and /metrics are answered on connections of their own, however busy the HTTP port is. Probes need it beyond loopback: 0.0.0.0:7483, without --insecure, as it changes nothing and shows no key or lock.',
      group: 'Network',
    },
    httpAllowedHosts: {
      type: list(hostname(), { maxLength: 100 }),
      default: [],
      desc: 'Names besides localhost, IP addresses and advertised names by which HTTP clients may ask (their Host header): that of a load balancer, say. Others are refused, so that no web page reaches the node by a name of its own.',
      group: 'Network',
    },
    advertiseClient: {
      type: address(),
      desc: 'The client address that others are told; the listening address unless given.',
      group: 'Network',
    },
    advertisePeer: {
      type: address(),
      desc: 'The peer address that others are told; the listening address unless given.',
      group: 'Network',
    },
    advertiseHttp: {
      type: address(),
      desc: 'The HTTP address that others are told; the listening address unless given.',
      group: 'Network',
    },
    insecure: {
      type: bool(),
      default: false,
      desc: 'Listen beyond loopback without TLS and authentication. Whoever reaches the ports may read and write all.',
      group: 'Network',
    },
    labels: {
      type: list(label(), { maxLength: 16 }),
      default: [],
      desc: 'Where this node stands (zone=a,rack=a3): replicas of a range are kept apart by zone, then rack, then host.',
      group: 'Cluster',
    },
    initialCluster: {
      type: list(member(), { maxLength: 9 }),
      default: [],
      desc: 'The founding members with their peer ports (n1=10.0.0.1:7481,n2=...), the same on each of them. Without it and --join, the node is a cluster of its own.',
      group: 'Cluster',
    },
    clusterToken: {
      type: string({ placeholder: '<token>', maxLength: 128 }),
      default: 'remora',
      desc: 'Tells clusters apart. Give each cluster its own, so that nodes of two clusters refuse each other.',
      group: 'Cluster',
    },
    join: {
      type: list(address(), { maxLength: 100 }),
      default: [],
      desc: 'Peer addresses of nodes of a running cluster, to join it as a further node.',
      group: 'Cluster',
    },
    peerProxies: {
      type: list(member(), { maxLength: 1_000 }),
      default: [],
      desc: 'Where this node dials other nodes, by name, instead of at the addresses that they advertise: tunnels or proxies that lead to them.',
      group: 'Cluster',
    },
    heartbeatInterval: {
      type: durationMs({ min: 10, max: 10_000 }),
      default: 75,
      desc: 'How often leaders tell followers that they are there. About the round trip between nodes, at least.',
      group: 'Raft',
    },
    electionTimeout: {
      type: durationMs({ min: 50, max: 60_000 }),
      default: 400,
      desc: 'How long followers wait for a leader, up to half as long again, before they elect another. Five heartbeats at least; more on slow disks and networks.',
      group: 'Raft',
    },
    snapshotBytesPerSecondMax: {
      type: bytes({ min: 0, max: 2 ** 40 }),
      default: HOST_DEFAULTS.snapshotBytesPerSecondMax,
      desc: 'How fast this node sends copies of ranges to nodes that were away too long, all together, while it has nothing else to do; 0: no limit.',
      group: 'Raft',
    },
    snapshotBytesPerSecondBusy: {
      type: bytes({ min: 0, max: 2 ** 40 }),
      default: HOST_DEFAULTS.snapshotBytesPerSecondBusy,
      desc: 'How fast it sends, and how fast it receives, such copies while there are reads or writes here; 0: as fast as otherwise. More of it costs those latency.',
      group: 'Raft',
    },
    snapshotSendsMax: {
      type: int({ min: 1, max: 100 }),
      default: HOST_DEFAULTS.snapshotSendsMax,
      desc: 'How many such copies this node sends at a time.',
      group: 'Raft',
    },
    snapshotReceivesMax: {
      type: int({ min: 1, max: 100 }),
      default: HOST_DEFAULTS.snapshotReceivesMax,
      desc: 'How many such copies this node receives at a time. Each needs room on the disk for a range, twice over.',
      group: 'Raft',
    },
    checkpointInterval: {
      type: durationMs({ min: 100, max: 3_600_000 }),
      default: 30_000,
      desc: 'How long changes stay in memory and in the log before they are written to LevelDB.',
      group: 'Storage',
    },
    checkpointBytes: {
      type: bytes({ min: 2 ** 16, max: 2 ** 32 }),
      default: 16 * 2 ** 20,
      desc: 'How many bytes of changes bring that forward. On their way to the disk they take up to four times this much memory.',
      group: 'Storage',
    },
    diskReserve: {
      type: bytes({ min: 0, max: 2 ** 50 }),
      default: 256 * 2 ** 20,
      desc: 'How much of its disk a node keeps free: below it, it takes in no values (RESOURCE_EXHAUSTED); locks, reads, deletes and compactions go on. 0: nothing.',
      group: 'Storage',
    },
    compactionRetention: {
      type: durationMs(),
      default: 3_600_000,
      desc: 'How long older versions of keys are kept for watches and reads of the past; 0 keeps them for ever.',
      group: 'Storage',
    },
    ...rangeOptions,
    requestBytesMax: {
      type: bytes({ min: 1024, max: 32 * 2 ** 20 }),
      default: 1.5 * 2 ** 20,
      desc: 'The largest request. The same on all nodes. Above 2 MiB, tell clients too (requestBytesMax).',
      group: 'Limits',
    },
    txnOpsMax: {
      type: int({ min: 1, max: 10_000 }),
      default: 128,
      desc: 'The most operations in one transaction. The same on all nodes.',
      group: 'Limits',
    },
    sessionsMax: {
      type: int({ min: 1 }),
      default: LOCK_LIMITS.sessionsMax,
      desc: "How many sessions one range takes, leases of etcd's clients included; more are refused with RESOURCE_EXHAUSTED.",
      group: 'Limits',
    },
    sessionLocksMax: {
      type: int({ min: 1 }),
      default: LOCK_LIMITS.sessionLocksMax,
      desc: 'How many locks of one range one session holds or waits for; a tenth more may come in.',
      group: 'Limits',
    },
    lockWaitersMax: {
      type: int({ min: 1, max: LOCK_LIMITS.waitersMax }),
      default: LOCK_LIMITS.waitersMax,
      desc: 'How many wait for one lock.',
      group: 'Limits',
    },
    lockDataBytesMax: {
      type: bytes({ min: 0, max: LOCK_LIMITS.dataBytesMax }),
      default: LOCK_LIMITS.dataBytesMax,
      desc: 'How much data the holder of a lock says with it; more is refused with INVALID_ARGUMENT. The same on all nodes.',
      group: 'Limits',
    },
    requestsPerSecondMax: {
      type: int({ min: 0, max: 10_000_000 }),
      default: 0,
      desc: 'How many requests per second this gateway takes from all its clients; 0: no limit. More are refused with RESOURCE_EXHAUSTED; heartbeats, releases and watches never are.',
      group: 'Limits',
    },
    connectionsMax: {
      type: int({ min: 1 }),
      default: INPUT_LIMITS.connectionsMax,
      desc: 'How many connections the port for clients takes at a time; more are closed. The port for nodes has limits of its own.',
      group: 'Limits',
    },
    connectionsPerAddressMax: {
      type: int({ min: 1 }),
      default: INPUT_LIMITS.connectionsPerAddressMax,
      desc: 'How many of them from one address (IPv6: from one /64). Clients behind one NAT share an address.',
      group: 'Limits',
    },
    unfinishedBytesMax: {
      type: bytes({ min: 2 ** 20 }),
      default: INPUT_LIMITS.bytesMax,
      desc: 'How much one port keeps of requests that have begun to arrive; then it closes the connection that began first.',
      group: 'Limits',
    },
    unfinishedBytesPerAddressMax: {
      type: bytes({ min: 2 ** 20 }),
      default: INPUT_LIMITS.bytesPerAddressMax,
      desc: 'How much of that from one address. At least a largest request and 4 MiB.',
      group: 'Limits',
    },
    logLevel: { type: oneOf(LOG_LEVELS), default: 'info', desc: 'How much is logged.', group: 'Logging' },
    logFormat: {
      type: oneOf(['json', 'pretty']),
      default: 'json',
      desc: 'JSON for machines, lines for people. Logs go to standard error.',
      group: 'Logging',
    },
    shutdownTimeout: {
      type: durationMs({ min: 100, max: 600_000 }),
      default: 10_000,
      desc: 'How long a stop may take before the process ends anyway.',
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
      between: ['snapshotBytesPerSecondMax'],
      holds: ({ snapshotBytesPerSecondMax: rate }) => rate === 0 || rate >= SNAPSHOT_RATE_MIN,
      must: 'be 0 or at least 1MiB: a receiver would wait in vain',
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
      must: 'be at least --request-bytes-max and 4MiB: such a request would never arrive',
    },
    ...RANGE_RELATIONS,
    {
      between: ['snapshotBytesPerSecondBusy'],
      holds: ({ snapshotBytesPerSecondBusy: rate }) => rate === 0 || rate >= SNAPSHOT_RATE_MIN,
      must: 'be 0 or at least 1MiB: a receiver would wait in vain',
    },
    {
      between: ['clientPort', 'peerPort', 'httpPort', 'healthListen'],
      holds: ({ clientPort, peerPort, httpPort, healthListen }) =>
        new Set([clientPort, peerPort, httpPort, healthListen.port]).size === 4,
      must: 'differ from the other ports',
    },
    {
      between: ['listenHost', 'insecure'],
      holds: ({ listenHost, insecure }) => insecure || isLoopback(listenHost),
      must: 'be a loopback address unless --insecure is given',
    },
    {
      between: ['advertisePeer', 'listenHost'],
      holds: ({ advertisePeer, listenHost }) => advertisePeer !== undefined || !isWildcard(listenHost),
      must: 'be given when listening on all addresses, as others could not reach this node otherwise',
    },
    {
      between: ['advertiseClient', 'listenHost'],
      holds: ({ advertiseClient, listenHost }) => advertiseClient !== undefined || !isWildcard(listenHost),
      must: 'be given when listening on all addresses, as others could not reach this node otherwise',
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
      must: 'name every member and every address once',
    },
    {
      between: ['labels'],
      holds: ({ labels }) => new Set(labels.map(({ level }) => level)).size === labels.length,
      must: 'give each level once',
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
      must: 'be given (or --join) for a node that does not have all roles',
    },
    {
      between: ['roles', 'initialCluster'],
      holds: ({ roles, initialCluster }) => initialCluster.length === 0 || roles.includes('master'),
      must: 'contain "master": founding members decide on the cluster together. Let this node --join instead, and leave it out of --initial-cluster',
    },
  ],
});

export type NodeOptions = Options<typeof nodeSchema>;

/** The addresses under which others reach this node. */
export function advertised(options: NodeOptions): {
  readonly client: Address;
  readonly peer: Address;
  readonly http: Address;
} {
  const host = options.listenHost;
  return {
    client: options.advertiseClient ?? { host, port: options.clientPort },
    peer: options.advertisePeer ?? { host, port: options.peerPort },
    http: options.advertiseHttp ?? { host, port: options.httpPort },
  };
}

/** The names by which HTTP clients may ask for this node, besides localhost and IP addresses. */
export function httpNames(options: NodeOptions): ReadonlySet<string> {
  const { client, peer, http } = advertised(options);
  const own = [options.listenHost, options.healthListen.host, client.host, peer.host, http.host];
  return new Set(
    [...own.map((host) => hostName(host)), ...options.httpAllowedHosts].filter((name) => name !== undefined),
  );
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** Where a node stands, by the name of the level. */
export function labelsOf({ labels }: NodeOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(labels.map(({ level, value }) => [level, value]));
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Read as it is compared. */
function hostname(): OptionType<string> {
  const expected = 'a host name without a port, such as remora.example.com';
  const parse = (text: string) => {
    const name = /[:[\]]/.test(text) ? undefined : hostName(text);
    return name === undefined ? ({ ok: false, expected } as const) : ({ ok: true, value: name } as const);
  };
  return {
    placeholder: '<host>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: (name) => name,
  };
}

function label(): OptionType<Label> {
  const expected = 'level=value, such as zone=eu-1';
  const parse = (text: string) => {
    const [level = '', value = '', ...rest] = text.split('=');
    return NAME.regex.test(level) && NAME.regex.test(value) && rest.length === 0 && text.length <= LABEL_LENGTH_MAX
      ? ({ ok: true, value: { level, value } } as const)
      : ({ ok: false, expected } as const);
  };
  return {
    placeholder: '<level=value>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: ({ level, value }) => `${level}=${value}`,
  };
}

function member(): OptionType<Member> {
  const expected = 'name=host:port, such as n1=10.0.0.1:7481';
  const parse = (text: string) => {
    const at = text.indexOf('=');
    const name = text.slice(0, Math.max(at, 0));
    const peer = parseAddress(text.slice(at + 1));
    return NAME.regex.test(name) && peer !== undefined
      ? ({ ok: true, value: { name, peer } } as const)
      : ({ ok: false, expected } as const);
  };
  return {
    placeholder: '<name=host:port>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: ({ name, peer }) => `${name}=${formatAddress(peer)}`,
  };
}

/** What connections to a port may hold while they have not said something whole. */
export function inputLimitsOf(options: NodeOptions): Partial<InputLimits> {
  return {
    connectionsMax: options.connectionsMax,
    connectionsPerAddressMax: options.connectionsPerAddressMax,
    bytesMax: options.unfinishedBytesMax,
    bytesPerAddressMax: options.unfinishedBytesPerAddressMax,
  };
}
