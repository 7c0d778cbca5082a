/** Faults of connections, clients and roles, and actions of operators at bad moments. */
import { type Fault, nothing } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';

/** One connection is reset, with everything in transit on it. */
const linkBroken: Fault<World> = {
  kind: 'connection reset',
  lastsMs: () => 0,
  begin: (world, { a }) => (world.links.breakOne(a) ? nothing : undefined),
};

/** A client's process ends in the middle of its work; another one replaces it. */
const clientGone: Fault<World> = {
  kind: 'client vanished',
  lastsMs: (random, electionMs) => random.int(6 * electionMs),
  begin: (world, { a, b }) => {
    const client = world.clientAt(a);
    if (!client.running) return undefined;
    client.vanish(b % 2 === 0);
    return () => world.startClient(client);
  },
};

/** A client stands still, sometimes for longer than its session lives. */
const clientPaused: Fault<World> = {
  kind: 'client paused',
  lastsMs: (random, electionMs) => 10 + random.int(16 * electionMs),
  begin: (world, { a }) => {
    const client = world.clientAt(a);
    const { lives } = client;
    if (!client.running || client.clock.paused) return undefined;
    client.clock.pause();
    return () => {
      if (client.running && client.lives === lives) client.clock.resume();
    };
  },
};

/** A client's clock runs at its own rate. */
const clientDrift: Fault<World> = {
  kind: 'client clock drift',
  lastsMs: (random, electionMs) => 500 + random.int(20 * electionMs),
  begin: (world, { a, b }) => {
    const { clock } = world.clientAt(a);
    const most = world.options.driftPerMille;
    if (most === 0) return undefined;
    clock.setRate(1 + ((b % (2 * most + 1)) - most) / 1_000);
    return () => clock.resetRate();
  },
};

/** A node is stopped as by an operator, and started again. */
const restart: Fault<World> = {
  kind: 'restart',
  lastsMs: (random, electionMs) => 100 + random.int(4 * electionMs),
  begin: (world, { a }) => {
    const node = world.nodeAt(world.target(a) - 1);
    if (!node.up || node.stopping || node.clock.paused) return undefined;
    let due = false;
    const again = (): void => {
      if (due) world.startAgain(node);
    };
    void node.stop().then(again);
    return () => {
      due = true;
      again(); // unless it is still stopping
    };
  },
};

/** Leadership of a range, or of the master group, is transferred. */
const transfer: Fault<World> = {
  kind: 'leadership transfer',
  lastsMs: () => 0,
  begin: (world, { a, b }) => {
    const leader = world.leaderOf(world.groupAt(a));
    const group = leader?.group(world.groupAt(a));
    const voters = group?.status().conf.voters ?? [];
    const to = voters[b % Math.max(1, voters.length)];
    if (leader === undefined || group === undefined || to === undefined || to === group.replicaId) return undefined;
    leader.enter(() => group.transferLeader(to));
    return nothing;
  },
};

/** The next write of a node's engine fails: the node must stop (traps 26). */
const failingStore: Fault<World> = {
  kind: 'failing store',
  lastsMs: () => 0,
  begin: (world, { a, c }) => {
    const node = world.nodeAt(world.target(a) - 1);
    if (!node.up) return undefined;
    node.diskFault = true;
    node.failStore();
    node.onDied = () => world.loop.setTimer(c % 500, () => world.startAgain(node));
    return nothing;
  },
};

export const CLUSTER_FAULTS: readonly Fault<World>[] = [
  linkBroken,
  clientGone,
  clientPaused,
  clientDrift,
  restart,
  transfer,
  failingStore,
];
