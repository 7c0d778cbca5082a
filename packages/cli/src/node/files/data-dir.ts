// I1. A data directory belongs to one node of one cluster permanently: name, cluster id, node id and incarnation never
//     change once written, and a process that expects others is refused.
// I2. The incarnation is drawn once, when the directory is created. A node that comes back under a known id with
//     another incarnation has lost its disk, and with it its votes and its log; all nodes that knew it refuse it (traps
//     10).
// I3. The basis of a decision is durable before the decision: the node's own identity and those of others are synced
//     before use.
// I4. What peers report about themselves is never stored. What the masters report about them is (known-nodes.ts).
// I5. A node that has run comes back with its log and its engine, or not at all: if one of them is empty (for example,
//     because a disk is not mounted), it has forgotten votes or acknowledgements that others count on, as if its disk
//     had been lost (I2).
// I6. A founder records its cluster's id, its own id and the names of all founders at its first start. The options make
//     them only then. Until the masters have named the node, the options must still make the same id; afterwards they
//     are not compared any more (cluster/cluster-identity.ts CI2, CI3).
import { rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type ClusterVersion, type Random, randomGuid, versionOf, versionText } from '@remora/base';
import { AuthImage, packPlain, schema, unpack } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import type { Founders } from '../cluster/cluster-identity.ts';
import type { KnownNode } from '../cluster/known-nodes.ts';
import { isNodeId, readKnownNodes, sameNodes } from '../cluster/known-nodes.ts';
import type { NodeAssignment } from '../node-records.ts';
import { readJsonFile, syncDirectory, writeJsonAtomically, writeJsonAtomicallySync } from './atomic-file.ts';
import { type DirLock, lockDirectory } from './dir-lock.ts';

/** Version of everything in a data directory that this program writes; it refuses newer ones. */
export const DATA_FORMAT_VERSION = 1;

const IDENTITY_FILE = 'node.json';
const NODES_FILE = 'nodes.json';
const AUTH_FILE = 'users.json';
const AUTH_IMAGE = schema.closedCodec(AuthImage);
/** Earlier versions stored the peers' incarnations here, as the peers reported them. Read until the masters answer. */
const PEERS_FILE = 'peers.json';

export interface NodeIdentity {
  readonly formatVersion: number;
  readonly name: string;
  /** Drawn when the directory was created (I2). */
  readonly incarnation: string;
  /** Absent until the node knows its cluster: at once for founders, after joining for others. */
  readonly clusterId?: string;
  readonly nodeId?: number;
  /** Only of founders: the names of all of them, in the order of their ids (I6). */
  readonly founders?: readonly string[];
  /** The version in force, as the node last knew it; absent until the masters have reported one. */
  readonly clusterVersion?: ClusterVersion;
}

export interface OpenDataDirOptions {
  readonly dir: string;
  readonly name: string;
  /** How the options found a cluster, unless the node joins one (I6). */
  readonly planned?: Founders | undefined;
  readonly random: Random;
}

/**
 * Locks a data directory for this process and reads its owner; initializes the directory if it is empty.
 * @throws {CommandError} `dataDir`: in use, of another node, cluster or newer version, or damaged.
 */
