/** Nodes stand still while the others continue without them, and wake up in isolation. */
import { drawMs, drawNode, type Fault, nameOf } from './fault.ts';
import { betweenNodes } from './network.ts';

/** Twice the election timeout plus an election: by then the others follow a new leader and accept writes. */
const STILL_MS_MIN = 1_500;
const STILL_MS_MAX = 4_000;
/** Longer than a leader takes to notice that it has no followers. */
const ALONE_MS_MIN = 800;
const ALONE_MS_MAX = 2_500;

/**
 * A leader that is only cut off gives up at about the time when the others elect a new leader. A leader that also stood
 * still wakes long after that, with its whole election timeout ahead of it. During that time it believes that it leads,
 * and clients that reach no other node ask it. An answer from its local state alone would be outdated.
 */
const wakesAlone: Fault = {
  kind: 'wakes alone',
  category: 'node',
  async befall(world, random) {
    const n = (await world.cluster.leader()) ?? (await drawNode(world, random));
    const name = await nameOf(world, n);
    const stillMs = drawMs(random, STILL_MS_MIN, STILL_MS_MAX);
    // Silently: no connection breaks and reveals it.
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
