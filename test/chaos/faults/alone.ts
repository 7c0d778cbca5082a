/** Nodes that stand still while the others go on without them, and wake when they hear nobody. */
import { drawMs, drawNode, type Fault, nameOf } from './fault.ts';
import { betweenNodes } from './network.ts';

/** Twice the election timeout and an election: by then the others follow another leader, and write. */
const STILL_MS_MIN = 1_500;
const STILL_MS_MAX = 4_000;
/** Longer than a leader takes to notice that nobody follows it. */
const ALONE_MS_MIN = 800;
const ALONE_MS_MAX = 2_500;

/**
 * A leader that is merely cut off gives up about when the others elect another. One that also stood still wakes long
 * after that, and has all its election timeout ahead of it: for so long it believes that it leads, and clients that
 * reach no other node ask it. What it answers from its own state only is out of date.
 */
const wakesAlone: Fault = {
  kind: 'wakes alone',
  category: 'node',
  async befall(world, random) {
    const n = (await world.cluster.leader()) ?? (await drawNode(world, random));
    const name = await nameOf(world, n);
    const stillMs = drawMs(random, STILL_MS_MIN, STILL_MS_MAX);
    // In silence: no connection that breaks tells it.
    const on = betweenNodes((from, to) => (from === n) !== (to === n));
    const mend = world.cluster.network.add({ on, blocked: true });
    const node = world.cluster.node(n);
    node.signal('SIGSTOP');
    await world.pause(stillMs);
    node.signal('SIGCONT');
    const aloneMs = drawMs(random, ALONE_MS_MIN, ALONE_MS_MAX);
    await world.pause(aloneMs);
    mend();
    return `${name} stood still for ${stillMs} ms, and heard no other node for ${aloneMs} ms more`;
  },
};

export const ALONE: readonly Fault[] = [wakesAlone];
