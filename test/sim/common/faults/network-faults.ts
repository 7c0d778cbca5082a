/** Faults between nodes. */
import type { LinkFaults } from '@remora/raft/testing';
import { type Fault, type FaultEvent, SILENT } from './fault.ts';
import type { FaultWorld as World } from './fault-world.ts';

/** All links, those of one node, or a single one, as drawn. */
function someLinks(world: World, { a, b, c }: FaultEvent): (from: number, to: number) => boolean {
  const node = world.target(a);
  const other = world.nodeAt(b).id;
  if (c % 4 === 0) return () => true;
  if (c % 4 === 1) return (from, to) => from === node || to === node;
  return (from, to) => from === node && to === other;
}

function linkFault(kind: string, faults: (event: FaultEvent, electionMs: number) => Partial<LinkFaults>): Fault {
  return {
    kind,
    lastsMs: (random, electionMs) => 50 + random.int(3 * electionMs),
    begin: (world, event) =>
      world.network.add({ on: someLinks(world, event), faults: faults(event, world.options.electionMs) }),
  };
}

function cut(kind: string, side: (world: World, event: FaultEvent) => (from: number, to: number) => boolean): Fault {
  return {
    kind,
    lastsMs: (random, electionMs) => 100 + random.int(5 * electionMs),
    begin: (world, event) =>
      world.network.add({ on: side(world, event), faults: event.c % 2 === 0 ? { blocked: true } : SILENT }),
  };
}

/** The target alone, or with the nodes of the drawn bits. */
function sideOf(world: World, { a, b, c }: FaultEvent): (node: number) => boolean {
  const target = world.target(a);
  if (c % 3 > 0) return (node) => node === target;
  return (node) => node === target || ((b >> node) & 1) === 1;
}

const partition = cut('partition', (world, event) => {
  const inside = sideOf(world, event);
  return (from, to) => inside(from) !== inside(to);
});

const oneWay = cut('one-way partition', (world, event) => {
  const inside = sideOf(world, event);
  const outwards = event.b % 2 === 0;
  return (from, to) => inside(from) !== inside(to) && inside(from) === outwards;
});

/** Two halves that one node still reaches, and no other node reaches both (traps 5). */
const bridge = cut('bridged partition', (world, event) => {
  const middle = world.target(event.a);
  const left = (node: number) => ((event.b >> node) & 1) === 1;
  return (from, to) => from !== middle && to !== middle && left(from) !== left(to);
});

const flapping: Fault = {
  kind: 'flapping partition',
  lastsMs: (random, electionMs) => 200 + random.int(5 * electionMs),
  begin: (world, event) => {
    const inside = sideOf(world, event);
    let over = false;
    let mend: (() => void) | undefined;
    const flip = (): void => {
      if (over) return;
      if (mend === undefined) {
        mend = world.network.add({ on: (from, to) => inside(from) !== inside(to), faults: { blocked: true } });
      } else {
        mend();
        mend = undefined;
      }
      world.loop.setTimer(20 + (event.c % 300), flip);
    };
    flip();
    return () => {
      over = true;
      mend?.();
    };
  },
};

export const NETWORK_FAULTS: readonly Fault[] = [
  linkFault('loss', ({ b }) => ({ dropPerMille: 50 + (b % 600) })),
  linkFault('delay', ({ b }, electionMs) => ({ delayMs: b % electionMs, jitterMs: b % 50 })),
  linkFault('duplication', ({ b }) => ({ duplicatePerMille: 100 + (b % 700) })),
  linkFault('reordering', ({ b }) => ({ reorder: true, jitterMs: 10 + (b % 200) })),
  linkFault('snapshots broken off', ({ b }) => ({ snapshotBreakPerMille: 100 + (b % 600) })),
  partition,
  oneWay,
  bridge,
  flapping,
];
