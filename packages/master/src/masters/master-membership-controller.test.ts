import { silentLogger } from '@remora/base';
import type { NodeDuty, NodeRole } from '@remora/protocol';
import type { ConfChange, Group, GroupStatus } from '@remora/raft';
import { expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import { MasterState } from '../metadata/master-state.ts';
import type { Liveness } from '../scheduling/cluster-model.ts';
import { MasterMembershipController } from './master-membership-controller.ts';

/** On the leader, node 1, which node 2 answers. */
function newCoordinator(state: MasterState, stateOf: (nodeId: number) => Liveness) {
  const proposed: ConfChange[] = [];
  const heard = { heardLately: true, caughtUp: true };
  const status = { conf: CONF, changePending: false, progress: [{ replica: 2, ...heard }] };
  const care = new MasterMembershipController({
    ...{ nodeId: 1, logger: silentLogger, state, settled: () => true, stateOf },
    group: () =>
      ({
        status: () => status as unknown as GroupStatus,
        proposeConf: (change: ConfChange) => {
          proposed.push(change);
          return { index: 1, term: 1 };
        },
      }) as Partial<Group> as Group,
  });
  return { care, proposed };
}

/** How node 3 is; down unless told otherwise. */
interface Third {
  readonly roles?: readonly NodeRole[];
  readonly liveness?: Liveness;
}

/** What the leader on node 1 does about its fellows when node 3 is down, and a fourth node could be a master. */
function changes(duty: NodeDuty, { roles, liveness = 'down' }: Third = {}): readonly ConfChange[] {
  const state = new MasterState(CONF);
  for (const nodeId of [1, 2, 3, 4]) state.apply({ type: 'registerNode', descriptor: descriptor(nodeId) });
  if (roles !== undefined) state.apply({ type: 'registerNode', descriptor: descriptor(3, { roles }) });
  state.apply({ type: 'setDuty', nodeId: 3, duty, untilMs: 0 });
  const { care, proposed } = newCoordinator(state, (nodeId) => (nodeId === 3 ? liveness : 'up'));
  care.tick();
  return proposed;
}

test('a master whose node has given up the role is replaced: its replica does not run any more', () => {
  const withRoles = (roles: readonly NodeRole[]) => changes('serving', { roles, liveness: 'up' });
  expect(withRoles(['data', 'gateway'])).toMatchObject([{ steps: [{ type: 'addLearner', replica: 4 }] }]);
  expect(withRoles(['master'])).toEqual([]);
});

test('a master that is down is replaced, but not within a maintenance window: it would never be one again (MS6)', () => {
  expect(changes('serving')).toMatchObject([{ steps: [{ type: 'addLearner', replica: 4 }] }]);
  expect(changes('draining')).toHaveLength(1);
  expect(changes('maintenance')).toEqual([]);
});

test('a node lives that reports, or answers as a master before it has reported', () => {
  const { care } = newCoordinator(new MasterState(CONF), (nodeId) => (nodeId === 4 ? 'up' : 'suspect'));
  expect([1, 2, 3, 4].filter((nodeId) => care.isHeard(nodeId))).toEqual([1, 2, 4]);
});
