/** Faults of runs with authentication. They last longer than a node trusts what it knows of users. */
import { AUTH_TRUST_MS } from '@remora/auth';
import type { Fault } from '../../common/faults/fault.ts';
import { MACHINES_MAX } from '../topology.ts';
import type { World } from '../world.ts';

/** Longer than the bound for a revocation that is made as the fault begins (user-admin.ts). */
const LASTS_MS_MIN = AUTH_TRUST_MS + 16_000;
const LASTS_MS_SPREAD = 4_000;

/** A gateway reaches its clients, and no other node: it does not hear of changes of users and roles. */
const alone: Fault<World> = {
  kind: 'gateway without masters',
  lastsMs: (random) => LASTS_MS_MIN + random.int(LASTS_MS_SPREAD),
  begin: (world, { a }) => {
    const gateways = world.nodes.filter(({ machine }) => machine.fromStart && machine.roles.includes('gateway'));
    const id = gateways[a % gateways.length]?.id;
    return world.network.add({
      on: (from, to) => from <= MACHINES_MAX && to <= MACHINES_MAX && (from === id) !== (to === id),
      faults: { blocked: true },
    });
  },
};

export const AUTH_FAULTS: readonly Fault<World>[] = [alone];
