import type { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import type { MasterCommand } from '../metadata/master-commands.ts';
import { MasterState } from '../metadata/master-state.ts';
import type { CommandDone } from '../term/proposals.ts';
import { type StrikeOffDeps, strikeOff } from './strike-off.ts';

/** What comes of it for three nodes, of which some are heard. */
function struckOff(nodeIds: readonly number[], up: readonly number[]): { error: string; removed: readonly number[] } {
  const state = new MasterState(CONF);
  for (const nodeId of [1, 2, 3]) state.apply({ type: 'registerNode', descriptor: descriptor(nodeId) });
  const answers: (ServiceError | undefined)[] = [];
  strikeOff(
    nodeIds,
    {
      state,
      isSilent: (nodeId) => !up.includes(nodeId),
      propose: (command, done) => done(undefined, state.apply(command)),
    },
    (error) => answers.push(error),
  );
  expect(answers).toHaveLength(1);
  return { error: answers[0]?.code ?? '', removed: [1, 2, 3].filter((id) => state.isRemoved(id)) };
}

test.each([
  { name: 'dead nodes are removed, all of them', nodeIds: [2, 3], up: [1], expect: { error: '', removed: [2, 3] } },
  { name: 'none while one is heard', nodeIds: [2, 3], up: [3], expect: { error: 'UNAVAILABLE', removed: [] } },
  {
    name: 'those that nobody knows are as good as removed',
    nodeIds: [9, 2],
    up: [],
    expect: { error: '', removed: [2] },
  },
  { name: 'twice is once', nodeIds: [2, 2], up: [], expect: { error: '', removed: [2] } },
])('$name', ({ nodeIds, up, expect: expected }) => {
  expect(struckOff(nodeIds, up)).toEqual(expected);
});

test('two who strike off the same node at the same time both succeed', () => {
  const state = new MasterState(CONF);
  state.apply({ type: 'registerNode', descriptor: descriptor(2) });
  const committed: (() => void)[] = [];
  const deps: StrikeOffDeps = {
    state,
    isSilent: () => true,
    propose: (command, done) => committed.push(() => applied(state, command, done)),
  };
  const answers: (ServiceError | undefined)[] = [];
  for (const _ of [1, 2]) strikeOff([2], deps, (error) => answers.push(error));
  for (const commit of committed) commit();
  expect(answers).toEqual([undefined, undefined]);
  expect(state.isRemoved(2)).toBe(true);
});

/** As the state machine does it: what a command throws is its answer. */
function applied(state: MasterState, command: MasterCommand, done: CommandDone): void {
  try {
    done(undefined, state.apply(command));
  } catch (error) {
    done(error as ServiceError, undefined);
  }
}
