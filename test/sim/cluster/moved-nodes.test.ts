import { SeededRandom } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import { expect, test } from 'vitest';
import { ScheduledCluster } from './scheduled-cluster.ts';

/** Elections, the report of each node, dials to machines that are gone (3 s each), and the pauses after them. */
const FOUND_MS = 60_000;
const FOUNDERS = [1, 2, 3];
const MACHINES = [1, 2, 3, 4, 5];

const peerOf = (machine: number, round: number): string => `127.0.0.1:${20_000 + 100 * round + machine}`;

/** Nodes lose their power and return at other addresses, one after the other within a second. */
async function move(
  cluster: ScheduledCluster,
  machines: readonly number[],
  random: SeededRandom,
  flagsOf: (machine: number) => Readonly<Record<string, string>>,
): Promise<void> {
  for (const machine of machines) cluster.node(machine).end(random.int(2) === 0);
  await cluster.run(random.int(1_000));
  for (const machine of machines) {
    cluster.node(machine).changeOptions(flagsOf(machine));
    cluster.node(machine).start();
    await cluster.run(random.int(200));
  }
}

/** Until the masters have all nodes, up and at these addresses, and all ranges have leaders. */
async function found(cluster: ScheduledCluster, addresses: ReadonlyMap<number, string>): Promise<void> {
  await cluster.until(FOUND_MS, 'all nodes at their addresses', () => {
    const view = cluster.master?.view();
    const there = view?.nodes.map(({ descriptor, state }) => `${descriptor.name} ${descriptor.peerAddress} ${state}`);
    const missing = MACHINES.map((machine) => `n${machine} ${addresses.get(machine)} up`).filter(
      (one) => there?.includes(one) !== true,
    );
    return missing.length === 0 && view?.leaders.length === view?.ranges.length ? '' : `missing: ${missing.join('; ')}`;
  });
}

const SEEDS = [31, 32, 33];

test.each(SEEDS)('a majority, all masters, all nodes move at once, and find each other (seed %i)', async (seed) => {
  const random = new SeededRandom(seed);
  const cluster = new ScheduledCluster(seed, { nodes: 5, later: 0 });
  await cluster.start();
  const addresses = new Map<number, string>();
  await cluster.until(FOUND_MS, 'five nodes', () => {
    for (const { descriptor } of cluster.master?.view().nodes ?? []) {
      addresses.set(Number(descriptor.name.slice(1)), descriptor.peerAddress);
    }
    return addresses.size === 5 ? '' : 'some are missing';
  });
  await cluster.splitAt([kvRoutingKey(Buffer.from('k'))]);
  const original = new Map(addresses);

  // The others have no hint, and the options of those that move are old, too.
  const majority = FOUNDERS.filter((machine) => machine !== FOUNDERS[seed % 3]);
  for (const machine of majority) addresses.set(machine, peerOf(machine, 1));
  await move(cluster, majority, random, (machine) => ({ peerListen: addresses.get(machine) ?? '' }));
  await found(cluster, addresses);

  // The masters know of each other by their lists; the other nodes are called by them.
  for (const machine of FOUNDERS) addresses.set(machine, peerOf(machine, 2));
  const list = (): string => FOUNDERS.map((machine) => `n${machine}=${addresses.get(machine)}`).join(',');
  await move(cluster, FOUNDERS, random, (machine) => ({
    peerListen: addresses.get(machine) ?? '',
    initialCluster: list(),
  }));
  await found(cluster, addresses);

  // Everybody has the addresses of the masters, without names.
  for (const machine of MACHINES) addresses.set(machine, peerOf(machine, 3));
  const join = FOUNDERS.map((machine) => addresses.get(machine)).join(',');
  await move(cluster, MACHINES, random, (machine) => ({
    peerListen: addresses.get(machine) ?? '',
    join,
    initialCluster: '',
  }));
  await found(cluster, addresses);

  // Each is where another one was, and where each was in the beginning another one is.
  for (const machine of FOUNDERS) addresses.set(machine, original.get((machine % 3) + 1) ?? '');
  await move(cluster, FOUNDERS, random, (machine) => ({
    peerListen: addresses.get(machine) ?? '',
    initialCluster: list(),
  }));
  await found(cluster, addresses);
  expect(cluster.ranges).toHaveLength(2);
});
