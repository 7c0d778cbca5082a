/**
 * A cluster of real node processes. All traffic between two nodes, and between clients and nodes, goes through a proxy
 * that can fail.
 */
import { randomUUID } from 'node:crypto';
import { eventually } from '../../e2e/eventually.ts';
import { freePorts } from '../../e2e/free-ports.ts';
import { leaderOf } from '../../e2e/leader.ts';
import { NodeProcess, nodePaths, type Ports } from '../../e2e/node-process.ts';
import { MortalGateway } from '../gateways/mortal-gateway.ts';
import { CLIENTS, FaultNetwork } from '../network/fault-network.ts';
import type { Certificates } from '../users/certificates.ts';

const HOST = '127.0.0.1';
const HEALTHY_WITHIN_MS = 60_000;

/** Several checkpoints a second, so that faults coincide with them. */
const FLAGS = { 'checkpoint-interval': '500ms', 'checkpoint-bytes': '256KiB', 'log-level': 'info' };

export interface ChaosClusterOptions {
  readonly dir: string;
  readonly nodes: number;
  /** Gateways in separate processes. If there are any, clients know only these. */
  readonly gateways: number;
  /** Plain keys at which the initial ranges begin, in addition to the first range. */
  readonly borders: readonly string[];
  readonly seed: number;
  /** The program of the nodes. Default: the one that was built last. */
  readonly program?: string;
  /** For a cluster with TLS and authentication. Absent: plain text, and no users. */
  readonly certificates?: Certificates | undefined;
  /** The data directory of a node. Default: a folder in `dir`. */
  readonly dataDir?: (n: number) => string | undefined;
}

export class ChaosCluster {
  readonly nodes: readonly NodeProcess[];
  readonly gateways: readonly MortalGateway[];
  readonly network: FaultNetwork;
  readonly certificates: Certificates | undefined;
  /** The addresses at which clients reach the cluster. */
  readonly endpoints: readonly string[];

  private constructor(
    nodes: readonly NodeProcess[],
    gateways: readonly MortalGateway[],
    { network, certificates }: { readonly network: FaultNetwork; readonly certificates: Certificates | undefined },
  ) {
    this.nodes = nodes;
    this.gateways = gateways;
    this.network = network;
    this.certificates = certificates;
    this.endpoints =
      gateways.length > 0
        ? gateways.map((gateway) => gateway.process.client)
        : nodes.map((_, i) => network.address(CLIENTS, i + 1));
  }

  /** Creates a cluster and waits until it serves. */
  static async start(options: ChaosClusterOptions): Promise<ChaosCluster> {
    const ports = await portsOf(options.nodes);
    const network = await FaultNetwork.open(ports, options.seed);
    const token = randomUUID();
    const nodes = ports.map((_, i) => nodeOf(i + 1, { ...options, ports, network, token }));
    if (options.program !== undefined) for (const node of nodes) node.program = options.program;
    const gatewayPorts = await portsOf(options.gateways);
    const flags = { 'cluster-token': token, 'log-level': 'info' };
    const gateways = await Promise.all(
      gatewayPorts.map((each, i) => {
        const name = `g${i + 1}`;
        return MortalGateway.open({ name, host: HOST, ports: each, dir: options.dir, nodes, flags });
      }),
    );
    const cluster = new ChaosCluster(nodes, gateways, { network, certificates: options.certificates });
    try {
      for (const process of cluster.#processes) process.start();
      await cluster.untilHealthy();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** The nth node, counted from 1, as in the nodes' names. */
  node(n: number): NodeProcess {
    const node = this.nodes[n - 1];
    if (node === undefined) throw new Error(`there is no node ${n}`);
    return node;
  }

  /** Restarts a node that has ended, and waits until it serves. @throws Error if it ends or takes too long. */
  async bringBack(n: number): Promise<void> {
    const node = this.node(n);
    if (!node.running) node.start();
    await node.untilReady(HEALTHY_WITHIN_MS);
  }

  /** The number of the node that leads the range, as far as the answering nodes know. Undefined: there is no leader. */
  leader(): Promise<number | undefined> {
    return leaderOf(this.nodes);
  }

  /** Waits until all nodes run and serve. @throws Error if that takes too long or if a node has ended. */
  async untilHealthy(timeoutMs = HEALTHY_WITHIN_MS): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.untilReady(timeoutMs)));
    await eventually('a node leads the range', () => this.leader(), { timeoutMs });
  }

  async stop(): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway.stop()));
    await Promise.all(this.nodes.map((node) => node.end('SIGKILL')));
    this.network.close();
  }

  get #processes(): readonly NodeProcess[] {
    return [...this.nodes, ...this.gateways.map(({ process }) => process)];
  }
}

async function portsOf(processes: number): Promise<readonly Ports[]> {
  const free = await freePorts(HOST, 4 * processes);
  return Array.from({ length: processes }, (_, i): Ports => {
    const [client = 0, peer = 0, http = 0, health = 0] = free.slice(4 * i, 4 * i + 4);
    return { client, peer, http, health };
  });
}

/** The nth founding node. It dials the others through the network. */
function nodeOf(
  n: number,
  given: ChaosClusterOptions & {
    readonly ports: readonly Ports[];
    readonly network: FaultNetwork;
    readonly token: string;
  },
): NodeProcess {
  const { dir, dataDir, ports, network, token, borders, certificates } = given;
  const name = `n${n}`;
  const own = ports[n - 1];
  if (own === undefined) throw new Error(`there are no ports for ${name}`);
  const others = ports.flatMap((_, j) => (n === j + 1 ? [] : [`n${j + 1}=${network.address(n, j + 1)}`]));
  const paths = nodePaths(dir, name);
  const dirOfItsOwn = dataDir?.(n);
  return new NodeProcess({
    ...{ name, host: HOST, ports: own, ...paths },
    dataDir: dirOfItsOwn ?? paths.dataDir,
    flags: {
      ...FLAGS,
      // On a disk that is meant to run full, no reserve is kept for the node.
      ...(dirOfItsOwn !== undefined && { 'disk-reserve': '0' }),
      'cluster-token': token,
      'initial-cluster': ports.map(({ peer }, i) => `n${i + 1}=${HOST}:${peer}`).join(','),
      'peer-proxies': others.join(','),
      'advertise-client': network.address(CLIENTS, n),
      ...certificates?.flags(name),
      ...(borders.length > 0 && { 'pre-split': borders.join(',') }),
    },
  });
}
