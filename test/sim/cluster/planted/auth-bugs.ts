/** Planted bugs of users and roles, in addition to those of `bugs.ts`. Only runs with authentication find them. */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const AUTH_BUGS: readonly PlantedBug[] = [
  {
    layer: 'master',
    name: 'answers-changes-before-nodes-confirm',
    rule: 'a change is answered when every live node has confirmed it (auth-rollout.ts AR1)',
    file: 'packages/master/src/nodes/auth-rollout.ts',
    find: 'let confirmed = Number.POSITIVE_INFINITY;\n',
    replace:
      'if (state.nodes !== undefined) return Number.POSITIVE_INFINITY;\n    let confirmed = Number.POSITIVE_INFINITY;\n',
    seed: 13,
    caughtBy: 'packages/master/src/master.test.ts',
    properties: ['what is revoked is refused', 'nobody is refused who is allowed'],
  },
  {
    layer: 'auth',
    name: 'anybody-renews-a-session',
    rule: 'only its owner renews a session (lease-needs.ts OW2)',
    file: 'packages/auth/src/permissions/authority.ts',
    find: 'return need.owner === user || (need.orSteer && steersAll(locks)); // D5',
    replace: 'return true;',
    seed: 13,
    caughtBy: 'packages/auth/src/permissions/authority.test.ts',
    properties: ['sessions belong to users'],
  },
  {
    layer: 'gateway',
    name: 'watches-outlive-rights',
    rule: 'a watch that is no longer allowed ends (authorised-backend.ts AB4)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'if (action !== undefined) this.#audited.decided(action, principal, needs, refusal);',
    replace: 'if (action !== undefined) continue;',
    seed: 13,
    caughtBy: 'packages/gateway/src/authorisation/authorised-backend.test.ts',
    properties: ['what is revoked is refused'],
  },
  {
    layer: 'gateway',
    name: 'waits-outlive-rights',
    rule: 'a wait for a lock that is no longer allowed ends (authorised-backend.ts AB4)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'this.#clearance.onRefused?.(refusal);',
    replace: 'void refusal;',
    seed: 13,
    caughtBy: 'packages/gateway/src/authorisation/authorised-backend.test.ts',
    properties: ['what is revoked is refused'],
  },
];
