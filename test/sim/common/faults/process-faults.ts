/** Faults of processes and their clocks. */
import { type Fault, type FaultEvent, nothing } from './fault.ts';
import type { FaultWorld as World } from './fault-world.ts';

/** Ends a process and starts it again later. */
function endOne(kind: string, power: boolean): Fault {
  return {
    kind,
    lastsMs: (random, electionMs) => (random.int(3) === 0 ? random.int(20) : random.int(3 * electionMs)),
    begin: (world, event) => {
      const node = world.nodeAt(world.target(event.a) - 1);
      if (!node.up) return undefined;
      node.end(power);
      return () => world.startAgain(node);
    },
  };
}

/** Several processes end in the same moment: all, or all but the target. */
const endMany: Fault = {
  kind: 'crash of many',
  lastsMs: (random, electionMs) => (random.int(2) === 0 ? random.int(20) : random.int(electionMs)),
  begin: (world, event) => {
    const spared = event.b % 2 === 0 ? world.target(event.a) : 0;
    const ended = world.nodes.filter((node) => node.up && node.id !== spared);
    for (const node of ended) node.end(event.c % 2 === 0);
    return () => {
      for (const node of ended) world.startAgain(node);
    };
  },
};

function stand(kind: string, how: (world: World, event: FaultEvent) => 'pause' | 'suspend'): Fault {
  return {
    kind,
    lastsMs: (random, electionMs) => 10 + random.int(3 * electionMs),
    begin: (world, event) => {
      const node = world.nodeAt(world.target(event.a) - 1);
      if (!node.up || node.clock.paused) return undefined;
      const { lives } = node;
      node.clock[how(world, event)]();
      return () => {
        if (node.lives === lives && node.up) node.clock.resume();
      };
    },
  };
}

const drift: Fault = {
  kind: 'clock drift',
  lastsMs: (random, electionMs) => 500 + random.int(10 * electionMs),
  begin: (world, { a, b }) => {
    const node = world.nodeAt(a);
    const most = world.options.driftPerMille;
    if (most === 0) return undefined;
    node.clock.setRate(1 + ((b % (2 * most + 1)) - most) / 1_000);
    return () => node.clock.resetRate();
  },
};

const wallJump: Fault = {
  kind: 'wall clock jump',
  lastsMs: () => 0,
  begin: (world, { a, b }) => {
    // Backwards only if no machine is suspended: the two together could not be distinguished from nothing at all.
    const node = world.nodeAt(a);
    const back = b % 2 === 0 && !world.suspends(node.id);
    node.clock.jumpWall(back ? -(b % 60_000) : b % 60_000);
    return nothing;
  },
};

export const PROCESS_FAULTS: readonly Fault[] = [
  endOne('kill', false),
  endOne('crash', true),
  endMany,
  stand('pause', () => 'pause'),
  // Machines that are suspended; the others are paused instead.
  stand('suspension', (world, { a }) => (world.suspends(world.target(a)) ? 'suspend' : 'pause')),
  drift,
  wallJump,
];
