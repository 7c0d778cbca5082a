/** Faults of a gateway that last longer than clients wait for a sign of life from it. */
import { type Fault, SILENT } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';

/** A link without arriving data is given up after about three seconds. */
const LASTS_MS_MIN = 3_000;
const LASTS_MS_SPREAD = 5_000;

/**
 * A gateway reaches nothing, or receives nothing although others receive from it: its clients go to another gateway,
 * while it still waits on their behalf.
 */
const cutOff: Fault<World> = {
  kind: 'gateway cut off',
  lastsMs: (random) => LASTS_MS_MIN + random.int(LASTS_MS_SPREAD),
  begin: (world, { a, b, c }) => {
    const gateways = world.nodes.filter(({ machine }) => machine.roles.includes('gateway'));
    const id = gateways[a % gateways.length]?.id;
    const deaf = b % 2 === 0;
    return world.network.add({
      on: (from, to) => to === id || (from === id && !deaf),
      faults: c % 2 === 0 ? SILENT : { blocked: true },
    });
  },
};

export const GATEWAY_FAULTS: readonly Fault<World>[] = [cutOff];
