/**
 * Anonymous attackers open connections to all ports of a node and begin input of every kind (kinds.ts), without ever
 * finishing it. Clients that were connected before go on, and the node is probed.
 */

import { pause } from '../../e2e/eventually.ts';
import { type Cluster, withCluster } from '../../e2e/harness.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';
import { startLoad } from '../load-process.ts';
import type { AttackResult, AttackSpec, KindResult } from './attackers.ts';
import { type BystanderResult, Bystanders } from './bystanders.ts';

export interface AttackOptions {
  readonly connections: number;
  readonly seconds: number;
  readonly say?: (line: string) => void;
}

/** What a port holds, as its metrics say. */
export interface Sample {
  /** `client`, `peer`, `http`. */
  readonly unfinishedBytes: Readonly<Record<string, number>>;
  readonly unreadBytes: Readonly<Record<string, number>>;
  readonly residentBytes: number;
  /** The longest turn of the node's event loop since the last sample. */
  readonly turnMs: number;
}

export interface AttackReport {
  readonly options: Pick<AttackOptions, 'connections' | 'seconds'>;
  readonly kinds: readonly KindResult[];
  readonly bystanders: BystanderResult;
  /** How long each probe of health took, and those that got another answer than 200. */
  readonly health: { readonly longestMs: number; readonly probes: number; readonly failures: readonly string[] };
  readonly before: Sample;
  readonly during: readonly Sample[];
}

/** The budgets that the nodes are started with. One address may hold a part. */
export const UNFINISHED_BYTES_MAX = 64 << 20;
const UNFINISHED_PER_ADDRESS = 24 << 20;

const HOST = '127.0.0.1';
/** The clients share the first one. */
const ADDRESSES = [HOST, '127.0.0.2', '127.0.0.3'];
const LOOK_MS = 250;
/** Guards against hangs. */
const PROBE_MS = 30_000;

export function runAttack(options: AttackOptions): Promise<AttackReport> {
  const flags = {
    'unfinished-bytes-max': String(UNFINISHED_BYTES_MAX),
    'unfinished-bytes-per-address-max': String(UNFINISHED_PER_ADDRESS),
  };
  return withCluster({ flags }, async (cluster) => attacked(cluster, options));
}

async function attacked(cluster: Cluster, options: AttackOptions): Promise<AttackReport> {
  const { connections, seconds, say = () => {} } = options;
  const node = cluster.node(await cluster.leader());
  const bystanders = await Bystanders.connect(node);
  const before = await sampleOf(node);
  bystanders.begin();
  const spec: AttackSpec = { host: HOST, ports: node.ports, connections, addresses: ADDRESSES };
  const attackers = startLoad('load:attack', spec, cluster.dir);
  try {
    await attackers.message('attacking');
    say(`${connections} attackers at ${node.name}, ${seconds} s`);
    const observed = await observe(node, seconds);
    attackers.send({ type: 'stop' });
    const { kinds } = (await attackers.message('result')) as unknown as AttackResult;
    return {
      options: { connections, seconds },
      ...{ kinds, before, ...observed },
      bystanders: await bystanders.end(),
    };
  } finally {
    await attackers.stop();
  }
}

async function observe(node: NodeProcess, seconds: number): Promise<Pick<AttackReport, 'during' | 'health'>> {
  const during: Sample[] = [];
  const failures: string[] = [];
  let [longestMs, probes] = [0, 0];
  const endMs = performance.now() + seconds * 1_000;
  while (performance.now() < endMs) {
    const beganMs = performance.now();
    await probe(node).catch((error: unknown) => failures.push(String(error)));
    probes++;
    longestMs = Math.max(longestMs, performance.now() - beganMs);
    during.push(await sampleOf(node));
    await pause(LOOK_MS);
  }
  return { during, health: { longestMs, probes, failures } };
}

/** By a connection of its own, as probes have it. */
async function probe(node: NodeProcess): Promise<void> {
  const signal = AbortSignal.timeout(PROBE_MS);
  const response = await fetch(`http://${node.health}/health`, { signal, headers: { connection: 'close' } });
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  await response.text();
}

async function sampleOf(node: NodeProcess): Promise<Sample> {
  const signal = AbortSignal.timeout(PROBE_MS);
  const response = await fetch(`http://${node.health}/metrics`, { signal, headers: { connection: 'close' } });
  const text = await response.text();
  const gaugeOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  const byPort = (name: string): Record<string, number> =>
    Object.fromEntries(
      [...text.matchAll(new RegExp(`^${name}\\{port="(\\w+)"\\} (\\S+)$`, 'gm'))].map(([, port = '', value]) => [
        port,
        Number(value),
      ]),
    );
  return {
    unfinishedBytes: byPort('remora_port_unfinished_bytes'),
    unreadBytes: byPort('remora_port_unread_bytes'),
    residentBytes: gaugeOf('process_resident_memory_bytes'),
    turnMs: 1_000 * gaugeOf('nodejs_eventloop_lag_max_seconds'),
  };
}
