import { silentLogger } from '@remora/base';
import type { NodeDuty } from '@remora/protocol';
import type { ConfChange, Group, GroupStatus } from '@remora/raft';
import { expect, test } from 'vitest';
import { MasterState } from '../state.ts';
import { CONF, descriptor } from '../test-kit.ts';
import { MastersCare } from './masters-care.ts';

/** What the leader on node 1 does about its fellows when node 3 is down, and a fourth node could be a master. */
function changes(duty: NodeDuty): readonly ConfChange[] {
  const state = new MasterState(CONF);
  for (const nodeId of [1, 2, 3, 4]) state.apply({ type: 'registerNode', descriptor: descriptor(nodeId) });
  state.apply({ type: 'setDuty', nodeId: 3, duty, untilMs: 0 });
  const proposed: ConfChange[] = [];
  const heard = { heardLately: true, caughtUp: true };
  const status = { conf: CONF, changePending: false, progress: [{ replica: 2, ...heard }] };
  const care = new MastersCare({
    ...{ nodeId: 1, logger: silentLogger, state, settled: () => true },
    group: () =>
      ({
        status: () => status as unknown as GroupStatus,
        proposeConf: (change: ConfChange) => {
          proposed.push(change);
          return { index: 1, term: 1 };
        },
      }) as Partial<Group> as Group,
    stateOf: (nodeId) => (nodeId === 3 ? 'down' : 'up'),
  });
  care.tick();
  return proposed;
}

test('a master that is down is replaced, but not within a maintenance window: it would never be one again (MS6)', () => {
  expect(changes('serving')).toMatchObject([{ steps: [{ type: 'addLearner', replica: 4 }] }]);
  expect(changes('draining')).toHaveLength(1);
  expect(changes('maintenance')).toEqual([]);
});
