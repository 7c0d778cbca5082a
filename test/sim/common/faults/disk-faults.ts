/** Faults of disks. */
import { type Fault, nothing } from './fault.ts';

const slow: Fault = {
  kind: 'slow disk',
  lastsMs: (random, electionMs) => 100 + random.int(4 * electionMs),
  begin: (world, event) => {
    const node = world.nodeAt(world.target(event.a) - 1);
    node.disk.setLatency(20 + (event.b % 200));
    return () => node.disk.setLatency(node.options.diskMs);
  },
};

const stalled: Fault = {
  kind: 'stalled disk',
  lastsMs: (random, electionMs) => 50 + random.int(3 * electionMs),
  begin: (world, event) => {
    const node = world.nodeAt(world.target(event.a) - 1);
    if (node.stall.stalled) return undefined;
    node.stall.begin();
    return () => node.stall.end();
  },
};

/** The next write or sync fails: the node must stop (traps 26). It is started again after a restart of its machine. */
const failing: Fault = {
  kind: 'failing disk',
  lastsMs: () => 0,
  begin: (world, event) => {
    const node = world.nodeAt(world.target(event.a) - 1);
    if (!node.up) return undefined;
    node.diskFault = true;
    node.disk.failNext(event.b % 3 === 0 ? 'write' : 'sync');
    node.onDied = () => world.loop.setTimer(event.c % 500, () => world.startAgain(node));
    return nothing;
  },
};

const full: Fault = {
  kind: 'full disk',
  lastsMs: (random, electionMs) => 50 + random.int(3 * electionMs),
  begin: (world, event) => {
    const node = world.nodeAt(world.target(event.a) - 1);
    if (!node.up || node.diskFull) return undefined;
    node.diskFault = true;
    node.diskFull = true;
    node.disk.setCapacity(node.disk.usedBytes());
    node.onDied = () => world.loop.setTimer(100 + (event.c % 500), () => world.startAgain(node));
    return () => {
      node.diskFull = false;
      node.disk.setCapacity(Number.POSITIVE_INFINITY);
    };
  },
};

export const DISK_FAULTS: readonly Fault[] = [slow, stalled, failing, full];
