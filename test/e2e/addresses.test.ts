/** Nodes that come back at other addresses: one, a minority, a majority, all of them, all of them in a circle. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { Cluster } from './harness.ts';

const HOST = '127.0.0.1';
const FOUNDERS = [1, 2, 3];

interface Addresses {
  readonly client: string;
  readonly peer: string;
}

describe('nodes that come back at other addresses', () => {
  let cluster: Cluster;
  /** Where each node is now, by its number. */
  const addresses = new Map<number, Addresses>();
  let round = 0;

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 3, joining: 1 });
    for (const n of [...FOUNDERS, 4]) addresses.set(n, cluster.node(n));
    await allKnown();
  }, 90_000);
  afterAll(() => cluster?.stop());

  const at = (n: number): Addresses => addresses.get(n) ?? { client: '', peer: '' };
  const members = (): string => FOUNDERS.map((n) => `n${n}=${at(n).peer}`).join(',');
  const peers = (): string => FOUNDERS.map((n) => at(n).peer).join(',');

  /** Stops these nodes, and gives each new addresses; `peers` overrides the new peer addresses. */
  async function move(numbers: readonly number[], newPeers: ReadonlyMap<number, string> = new Map()): Promise<void> {
    await Promise.all(numbers.map((n) => cluster.node(n).end(n % 2 === 0 ? 'SIGKILL' : 'SIGTERM')));
    const ports = await freePorts(HOST, 2 * numbers.length);
    for (const [i, n] of numbers.entries()) {
      const [client = 0, peer = 0] = ports.slice(2 * i, 2 * i + 2);
      addresses.set(n, { client: `${HOST}:${client}`, peer: newPeers.get(n) ?? `${HOST}:${peer}` });
    }
  }

  function start(numbers: readonly number[], flags: () => Readonly<Record<string, string>> = () => ({})): void {
    for (const n of numbers) {
      const { client, peer } = at(n);
      cluster.node(n).start({ 'client-listen': client, 'peer-listen': peer, ...flags() });
    }
  }

  /** Every node knows from the masters where every other one is. */
  async function allKnown(): Promise<void> {
    const wanted = [...addresses].map(([n, { peer }]) => `n${n} ${peer}`).sort();
    for (const { dataDir } of cluster.nodes) {
      await eventually(`${dataDir} has ${wanted.join(', ')}`, async () => {
        const { nodes } = JSON.parse(readFileSync(join(dataDir, 'nodes.json'), 'utf8')) as {
          readonly nodes: readonly { readonly name: string; readonly peerAddress: string }[];
        };
        const known = nodes.map(({ name, peerAddress }) => `${name} ${peerAddress}`).sort();
        return known.join() === wanted.join();
      });
    }
  }

  /** What was written before is there, and each node serves. */
  async function serves(): Promise<void> {
    await cluster.untilReady();
    await allKnown();
    round += 1;
    for (const n of [...FOUNDERS, 4]) {
      await using client = await connect({ endpoints: [at(n).client], connectTimeout: 30_000 });
      await client.kv.put(`round ${round} at ${n}`, 'here');
      for (let i = 1; i <= round; i++)
        expect((await client.kv.get(`round ${i} at ${n}`))?.value.toString()).toBe('here');
    }
  }

  test('one, with its other options as they were: it tells the masters', async () => {
    await serves();
    await move([3]);
    start([3]);
    await serves();
  });

  test('the node that has joined, likewise', async () => {
    await move([4]);
    start([4]);
    await serves();
  });

  test('a majority at once: the node that did not move learns from them where they are', async () => {
    await move([2, 3]);
    start([2, 3]);
    await serves();
  });

  test('all founders at once, with an edited --initial-cluster: the fourth node learns it from them', async () => {
    await move(FOUNDERS);
    start(FOUNDERS, () => ({ 'initial-cluster': members() }));
    await serves();
  });

  test('all nodes at once, with --join', async () => {
    await move([...FOUNDERS, 4]);
    start([...FOUNDERS, 4], () => ({ join: peers(), 'initial-cluster': '' }));
    await serves();
  });

  test('all in a circle: each at the former address of another one', async () => {
    const circle = new Map(FOUNDERS.map((n) => [n, at((n % 3) + 1).peer]));
    await move(FOUNDERS, circle);
    start(FOUNDERS, () => ({ 'initial-cluster': members() }));
    await serves();
  });

  test('a founder that lost its data is refused, with a new list of addresses and with the old one', async () => {
    const node = cluster.node(3);
    await node.end('SIGTERM');
    const others = `n1=${at(1).peer},n2=${at(2).peer}`;
    const lists = [
      { 'initial-cluster': `${others},n3=${at(3).peer}` },
      { 'initial-cluster': FOUNDERS.map((n) => `n${n}=${cluster.node(n).peer}`).join(','), 'peer-proxies': others },
    ];
    for (const [i, flags] of lists.entries()) {
      node.start({ 'data-dir': join(cluster.dir, `empty-${i}`), 'peer-listen': at(3).peer, ...flags });
      expect((await node.exit).code).toBe(3);
    }
    start([3], () => ({ 'initial-cluster': members() }));
    await serves();
  });
});
