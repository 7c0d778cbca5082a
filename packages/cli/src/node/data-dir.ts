// I1. A data directory belongs to one node of one cluster, for good: name, cluster id, node id and incarnation never
//     change once written, and a process that expects others is refused.
// I2. The incarnation is drawn once, when the directory is made. A node that comes back under a known id with another
//     incarnation has lost its disk, and with it its votes and its log; whoever knew it refuses it (traps 10).
// I3. What a decision rests on is durable before the decision: identity and peers are synced before use.
// I4. What peers say of themselves is bounded before it is kept: their number, and the length of an incarnation.
// I5. A node that has run comes back with its log and its engine, or not at all: where one of them is empty (a disk that is
//     not mounted), it has forgotten votes or acknowledgements that others count on, as if its disk had been lost (I2).
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Random, randomGuid, ServiceError } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import { readJsonFile, syncDirectory, writeJsonAtomically, writeJsonAtomicallySync } from './atomic-file.ts';
import { type DirLock, lockDirectory } from './dir-lock.ts';
import { readKnownNodes, sameNodes } from './known-nodes.ts';
import type { KnownNode } from './platform.ts';

/** Version of everything in a data directory that this program writes; it refuses newer ones. */
export const DATA_FORMAT_VERSION = 1;

/** Ids of nodes are never used again; a cluster that has had more nodes is none of this program. */
const PEERS_MAX = 10_000;
const NODES_FILE = 'nodes.json';
/** An incarnation is a GUID; other versions may draw other names. */
const INCARNATION_CHARS_MAX = 64;

export interface NodeIdentity {
  readonly formatVersion: number;
  readonly name: string;
  /** Drawn when the directory was made (I2). */
  readonly incarnation: string;
  /** Absent until the node knows its cluster: at once for founders, after joining for others. */
  readonly clusterId?: string;
  readonly nodeId?: number;
}

export interface OpenDataDirOptions {
  readonly dir: string;
  readonly name: string;
  /** What the node's options say, where they do; compared with what the directory says (I1). */
  readonly clusterId?: string;
  readonly nodeId?: number;
  readonly random: Random;
}

/**
 * Takes a data directory for this process and reads who it belongs to; makes a new one when the directory is empty.
 * @throws {CommandError} `dataDir`: in use, of another node, cluster or newer version, or damaged.
 */
