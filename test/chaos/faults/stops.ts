/** Nodes that stand still, and nodes that are stopped as operators stop them. */
import { violation } from '../../checkers/index.ts';
import { drawMs, drawNode, type Fault, type FaultWorld, nameOf } from './fault.ts';

const PAUSE_MS_MIN = 200;
/** Longer than leader leases and than the sessions of clients. */
const PAUSE_MS_MAX = 7_000;

/** The exit code of a node that did not stop in time. */
const GAVE_UP = 1;

const paused: Fault = {
  kind: 'node paused',
  category: 'node',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const name = await nameOf(world, n);
    const ms = drawMs(random, PAUSE_MS_MIN, PAUSE_MS_MAX);
    const node = world.cluster.node(n);
    node.signal('SIGSTOP');
    await world.pause(ms);
    node.signal('SIGCONT');
    return `${name} stood still for ${ms} ms`;
  },
};

/** Leaderships are transferred. */
const restarted: Fault = {
  kind: 'restart',
  category: 'node',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const name = await nameOf(world, n);
    const inTime = await restart(world, n);
    return `${name} restarted${inTime ? '' : ', after it had given up to stop in good order'}`;
  },
};

const rolling: Fault = {
  kind: 'rolling restart',
  category: 'node',
  async befall(world) {
    let restarts = 0;
    for (let n = 1; n <= world.cluster.nodes.length && !world.signal.aborted; n++, restarts++) await restart(world, n);
    return `${restarts} nodes restarted one by one`;
  },
};

/**
 * Whether it stopped cleanly. A node that cannot, because others are unreachable, gives up after `--shutdown-timeout`.
 */
async function restart({ cluster, report }: FaultWorld, n: number): Promise<boolean> {
  const { code, signal } = await cluster.node(n).end('SIGTERM');
  if (code !== 0 && code !== GAVE_UP) {
    report(violation('nodes stop when told to', `n${n} ended with ${signal ?? `code ${code}`}`));
  }
  await cluster.bringBack(n);
  return code === 0;
}

export const STOPS: readonly Fault[] = [paused, restarted, rolling];