export async function openDataDir(options: OpenDataDirOptions): Promise<DataDir> {
  const dir = resolve(options.dir);
  const lock = await lockDirectory(dir);
  try {
    const identity = (await readIdentity(dir)) ?? (await createIdentity(dir, options));
    const nodes = await readNodes(dir);
    const dataDir = new DataDir({ dir, lock, identity, nodes, auth: await readAuth(dir) });
    expectSame(dir, 'node', options.name, identity.name);
    const taken = nodes.some(({ nodeId }) => nodeId === identity.nodeId);
    await expectWhole(dir, taken);
    await takePart(dataDir, options.planned, taken);
    return dataDir;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

export class DataDir {
  readonly path: string;
  readonly #lock: DirLock;
  #identity: NodeIdentity;
  #nodes: readonly KnownNode[];
  #auth: AuthImage | undefined;
  /** Whether `#nodes` is on disk: the last write succeeded. */
  #nodesWritten = true;
  #writes: Promise<void> = Promise.resolve();

  constructor(parts: {
    readonly dir: string;
    readonly lock: DirLock;
    readonly identity: NodeIdentity;
    readonly nodes: readonly KnownNode[];
    readonly auth: AuthImage | undefined;
  }) {
    this.path = parts.dir;
    this.#lock = parts.lock;
    this.#identity = parts.identity;
    this.#nodes = parts.nodes;
    this.#auth = parts.auth;
  }

  get identity(): NodeIdentity {
    return this.#identity;
  }

  /**
   * Records the cluster and the id that this node was assigned, durably; a repetition changes nothing.
   * @throws {CommandError} `dataDir` if the directory belongs to another cluster or node (I1).
   */
  async assign(given: NodeAssignment): Promise<void> {
    await this.#serially(async () => {
      const { clusterId, nodeId } = this.#identity;
      if (clusterId !== undefined) expectSame(this.path, 'cluster', given.clusterId, clusterId);
      if (nodeId !== undefined) expectSame(this.path, 'node id', String(given.nodeId), String(nodeId));
      if (clusterId !== undefined && nodeId !== undefined && given.founders === undefined) return;
      const identity = { ...this.#identity, ...given };
      await writeJsonAtomically(join(this.path, IDENTITY_FILE), asStored(identity));
      this.#identity = identity;
    });
  }

  get knownNodes(): readonly KnownNode[] {
    return this.#nodes;
  }

  /**
   * Unchanged nodes cost nothing. Changes are rare, so the write may block. If the write fails, the nodes are valid for
   * this life, and the next call writes them again.
   */
  rememberNodes(nodes: readonly KnownNode[]): void {
    if (this.#nodesWritten && sameNodes(nodes, this.#nodes)) return;
    this.#nodes = nodes;
    this.#nodesWritten = false;
    writeJsonAtomicallySync(join(this.path, NODES_FILE), { formatVersion: DATA_FORMAT_VERSION, nodes });
    rmSync(join(this.path, PEERS_FILE), { force: true });
    this.#nodesWritten = true;
  }

  get knownAuth(): AuthImage | undefined {
    return this.#auth;
  }

  /** Changes are rare, so the write may block. The file has hashes of passwords and the key of tokens (0600). */
  rememberAuth(image: AuthImage): void {
    this.#auth = image;
    const encoded = Buffer.from(packPlain(AUTH_IMAGE.encode(image))).toString('base64');
    writeJsonAtomicallySync(join(this.path, AUTH_FILE), { formatVersion: DATA_FORMAT_VERSION, image: encoded });
  }

  get clusterVersion(): ClusterVersion | undefined {
    return this.#identity.clusterVersion;
  }

  /** A version rises rarely, so the write may block. */
  rememberVersion(clusterVersion: ClusterVersion): void {
    const identity = { ...this.#identity, clusterVersion };
    writeJsonAtomicallySync(join(this.path, IDENTITY_FILE), asStored(identity));
    this.#identity = identity;
  }

  /** Releases the directory after pending writes. */
  async close(): Promise<void> {
    await this.#serially(() => this.#lock.release());
  }

  /** One write at a time; a failed one fails its caller and not the next. */
  #serially(work: () => Promise<void>): Promise<void> {
    const done = this.#writes.then(work);
    this.#writes = done.catch(() => {});
    return done;
  }
}

/** I6. `taken`: the masters have named the node. */
async function takePart(dataDir: DataDir, planned: Founders | undefined, taken: boolean): Promise<void> {
  const { clusterId = planned?.clusterId, founders } = dataDir.identity;
  if (planned === undefined) return;
  if (founders === undefined && clusterId === planned.clusterId) {
    return dataDir.assign({ clusterId, nodeId: planned.ownNodeId, founders: planned.names });
  }
  if (taken || founders === undefined || clusterId === planned.clusterId) return;
  const message =
    `${dataDir.path} was made for another --initial-cluster or --cluster-token, and no cluster was founded with it that ` +
    'this node knows of. Start it with the options of its first start; to found a cluster with the new ones, ' +
    'begin with an empty directory on every member';
  throw new CommandError('dataDir', message);
}

function expectSame(dir: string, what: string, expected: string, found: string): void {
  if (expected === found) return;
  const advice = 'use another data directory, or the options with which this one was created';
  throw new CommandError('dataDir', `${dir} belongs to ${what} ${found}, not to ${what} ${expected}; ${advice}`);
}

/**
 * I5. The log is created before the engine; both exist durably before the cluster has accepted the node. Other losses
 *     of engine rows are detected by the comparison with the log (raft/multi/host/group/recovery.ts).
 */
async function expectWhole(dir: string, taken: boolean): Promise<void> {
  const isEmpty = async (part: string) => (await readdir(join(dir, part)).catch(ignoreAbsent)).length === 0;
  const noEngine = await isEmpty('engine');
  const lost = (await isEmpty('log')) && (taken || !noEngine) ? 'log' : taken && noEngine ? 'engine' : undefined;
  if (lost === undefined) return;
  const message =
    `${dir}: ${lost}/ is empty, but this node has run before. Is its disk mounted? Without that data the node must not serve ` +
    'under its old name: replace it by a new node with another name and an empty directory';
  throw new CommandError('dataDir', message);
}

function ignoreAbsent(error: NodeJS.ErrnoException): readonly string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}

async function createIdentity(dir: string, { name, random }: OpenDataDirOptions): Promise<NodeIdentity> {
  // The root of a mounted file system contains a `lost+found`.
  const ours = new Set(['lock', 'node.json.tmp', 'lost+found']);
  const found = (await readdir(dir)).filter((entry) => !ours.has(entry));
  if (found.length > 0) {
    const list = found.slice(0, 5).join(', ');
    throw new CommandError('dataDir', `${dir} is not empty (${list}) but has no node.json; it is not a data directory`);
  }
  const identity = { formatVersion: DATA_FORMAT_VERSION, name, incarnation: randomGuid(random) };
  await writeJsonAtomically(join(dir, IDENTITY_FILE), identity);
  await syncDirectory(dirname(dir));
  return identity;
}

/** Versions are written as people read them. */
function asStored({ clusterVersion, ...identity }: NodeIdentity): object {
  return clusterVersion === undefined ? identity : { ...identity, clusterVersion: versionText(clusterVersion) };
}

async function readIdentity(dir: string): Promise<NodeIdentity | undefined> {
  const value = await readVersioned(dir, IDENTITY_FILE);
  if (value === undefined) return undefined;
  const { formatVersion, name, incarnation, clusterId, nodeId, founders } = value;
  const clusterVersion = value.clusterVersion === undefined ? undefined : versionOf(String(value.clusterVersion));
  const whole =
    typeof name === 'string' &&
    typeof incarnation === 'string' &&
    (clusterId === undefined || typeof clusterId === 'string') &&
    (nodeId === undefined || isNodeId(nodeId)) &&
    (founders === undefined || isNames(founders)) &&
    (value.clusterVersion === undefined || clusterVersion !== undefined);
  if (!whole) throw damaged(dir, IDENTITY_FILE);
  return {
    formatVersion,
    name,
    incarnation,
    ...(clusterId === undefined ? {} : { clusterId }),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(founders === undefined ? {} : { founders }),
    ...(clusterVersion === undefined ? {} : { clusterVersion }),
  };
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

async function readNodes(dir: string): Promise<readonly KnownNode[]> {
  const read = (file: string): Promise<unknown> => readJsonFile(dir, file).catch(() => undefined);
  const incarnations = readPeers(await read(PEERS_FILE));
  return readKnownNodes(await read(NODES_FILE), (nodeId) => incarnations.get(nodeId));
}

/** @throws {CommandError} `dataDir` if it is damaged: without it, a node could not tell that authentication is on. */
async function readAuth(dir: string): Promise<AuthImage | undefined> {
  const value = await readVersioned(dir, AUTH_FILE);
  if (value === undefined) return undefined;
  try {
    return AUTH_IMAGE.decode(unpack(Buffer.from(String(value.image), 'base64'), 0));
  } catch (cause) {
    throw damaged(dir, AUTH_FILE, cause);
  }
}

function readPeers(value: unknown): ReadonlyMap<number, string> {
  if (typeof value !== 'object' || value === null || !('peers' in value)) return new Map();
  const entries: readonly (readonly [string, unknown])[] = Object.entries(value.peers ?? {});
  return new Map(entries.flatMap(([id, text]) => (typeof text === 'string' ? [[Number(id), text] as const] : [])));
}

type Versioned = Readonly<Record<string, unknown>> & { readonly formatVersion: number };

async function readVersioned(dir: string, name: string): Promise<Versioned | undefined> {
  const value = await readJsonFile(dir, name).catch((cause) => {
    throw damaged(dir, name, cause);
  });
  if (value === undefined) return undefined;
  if (!isVersioned(value)) throw damaged(dir, name);
  if (value.formatVersion > DATA_FORMAT_VERSION) {
    const versions = `has format ${value.formatVersion}; this program reads up to ${DATA_FORMAT_VERSION}`;
    throw new CommandError('dataDir', `${join(dir, name)} ${versions}; use a newer version of remora`);
  }
  return value;
}

function isVersioned(value: unknown): value is Versioned {
  return (
    typeof value === 'object' && value !== null && 'formatVersion' in value && Number.isSafeInteger(value.formatVersion)
  );
}

function damaged(dir: string, name: string, cause?: unknown): CommandError {
  return new CommandError('dataDir', `${join(dir, name)} is damaged; restore it or start with an empty directory`, {
    cause,
  });
}