export async function openDataDir(options: OpenDataDirOptions): Promise<DataDir> {
  const dir = resolve(options.dir);
  const lock = await lockDirectory(dir);
  try {
    const identity = (await readIdentity(dir)) ?? (await createIdentity(dir, options));
    const peers = await readPeers(dir);
    const nodes = readKnownNodes(await readJsonFile(dir, NODES_FILE).catch(() => undefined));
    const dataDir = new DataDir({ dir, lock, identity, peers, nodes });
    expectSame(dir, 'node', options.name, identity.name);
    const taken = nodes.some(({ nodeId }) => nodeId === identity.nodeId);
    await expectWhole(dir, taken);
    const { clusterId, nodeId } = options;
    if (clusterId !== undefined && nodeId !== undefined) await dataDir.assign({ clusterId, nodeId });
    else if (clusterId !== undefined && identity.clusterId !== undefined) {
      expectSame(dir, 'cluster', clusterId, identity.clusterId);
    }
    return dataDir;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

export class DataDir {
  readonly path: string;
  readonly #lock: DirLock;
  readonly #peers: Map<number, string>;
  #identity: NodeIdentity;
  #nodes: readonly KnownNode[];
  #writes: Promise<void> = Promise.resolve();

  constructor(parts: {
    readonly dir: string;
    readonly lock: DirLock;
    readonly identity: NodeIdentity;
    readonly peers: Map<number, string>;
    readonly nodes: readonly KnownNode[];
  }) {
    this.path = parts.dir;
    this.#lock = parts.lock;
    this.#identity = parts.identity;
    this.#peers = parts.peers;
    this.#nodes = parts.nodes;
  }

  get identity(): NodeIdentity {
    return this.#identity;
  }

  /**
   * Records the cluster and the id that this node was given, durably; the same again changes nothing.
   * @throws {CommandError} `dataDir` when the directory belongs to another cluster or node (I1).
   */
  async assign(given: { readonly clusterId: string; readonly nodeId: number }): Promise<void> {
    await this.#serially(async () => {
      const { clusterId, nodeId } = this.#identity;
      if (clusterId !== undefined) expectSame(this.path, 'cluster', given.clusterId, clusterId);
      if (nodeId !== undefined) expectSame(this.path, 'node id', String(given.nodeId), String(nodeId));
      if (clusterId !== undefined && nodeId !== undefined) return;
      const identity = { ...this.#identity, ...given };
      await writeJsonAtomically(join(this.path, 'node.json'), identity);
      this.#identity = identity;
    });
  }

  /**
   * Checks who a peer says it is against what is remembered, and gives the error to refuse it with: `NODE_CONFLICT`
   * when its id is known with another incarnation (I2), otherwise one that says what is out of bounds (I4). A peer seen for the first time is remembered, durably, before this
   * returns (I3); that happens once per peer, and so it may block.
   */
  checkPeer(peer: { readonly nodeId: number; readonly incarnation: string }): ServiceError | undefined {
    const { nodeId, incarnation } = this.#identity;
    const known = peer.nodeId === nodeId ? incarnation : this.#peers.get(peer.nodeId);
    if (known === peer.incarnation) return undefined;
    if (known !== undefined) {
      return new ServiceError(
        'NODE_CONFLICT',
        `node ${peer.nodeId} came back without its data (incarnation ${peer.incarnation}, known as ${known}); ` +
          'let it join as a new node: another --name, an empty data directory, and --join',
        { details: { nodeId: peer.nodeId, known, given: peer.incarnation } },
      );
    }
    const { length } = peer.incarnation;
    if (length === 0 || length > INCARNATION_CHARS_MAX) {
      return new ServiceError('INVALID_ARGUMENT', `an incarnation has 1 to ${INCARNATION_CHARS_MAX} characters`);
    }
    if (this.#peers.size >= PEERS_MAX) {
      return new ServiceError('RESOURCE_EXHAUSTED', `this node has met ${PEERS_MAX} others, and remembers no more`);
    }
    const next = new Map(this.#peers).set(peer.nodeId, peer.incarnation);
    const peers = Object.fromEntries([...next].sort(([a], [b]) => a - b));
    try {
      writeJsonAtomicallySync(join(this.path, 'peers.json'), { formatVersion: DATA_FORMAT_VERSION, peers });
    } catch (error) {
      // It asks again later: until it can be remembered it has met nobody here (I3).
      const reason = error instanceof Error ? error.message : String(error);
      return new ServiceError('UNAVAILABLE', `this node cannot remember node ${peer.nodeId} now: ${reason}`);
    }
    this.#peers.set(peer.nodeId, peer.incarnation);
    return undefined;
  }

  get knownNodes(): readonly KnownNode[] {
    return this.#nodes;
  }

  /** The same as before costs nothing. */
  rememberNodes(nodes: readonly KnownNode[]): Promise<void> {
    if (sameNodes(nodes, this.#nodes)) return Promise.resolve();
    this.#nodes = nodes;
    return this.#serially(() =>
      writeJsonAtomically(join(this.path, NODES_FILE), { formatVersion: DATA_FORMAT_VERSION, nodes }),
    );
  }

  /** Lets the directory go, after what is being written. */
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

function expectSame(dir: string, what: string, expected: string, found: string): void {
  if (expected === found) return;
  const advice = 'use another data directory, or the options that this one was made with';
  throw new CommandError('dataDir', `${dir} belongs to ${what} ${found}, not to ${what} ${expected}; ${advice}`);
}

/**
 * I5. The log is made before the engine; both are there, durably, before the cluster has taken the node. Rows of the engine
 * that are lost otherwise are found when the log is compared with them (raft/multi/host/group/recovery.ts).
 */
async function expectWhole(dir: string, taken: boolean): Promise<void> {
  const isEmpty = async (part: string) => (await readdir(join(dir, part)).catch(ignoreAbsent)).length === 0;
  const noEngine = await isEmpty('engine');
  const lost = (await isEmpty('log')) && (taken || !noEngine) ? 'log' : taken && noEngine ? 'engine' : undefined;
  if (lost === undefined) return;
  const message =
    `${dir}: ${lost}/ is empty, and this node has run before. Is its disk mounted? Without what was there it must not serve ` +
    'as the one it was: it is replaced by a new one, under another name and with an empty directory';
  throw new CommandError('dataDir', message);
}

function ignoreAbsent(error: NodeJS.ErrnoException): readonly string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}

async function createIdentity(dir: string, { name, random }: OpenDataDirOptions): Promise<NodeIdentity> {
  // The root of a mounted file system brings its own `lost+found`.
  const ours = new Set(['lock', 'node.json.tmp', 'lost+found']);
  const found = (await readdir(dir)).filter((entry) => !ours.has(entry));
  if (found.length > 0) {
    const list = found.slice(0, 5).join(', ');
    throw new CommandError('dataDir', `${dir} is not empty (${list}) but has no node.json; it is not a data directory`);
  }
  const identity = { formatVersion: DATA_FORMAT_VERSION, name, incarnation: randomGuid(random) };
  await writeJsonAtomically(join(dir, 'node.json'), identity);
  await syncDirectory(dirname(dir));
  return identity;
}

async function readIdentity(dir: string): Promise<NodeIdentity | undefined> {
  const value = await readVersioned(dir, 'node.json');
  if (value === undefined) return undefined;
  const { formatVersion, name, incarnation, clusterId, nodeId } = value;
  const whole =
    typeof name === 'string' &&
    typeof incarnation === 'string' &&
    (clusterId === undefined || typeof clusterId === 'string') &&
    (nodeId === undefined || isNodeId(nodeId));
  if (!whole) throw damaged(dir, 'node.json');
  return {
    formatVersion,
    name,
    incarnation,
    ...(clusterId === undefined ? {} : { clusterId }),
    ...(nodeId === undefined ? {} : { nodeId }),
  };
}

async function readPeers(dir: string): Promise<Map<number, string>> {
  const value = await readVersioned(dir, 'peers.json');
  const known = value?.peers ?? {};
  if (typeof known !== 'object' || Array.isArray(known)) throw damaged(dir, 'peers.json');
  const entries = Object.entries(known);
  return new Map(
    entries.map(([id, incarnation]) => {
      const nodeId = Number(id);
      if (!isNodeId(nodeId) || typeof incarnation !== 'string') throw damaged(dir, 'peers.json');
      return [nodeId, incarnation];
    }),
  );
}

function isNodeId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

type Versioned = Readonly<Record<string, unknown>> & { readonly formatVersion: number };

async function readVersioned(dir: string, name: string): Promise<Versioned | undefined> {
  const value = await readJsonFile(dir, name).catch((cause) => {
    throw damaged(dir, name, cause);
  });
  if (value === undefined) return undefined;
  if (!isVersioned(value)) throw damaged(dir, name);
  if (value.formatVersion > DATA_FORMAT_VERSION) {
    const versions = `has format ${value.formatVersion}, and this program knows ${DATA_FORMAT_VERSION}`;
    throw new CommandError('dataDir', `${join(dir, name)} ${versions}; use a newer program`);
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
