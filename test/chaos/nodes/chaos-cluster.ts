/**
 * A cluster of real node processes in which everything between two nodes, and between clients and nodes, goes through a
 * proxy that can fail.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { eventually } from '../../e2e/eventually.ts';
import { freePorts } from '../../e2e/free-ports.ts';
import { leaderOf } from '../../e2e/leader.ts';
import { NodeProcess, type Ports } from '../../e2e/node-process.ts';
import { CLIENTS, FaultNetwork } from '../network/fault-network.ts';

const HOST = '127.0.0.1';
const HEALTHY_WITHIN_MS = 60_000;

/** Checkpoints come several times a second, so that faults meet them. */
const FLAGS = { 'checkpoint-interval': '500ms', 'checkpoint-bytes': '256KiB', 'log-level': 'info' };

export interface ChaosClusterOptions {
  readonly dir: string;
  readonly nodes: number;
  readonly seed: number;
  /** Where a node keeps its data; below `dir` unless it says otherwise. */
  readonly dataDir?: (n: number) => string | undefined;
}

export class ChaosCluster {
  readonly nodes: readonly NodeProcess[];
  readonly network: FaultNetwork;
  /** Of the nodes' client ports, as clients reach them. */
  readonly endpoints: readonly string[];

  private constructor(nodes: readonly NodeProcess[], network: FaultNetwork) {
    this.nodes = nodes;
    this.network = network;
    this.endpoints = nodes.map((_, i) => network.address(CLIENTS, i + 1));
  }

  /** Founds a cluster and waits until it serves. */
  static async start({ dir, nodes: count, seed, dataDir }: ChaosClusterOptions): Promise<ChaosCluster> {
    const free = await freePorts(HOST, 3 * count);
    const ports = Array.from({ length: count }, (_, i): Ports => {
      const [client = 0, peer = 0, http = 0] = free.slice(3 * i, 3 * i + 3);
      return { client, peer, http };
    });
    const network = await FaultNetwork.open(ports, seed);
    const token = randomUUID();
    const members = ports.map(({ peer }, i) => `n${i + 1}=${HOST}:${peer}`).join(',');
    const nodes = ports.map((each, i) => {
      const name = `n${i + 1}`;
      const others = ports.flatMap((_, j) => (i === j ? [] : [`n${j + 1}=${network.address(i + 1, j + 1)}`]));
      return new NodeProcess({
        name,
        host: HOST,
        ports: each,
        dataDir: dataDir?.(i + 1) ?? join(dir, name),
        logPath: join(dir, `${name}.log`),
        flags: {
          ...FLAGS,
          'cluster-token': token,
          'initial-cluster': members,
          'peer-proxies': others.join(','),
          'advertise-client': network.address(CLIENTS, i + 1),
        },
      });
    });
    const cluster = new ChaosCluster(nodes, network);
    try {
      for (const node of nodes) node.start();
      await cluster.untilHealthy();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** The nth node, from 1, as nodes are named. */
  node(n: number): NodeProcess {
    const node = this.nodes[n - 1];
    if (node === undefined) throw new Error(`there is no node ${n}`);
    return node;
  }

  /** Starts a node that has ended, and waits until it can serve. @throws Error when it ends, or takes too long. */
  async bringBack(n: number): Promise<void> {
    const node = this.node(n);
    if (!node.running) node.start();
    await node.untilReady(HEALTHY_WITHIN_MS);
  }

  /** The number of the node that leads the range as far as those that answer know; undefined: none does. */
  leader(): Promise<number | undefined> {
    return leaderOf(this.nodes);
  }

  /** All nodes run and can serve. @throws Error when that takes too long, or one of them has ended. */
  async untilHealthy(timeoutMs = HEALTHY_WITHIN_MS): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.untilReady(timeoutMs)));
    await eventually('a node leads the range', () => this.leader(), { timeoutMs });
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.end('SIGKILL')));
    this.network.close();
  }
}
