/** Faults of a disk's contents: everything is lost, or a bit flips. */
import { type Fault, nothing } from '../../common/faults/fault.ts';
import type { SimNode } from '../node.ts';
import type { World } from '../world.ts';

/**
 * A machine comes back with an empty disk. The node on it joins as a new one, as it should; sometimes it first claims
 * to be its predecessor, and must be refused before it does any harm (traps 10).
 */
const diskLost: Fault<World> = {
  kind: 'lost disk',
  lastsMs: (random, electionMs) => 1_000 + random.int(6 * electionMs),
  begin: (world, { a, b }) => {
    const node = world.nodeAt(world.target(a) - 1);
    if (!node.up || node.stopping || !world.members.canLose(node)) return undefined;
    const asItself = b % 2 === 0 && node.founder && isKnown(world, node);
    world.members.lose(node);
    node.end(true);
    node.loseDisk(asItself ? 'founder' : 'new');
    world.startAgain(node);
    return () => {
      if (node.impostor) world.comeBackAsNew(node); // no other node has met it
    };
  },
};

/** Whether all nodes that count on a node would notice that it has lost its disk. */
function isKnown({ nodes }: World, { id, nodeId }: SimNode): boolean {
  const others = nodes.filter((other) => other.id !== id && [...other.groupIds].length > 0);
  return nodeId !== undefined && others.every((other) => other.knows(nodeId));
}

/**
 * A bit flips in the log of a node, in a row of its engine, or in the log of its engine's store; the node runs, or is
 * about to be started.
 */
const bitFlipped: Fault<World> = {
  kind: 'bit flip',
  lastsMs: (random, electionMs) => random.int(2 * electionMs),
  begin: (world, { a, b, c }) => {
    const node = world.nodeAt(world.target(a) - 1);
    if (!node.up || node.stopping || !flipBit(node, b, c)) return undefined;
    if (c % 3 === 0) return nothing;
    node.end(c % 3 === 1);
    return () => world.startAgain(node);
  },
};

function flipBit(node: SimNode, place: number, bit: number): boolean {
  if (place % 3 !== 0) return node.damageLog({ place, bit });
  const inStore = { place: Math.floor(place / 6), bit };
  return place % 6 === 0 ? node.damageStore(inStore) : node.loseBatches(inStore);
}

export const LOST_AND_DAMAGED: readonly Fault<World>[] = [diskLost, bitFlipped];
