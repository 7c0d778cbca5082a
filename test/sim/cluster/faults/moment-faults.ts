/** Actions and faults at the moment of greatest effect. */
import { type Fault, nothing } from '../../common/faults/fault.ts';
import type { SimNode } from '../node.ts';
import { FIRST_RANGE } from '../topology.ts';
import type { World } from '../world.ts';

/** A new machine joins the running cluster. */
const joined: Fault<World> = {
  kind: 'node joined',
  lastsMs: () => 0,
  begin: (world) => {
    const node = world.nodes.find(({ lives }) => lives === 0);
    if (node === undefined) return undefined;
    world.startAgain(node);
    return nothing;
  },
};

/** The next gateway that a client sends a request to is killed, before it has answered or just after. */
const gatewayKilled: Fault<World> = {
  kind: 'gateway killed',
  lastsMs: (random, electionMs) => 100 + random.int(4 * electionMs),
  begin: (world, { b, c }) => {
    let killed: SimNode | undefined;
    const kill = (node: SimNode): void => {
      if (world.faults.healed || !node.up || node.stopping) return;
      killed = node;
      node.end(b % 3 === 0);
    };
    const cancel = world.onNextRequest((node) => world.loop.setTimer((c % 12) / 2, () => kill(node)));
    return () => {
      cancel();
      if (killed !== undefined) world.startAgain(killed);
    };
  },
};

/** A node loses power in the middle of a checkpoint, or just after it. */
const checkpointCut: Fault<World> = {
  kind: 'crash in a checkpoint',
  lastsMs: (random, electionMs) => 50 + random.int(2 * electionMs),
  begin: (world, { a, b }) => {
    const node = world.nodeAt(world.target(a) - 1);
    const { lives } = node;
    if (node.roles === undefined || node.stopping) return undefined;
    node.enter(({ checkpointer }) => void checkpointer.run().catch(() => undefined)); // the engine reports it
    let over = false;
    world.loop.setTimer(b % 40, () => {
      if (!over && node.lives === lives) node.end(true);
    });
    return () => {
      over = true;
      world.startAgain(node);
    };
  },
};

const CHECKPOINT_EVERY_MS = 100;

/**
 * A follower is away until the leader's log does not reach back to it, and crashes as soon as the snapshot that it is
 * sent replaces its rows. Sometimes it is spared, and leads as soon as it can: its memory besides the rows must then be
 * that of the snapshot too.
 */
const installCut: Fault<World> = {
  kind: 'crash in an installation',
  lastsMs: (random) => 3_000 + random.int(4_000),
  begin: (world, { a, b, c }) => {
    const node = world.nodeAt(a);
    if (!node.up || node.stopping || replica(node) === undefined || world.leaderOf(FIRST_RANGE) === node)
      return undefined;
    node.end(false);
    let over = false;
    const checkpoint = (): void => {
      if (over) return;
      world.leaderOf(FIRST_RANGE)?.enter(({ checkpointer }) => void checkpointer.run().catch(() => undefined));
      world.loop.setTimer(CHECKPOINT_EVERY_MS, checkpoint);
    };
    checkpoint();
    world.loop.setTimer(1_000 + (b % 2_000), () => {
      if (!over) world.startAgain(node);
    });
    const crash = (): void => {
      world.loop.setTimer((c % 8) / 2, () => {
        if (!over) node.end(c % 3 > 0);
      });
    };
    const lead = (): void => when(node, false, () => handOver(world, node));
    when(node, true, b % 3 === 0 ? lead : crash);
    return () => {
      over = true;
      node.onLooked = nothing;
      world.startAgain(node);
    };
  },
};

/** Calls `then` once, when the node's rows are being replaced, or when they are not. */
function when(node: SimNode, replacing: boolean, then: () => void): void {
  node.onLooked = () => {
    if (replica(node)?.replacing !== replacing) return;
    node.onLooked = nothing;
    then();
  };
}

function handOver(world: World, node: SimNode): void {
  const to = node.stored(FIRST_RANGE)?.replicaId;
  if (to !== undefined) world.leaderOf(FIRST_RANGE)?.enter(({ host }) => host.group(FIRST_RANGE)?.transferLeader(to));
}

function replica(node: SimNode) {
  for (const one of node.roles?.store?.replicas() ?? []) if (one.rangeId === FIRST_RANGE) return one;
  return undefined;
}

export const MOMENT_FAULTS: readonly Fault<World>[] = [joined, gatewayKilled, checkpointCut, installCut];
