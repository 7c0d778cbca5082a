/** Nodes that end without notice, and restart with what is on their disks. */
import type { Random } from '@remora/base';
import { drawMs, drawNode, type Fault, type FaultWorld, nameOf } from './fault.ts';
import { killAt, type Moment } from './kill-moment.ts';

const DOWN_MS_MAX = 4_000;

function killAtMoment(moment: Exclude<Moment, 'any'>): Fault {
  return {
    kind: `kill at ${moment}`,
    category: 'node',
    async befall(world, random) {
      const n = await drawNode(world, random);
      const name = await nameOf(world, n);
      const node = world.cluster.node(n);
      const at = await killAt(node, { moment, random });
      await node.exit;
      const downMs = await comeBack(world, random, [n]);
      return `${name} killed at ${at}, down for ${downMs} ms`;
    },
  };
}

/** There is no majority for a while. If all nodes are killed, no state survives in memory. */
const killMany: Fault = {
  kind: 'kill of many',
  category: 'node',
  async befall(world, random) {
    const { nodes } = world.cluster;
    const spared = random.int(3) === 0 ? 0 : 1 + random.int(nodes.length);
    const killed = nodes.map((_, i) => i + 1).filter((n) => n !== spared);
    for (const n of killed) world.cluster.node(n).signal('SIGKILL');
    await Promise.all(killed.map((n) => world.cluster.node(n).exit));
    const downMs = await comeBack(world, random, killed);
    return `${killed.map((n) => `n${n}`).join(', ')} killed, down for ${downMs} ms`;
  },
};

async function comeBack({ cluster, pause }: FaultWorld, random: Random, killed: readonly number[]): Promise<number> {
  const downMs = drawMs(random, 0, DOWN_MS_MAX);
  await pause(downMs);
  await Promise.all(killed.map((n) => cluster.bringBack(n)));
  return downMs;
}

export const KILLS: readonly Fault[] = [
  killAtMoment('append'),
  killAtMoment('apply'),
  killAtMoment('checkpoint'),
  killMany,
];
