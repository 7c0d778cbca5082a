/**
 * A cluster of one node in memory.
 *
 * MC1. Starting, restarting and stopping skip their waiting times, so they take what they compute. With open ports they
 *      take real time: the process waits for its sockets meanwhile.
 * MC2. After `stop` the process holds nothing of the cluster: neither timers, nor sockets, nor listeners.
 */
import { SeededRandom, taskContext } from '@remora/base';
import { RemoraClient, RemoraError } from 'remora';
import type { EntryDeps, NodeEntry } from '../node/platform.ts';
import type {
  ExpiringSession,
  TestAddresses,
  TestClientOptions,
  TestCluster,
  TestClusterOptions,
  TestDuration,
} from './api.ts';
import { ClientNetwork } from './client-network.ts';
import { KeepAlive } from './keep-alive.ts';
import { MemoryNode } from './memory-node.ts';
import { MemoryMachine } from './memory-platform.ts';
import { advanceMs, checkClientOptions, invalid, nodeSettings, type TestSettings, testSettings } from './settings.ts';
import { SharedClock } from './shared-clock.ts';

/** Clients of one cluster, closed ones too. */
const CLIENTS_MAX = 10_000;
/** Sessions that are remembered for a client. Those that have ended are forgotten when there are more. */
const SESSIONS_REMEMBERED = 1_000;
/** The client does not resolve it: there is one node. */
const ENDPOINT = 'test:7480';

interface Client {
  readonly network: ClientNetwork;
  readonly sessions: Set<bigint>;
}

export class MemoryCluster implements TestCluster {
  readonly clock: SharedClock;
  readonly addresses: TestAddresses | undefined;
  readonly #settings: TestSettings;
  readonly #startNode: () => Promise<MemoryNode>;
  readonly #keepAlive = new KeepAlive();
  readonly #clients = new Map<RemoraClient, Client>();
  #node: MemoryNode | undefined;
  #seed: number;
  #stopping: Promise<void> | undefined;

  static async start(given: TestClusterOptions): Promise<MemoryCluster> {
    const settings = testSettings(given);
    const { options, addresses } = await nodeSettings(settings);
    const clock = new SharedClock(settings);
    const machine = new MemoryMachine(options, new SeededRandom(settings.seed));
    const openPorts = settings.listens ? await portsOf(options, { clock, logger: settings.logger }) : undefined;
    const cluster = new MemoryCluster({ settings, clock, addresses }, (random) =>
      MemoryNode.start({ options, machine, clock, random, logger: settings.logger, openPorts }),
    );
    await cluster.#begin();
    return cluster;
  }

  private constructor(
    parts: {
      readonly settings: TestSettings;
      readonly clock: SharedClock;
      readonly addresses: TestAddresses | undefined;
    },
    startNode: (random: SeededRandom) => Promise<MemoryNode>,
  ) {
    this.#settings = parts.settings;
    this.clock = parts.clock;
    this.addresses = parts.addresses;
    this.#seed = parts.settings.seed;
    this.#startNode = () => startNode(this.#nextRandom());
  }

  async connect(options: TestClientOptions = {}): Promise<RemoraClient> {
    if (this.#stopping !== undefined) throw new RemoraError('UNAVAILABLE', 'the test cluster has been stopped');
    if (this.#clients.size >= CLIENTS_MAX) {
      throw new RemoraError('RESOURCE_EXHAUSTED', `a test cluster takes ${CLIENTS_MAX} clients; start another one`);
    }
    checkClientOptions(options);
    const sessions = new Set<bigint>();
    const network = new ClientNetwork(() => this.#node?.open((lease) => this.#sessionBegan(sessions, lease)));
    const { clock } = this;
    const ports = {
      ...{ clock, random: this.#nextRandom(), logger: this.#settings.logger, liveness: this.#keepAlive.port },
      connectLink: () => network.connect(),
      task: taskContext,
    };
    const opening = RemoraClient.open(ports, { discover: false, ...options, endpoints: ENDPOINT });
    const client = await (this.#settings.runs ? opening : clock.skipUntil(opening));
    this.#clients.set(client, { network, sessions });
    return client;
  }

  async advance(duration: TestDuration): Promise<void> {
    await this.clock.skip(advanceMs(duration));
  }

  async expire(session: ExpiringSession): Promise<void> {
    const node = this.#node;
    if (node === undefined) throw new RemoraError('UNAVAILABLE', 'the test node is not running');
    if (!(session instanceof RemoraClient)) return node.expire(leaseOf(session));
    const alive = [...this.#client(session).sessions].filter((lease) => node.isAlive(lease));
    if (alive.length === 0) throw new RemoraError('LEASE_NOT_FOUND', 'the client has no session that is alive');
    await Promise.all(alive.map((lease) => node.expire(lease)));
  }

  cutOff(client: RemoraClient): void {
    this.#client(client).network.cutOff();
  }

  reconnect(client: RemoraClient): void {
    this.#client(client).network.reconnect();
  }

  disconnect(client: RemoraClient): void {
    this.#client(client).network.disconnect();
  }

  async restart(): Promise<void> {
    const node = this.#node;
    if (node === undefined) throw new RemoraError('UNAVAILABLE', 'the test cluster has been stopped');
    this.#node = undefined;
    await this.#sparingTime(node.stop());
    await this.#begin();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #begin(): Promise<void> {
    this.#node = await this.#sparingTime(this.#startNode());
  }

  async #stop(): Promise<void> {
    const clients = [...this.#clients.keys()];
    await this.#sparingTime(Promise.all(clients.map((client) => client.close())));
    const node = this.#node;
    this.#node = undefined;
    if (node !== undefined) await this.#sparingTime(node.stop());
    this.#clients.clear();
    this.#keepAlive.end(); // MC2
    this.clock.clear();
  }

  /** MC1. */
  #sparingTime<T>(work: Promise<T>): Promise<T> {
    const { clock } = this;
    return this.#keepAlive.during(this.#settings.listens ? clock.runUntil(work) : clock.skipUntil(work));
  }

  #client(client: RemoraClient): Client {
    const found = this.#clients.get(client);
    if (found === undefined) throw invalid('the client is not one that this cluster has connected');
    return found;
  }

  #sessionBegan(sessions: Set<bigint>, lease: bigint): void {
    sessions.add(lease);
    if (sessions.size <= SESSIONS_REMEMBERED) return;
    for (const each of sessions) if (this.#node?.isAlive(each) !== true) sessions.delete(each);
  }

  #nextRandom(): SeededRandom {
    this.#seed = (this.#seed + 0x9e3779b9) >>> 0;
    return new SeededRandom(this.#seed);
  }
}

async function portsOf(
  options: EntryDeps['options'],
  ports: Pick<EntryDeps, 'clock' | 'logger'>,
): Promise<(deps: EntryDeps) => NodeEntry> {
  const { listeningEntry } = await import('./listening-entry.ts');
  return listeningEntry(options, ports);
}

/** @throws RemoraError INVALID_ARGUMENT for what names no session */
function leaseOf(session: Exclude<ExpiringSession, RemoraClient>): bigint {
  if (typeof session === 'bigint') return session;
  if (typeof session === 'object' && session !== null) {
    if ('lease' in session && typeof session.lease === 'bigint') return session.lease;
    if ('handle' in session && /^[0-9a-f]+$/.test(session.handle?.lease)) return BigInt(`0x${session.handle.lease}`);
  }
  throw invalid('expire: expected a client of the cluster, a session, a held lock or the id of a session');
}
