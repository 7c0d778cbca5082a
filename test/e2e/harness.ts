/**
 * Clusters of real node processes on loopback, for tests.
 *
 * K1. Whatever happens in a test, its nodes are gone afterwards (`NodeProcess`, N2), and so are their data. If the test
 *     failed, data and logs stay, and the error says where.
 * K2. Waits poll for their condition, with a limit. No test sleeps in the hope that something has happened.
 */

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { leaderOf } from './leader.ts';
import { NodeProcess, nodePaths, type Ports, type Signal } from './node-process.ts';

const HOST = '127.0.0.1';

export interface ClusterOptions {
  /** The number of founding members. Default: 3. */
  readonly nodes?: number;
  /** How many of the founding members are started. Default: all. */
  readonly started?: number;
  /**
   * Nodes that join while the cluster is founded, in addition to the founding members. They are no masters. Default:
   * none.
   */
  readonly joining?: number;
  /** Flags of every node, without the dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Further flags of one node. `dir` is the directory of the cluster. */
  readonly flagsOf?: (name: string, dir: string) => Readonly<Record<string, string>>;
  /** Arguments of Node itself, before the program. */
  readonly nodeArguments?: readonly string[];
  /** False: the founding members alone cannot serve. The test starts more nodes first. */
  readonly awaitReady?: boolean;
}

export class Cluster {
  readonly dir: string;
  readonly token = randomUUID();
  readonly #nodes: NodeProcess[] = [];
  readonly #options: ClusterOptions;

  private constructor(dir: string, options: ClusterOptions) {
    this.dir = dir;
    this.#options = options;
  }

  /** Creates a cluster and waits until it serves. */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const cluster = new Cluster(mkdtempSync(join(tmpdir(), 'remora-e2e-')), options);
    try {
      const count = options.nodes ?? 3;
      const ports = await portsOf(count);
      const members = ports.map(({ peer }, i) => `n${i + 1}=${HOST}:${peer}`).join(',');
      for (const [i, each] of ports.entries()) cluster.#add(`n${i + 1}`, each, { 'initial-cluster': members });
      const seeds = ports.map(({ peer }) => peer);
      for (const each of await portsOf(options.joining ?? 0)) {
        cluster.#add(`n${cluster.#nodes.length + 1}`, each, { join: seeds.map((peer) => `${HOST}:${peer}`).join(',') });
      }
      for (const node of cluster.#nodes.slice(0, options.started)) node.start();
      if (options.awaitReady !== false) await cluster.untilReady();
      return cluster;
    } catch (error) {
      throw await cluster.failed(error);
    }
  }

  get nodes(): readonly NodeProcess[] {
    return this.#nodes;
  }

  /** Client endpoints of all nodes. */
  get endpoints(): readonly string[] {
    return this.#nodes.map(({ client }) => client);
  }

  /** The nth node, counted from 1, as in the nodes' names. */
  node(n: number): NodeProcess {
    const node = this.#nodes[n - 1];
    if (node === undefined) throw new Error(`there is no node ${n}`);
    return node;
  }

  kill(n: number, signal: Signal): void {
    this.node(n).signal(signal);
  }

  /** Starts a node that has ended. A running one is first ended (SIGTERM). Waits until it is ready. */
  async restart(n: number): Promise<void> {
    const node = this.node(n);
    await node.end('SIGTERM');
    node.start();
    await node.untilReady();
  }

  /** A new node, which joins through the running ones. It is not started yet. */
  async addJoining(flags: Readonly<Record<string, string>> = {}): Promise<NodeProcess> {
    const [ports] = await portsOf(1);
    if (ports === undefined) throw new Error('no ports');
    const join = this.#nodes.filter(({ running }) => running).map(({ peer }) => peer);
    return this.#add(`n${this.#nodes.length + 1}`, ports, { join: join.join(','), ...flags });
  }

  /** The number of the node that leads the first range, according to the newest term. */
  async leader(): Promise<number> {
    return eventually('a node leads the range', () => leaderOf(this.#nodes));
  }

  async untilReady(timeoutMs = 60_000): Promise<void> {
    await Promise.all(this.#nodes.filter(({ running }) => running).map((node) => node.untilReady(timeoutMs)));
  }

  /** Ends every node and removes the data, unless it is kept for inspection. */
  async stop(options: { readonly keep?: boolean } = {}): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.end('SIGKILL')));
    if (options.keep !== true) rmSync(this.dir, { recursive: true, force: true });
  }

  /** Ends every node, keeps the data and logs, and adds their location to the error. */
  async failed(error: unknown): Promise<unknown> {
    await this.stop({ keep: true });
    if (error instanceof Error) error.message += `\n(data and logs of the nodes are kept in ${this.dir})`;
    return error;
  }

  /** Stops every node as an operator does, and waits for them. Returns the exit codes. */
  async stopGracefully(): Promise<readonly (number | null)[]> {
    const exits = await Promise.all(this.#nodes.map((node) => node.end('SIGTERM')));
    return exits.map(({ code }) => code);
  }

  #add(name: string, ports: Ports, flags: Readonly<Record<string, string>>): NodeProcess {
    const { nodeArguments, flagsOf } = this.#options;
    const node = new NodeProcess({
      name,
      host: HOST,
      ports,
      ...nodePaths(this.dir, name),
      flags: { 'cluster-token': this.token, ...this.#options.flags, ...flagsOf?.(name, this.dir), ...flags },
      ...(nodeArguments === undefined ? {} : { nodeArguments }),
    });
    this.#nodes.push(node);
    return node;
  }
}

/** Runs `use` with a new cluster (K1). */
export async function withCluster<T>(options: ClusterOptions, use: (cluster: Cluster) => Promise<T>): Promise<T> {
  const cluster = await Cluster.start(options);
  let result: T;
  try {
    result = await use(cluster);
  } catch (error) {
    throw await cluster.failed(error);
  }
  await cluster.stop();
  return result;
}

async function portsOf(nodes: number): Promise<readonly Ports[]> {
  const ports = await freePorts(HOST, 4 * nodes);
  return Array.from({ length: nodes }, (_, i) => {
    const [client = 0, peer = 0, http = 0, health = 0] = ports.slice(4 * i, 4 * i + 4);
    return { client, peer, http, health };
  });
}
