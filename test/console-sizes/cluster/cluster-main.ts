/** The process of the simulated cluster: builds its state, then serves the ports of its first node. */
import { type Clock, sleep } from '@remora/base';
import type { ApiClient } from './api-client.ts';
import { divide, inOrder } from './divide.ts';
import { fill, queue } from './fill.ts';
import { runLoad } from './load.ts';
import { Pace } from './pace.ts';
import { SimCluster } from './sim-cluster.ts';
import { borders, type Sizes } from './state.ts';

export interface ClusterSpec {
  readonly sizes: Sizes;
  readonly basePort: number;
  /** Requests of clients per second of the cluster's time. */
  readonly perSecond: number;
}

/** What the process says, by IPC. */
export type ClusterNews =
  | { readonly type: 'progress'; readonly text: string }
  | { readonly type: 'ready'; readonly http: string }
  | { readonly type: 'time'; readonly virtualMs: number; readonly cpuMs: number };

/** Balancing is a matter of hours with the defaults of a product; here all replicas move at once. */
const WHILE_FILLED: Readonly<Record<string, string>> = {
  ...{ 'balance-operators-max': '5000', 'operators-max': '10000', 'sends-per-node-max': '100' },
  ...{ 'receives-per-node-max': '30', 'transfers-per-node-max': '1000', 'node-settle': '0s', 'move-cooldown': '0s' },
};
/** Small ranges stay as they are. */
const ALWAYS: Readonly<Record<string, string>> = { 'merges-under-way-max': '0' };
/** The cluster is founded with a tenth of its ranges, and the others are made of them (divide.ts). */
const DIVIDED = 10;
/** Replicas count as spread if no node has more than this times the mean. */
const SPREAD = 2;
const LEAST = 4;
const REPLICAS = 3;
const LOOK_MS = 1_000;
const TRIES = 60;

export async function serveCluster({ sizes, basePort, perSecond }: ClusterSpec): Promise<void> {
  const cluster = new SimCluster();
  const { clients, loop } = cluster;
  const client = (n: number): ApiClient => clients[n % clients.length] as ApiClient;
  const all = inOrder(borders(sizes));
  const join = await cluster.found({ borders: all.filter((_, i) => (i + 1) % DIVIDED === 0), basePort });
  const set = (settings: Readonly<Record<string, string>>) =>
    during(cluster, async () => {
      for (const [name, value] of Object.entries(settings)) await setting(cluster.clock, client(0), name, value);
    });
  await set({ ...WHILE_FILLED, ...ALWAYS });
  say('the cluster is founded');
  await join(sizes.nodes - cluster.nodes.length);
  say(`${sizes.nodes} nodes have joined`);
  await spread(cluster, sizes);
  // A replica that moves makes the masters give up a split of its range.
  await set({ scheduling: 'false' });
  await during(cluster, () => divide(cluster.clock, client(0), all));
  say(`there are ${sizes.ranges} ranges`);
  const filled = await during(cluster, () => fill(client, sizes));
  say(`${sizes.locks} locks, ${sizes.sessions} sessions and ${sizes.keys} keys are written`);
  await set(Object.fromEntries(['scheduling', ...Object.keys(WHILE_FILLED)].map((name) => [name, ''])));
  queue(client, filled);
  runLoad({ clock: cluster.clock, clients, perSecond, keys: sizes.keys });
  const pace = new Pace(cluster);
  process.on('message', (message: { readonly rate: number }) => {
    pace.rate = message.rate;
  });
  setInterval(() => {
    const { user, system } = process.cpuUsage();
    news({ type: 'time', virtualMs: loop.monotonicMs(), cpuMs: (user + system) / 1_000 });
  }, LOOK_MS);
  news({ type: 'ready', http: `127.0.0.1:${basePort + 2}` });
  await pace.run();
}

/** Lets time pass until `work` is done. */
async function during<Result>(cluster: SimCluster, work: () => Promise<Result>): Promise<Result> {
  let isOver = false;
  const result = work().finally(() => {
    isOver = true;
  });
  await cluster.until(() => isOver);
  return result;
}

/** The masters may have no leader yet. */
async function setting(clock: Clock, client: ApiClient, name: string, value: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await client.call('PUT', `/v1/cluster/settings/${name}`, { value });
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
      await sleep(clock, LOOK_MS);
    }
  }
}

/** Waits until the masters have spread the replicas. */
async function spread(cluster: SimCluster, { ranges, nodes }: Sizes): Promise<void> {
  const { loop } = cluster;
  const most = Math.max((SPREAD * ranges * REPLICAS) / (DIVIDED * nodes), LEAST);
  let lookMs = 0;
  let largest = 0;
  await cluster.until(() => {
    if (loop.monotonicMs() < lookMs) return false;
    lookMs = loop.monotonicMs() + LOOK_MS;
    const counts = cluster.nodes.map(({ roles }) => [...(roles?.store?.replicas() ?? [])].length);
    largest = Math.max(...counts);
    say(`the largest node has ${largest} replicas`);
    return largest <= most;
  });
}

function say(text: string): void {
  news({ type: 'progress', text });
}

function news(message: ClusterNews): void {
  process.send?.(message);
}
