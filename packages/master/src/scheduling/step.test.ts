import { describe, expect, test } from 'vitest';
import { nodeInfo, type RangeGiven, rangeInfo, upNodes, viewOf } from '../../test/support/scheduling-bed.ts';
import type { NodeInfo } from './cluster-model.ts';
import { hasCaughtUp, type Step, stepStatus } from './step.ts';

interface Row {
  readonly name: string;
  readonly step: Step;
  readonly range: RangeGiven;
  readonly nodes?: readonly NodeInfo[];
  readonly expected: object;
}

const FINISHED = { type: 'finished' };
const tell = (instruction: object) => ({ type: 'tell', instruction });
const because = (type: 'wait' | 'impossible', reason: RegExp) => ({ type, reason: expect.stringMatching(reason) });
/** Nodes 1 to 5, one of them different. */
const nodes = (odd: NodeInfo): readonly NodeInfo[] =>
  upNodes(5).map((node) => (node.nodeId === odd.nodeId ? odd : node));
const DRAWN = 103;

function status({ step, range, nodes: given = upNodes(5) }: Row) {
  const info = rangeInfo(1, range);
  return stepStatus(step, info, viewOf({ nodes: given, ranges: [info] }), DRAWN);
}

describe('adding a learner', () => {
  const step: Step = { type: 'addLearner', nodeId: 3 };
  const down = nodes(nodeInfo(3, { liveness: 'down' }));
  test.each<Row>([
    {
      name: 'is told with the id drawn',
      step,
      range: { voters: [1, 2] },
      expected: tell({ type: 'addLearner', nodeId: 3, replicaId: DRAWN }),
    },
    { name: 'is finished when it is there', step, range: { voters: [1, 2], learners: [3] }, expected: FINISHED },
    { name: 'is finished when it is more already', step, range: { voters: [1, 2, 3] }, expected: FINISHED },
    {
      name: 'is impossible on a node that is down',
      step,
      range: { voters: [1, 2] },
      nodes: down,
      expected: because('impossible', /node 3 is down/),
    },
    {
      name: 'waits for a joint configuration',
      step,
      range: { voters: [1, 2], joint: true },
      expected: because('wait', /joint/),
    },
  ])('$name', (row) => expect(status(row)).toEqual(row.expected));

  test('is impossible beside another replica on that node', () => {
    const info = rangeInfo(1, { voters: [1, 2], learners: [3] });
    const view = viewOf({ nodes: upNodes(3), ranges: [info] });
    expect(stepStatus(step, info, view, DRAWN + 1)).toEqual(because('impossible', /another replica/));
  });
});

describe('changing voters', () => {
  const step: Step = { type: 'changeVoters', promote: [4], remove: [3] };
  const learner = { voters: [1, 2, 3], learners: [4] };
  const down = nodes(nodeInfo(2, { liveness: 'down' }));
  const removed = nodes(nodeInfo(4, { duty: 'removed' }));
  test.each<Row>([
    {
      name: 'is told by replica ids',
      step,
      range: learner,
      expected: tell({ type: 'changeVoters', promote: [104], remove: [103] }),
    },
    { name: 'is finished when it is so', step, range: { voters: [1, 2, 4] }, expected: FINISHED },
    {
      name: 'is told for what is left of it',
      step,
      range: { voters: [1, 2, 3, 4] },
      expected: tell({ type: 'changeVoters', promote: [], remove: [103] }),
    },
    {
      name: 'waits for a learner that lags (S3)',
      step,
      range: { ...learner, behind: [4] },
      expected: because('wait', /node 4 has not caught up/),
    },
    {
      name: 'waits where those that would be left lag: what they lack, only the leader and who goes have (S6)',
      step: { type: 'changeVoters', promote: [], remove: [3] },
      range: { voters: [1, 2, 3], behind: [2] },
      expected: because('wait', /remaining voters, on nodes 2, have not caught up/),
    },
    {
      name: 'goes on with one voter that lags',
      step,
      range: { ...learner, behind: [2] },
      expected: tell({ type: 'changeVoters', promote: [104], remove: [103] }),
    },
    {
      name: 'is impossible when the learner is gone',
      step,
      range: { voters: [1, 2, 3] },
      expected: because('impossible', /node 4 is gone/),
    },
    {
      name: 'is impossible when a removed node would vote',
      step,
      range: learner,
      nodes: removed,
      expected: because('impossible', /node 4/),
    },
    {
      name: 'goes on with one voter down',
      step,
      range: learner,
      nodes: down,
      expected: tell({ type: 'changeVoters', promote: [104], remove: [103] }),
    },
    {
      name: 'is impossible when the old voters have no quorum (S2)',
      step,
      range: { ...learner, silent: { 2: 1, 3: 1 } },
      expected: because('impossible', /only 1 of the 3 voters/),
    },
    {
      name: 'is impossible when the new voters would have none (S2)',
      step,
      range: { ...learner, silent: { 2: 1, 4: 1 } },
      expected: because('impossible', /only 1 of the 3 voters on nodes 1, 2, 4/),
    },
    {
      name: 'is impossible when too many of the new voters are in maintenance, and may go away (S2)',
      step,
      range: learner,
      nodes: upNodes(5).map((node) => ([2, 4].includes(node.nodeId) ? { ...node, duty: 'maintenance' } : node)),
      expected: because('impossible', /only 1 of the 3 voters on nodes 1, 2, 4 would be live, and not in maintenance/),
    },
    {
      name: 'goes on with one voter in maintenance',
      step,
      range: learner,
      nodes: nodes(nodeInfo(2, { duty: 'maintenance' })),
      expected: tell({ type: 'changeVoters', promote: [104], remove: [103] }),
    },
    {
      name: 'does not remove the leader',
      step,
      range: { ...learner, leader: 3 },
      expected: because('impossible', /node 3 leads/),
    },
    {
      name: 'is impossible when no voter would be left',
      step: { type: 'changeVoters', promote: [], remove: [1] },
      range: { voters: [1] },
      expected: because('impossible', /no voter would be left/),
    },
    {
      name: 'removes a learner whatever the voters',
      step: { type: 'changeVoters', promote: [], remove: [4] },
      range: { ...learner, silent: { 2: 1, 3: 1 } },
      expected: tell({ type: 'changeVoters', promote: [], remove: [104] }),
    },
  ])('$name', (row) => expect(status(row)).toEqual(row.expected));
});

describe('transferring the leader (S4)', () => {
  const step: Step = { type: 'transferLeader', nodeId: 2 };
  const range = { voters: [1, 2, 3], learners: [4] };
  test.each<Row>([
    { name: 'is told', step, range, expected: tell({ type: 'transferLeader', replicaId: 102 }) },
    { name: 'is finished when it leads', step, range: { ...range, leader: 2 }, expected: FINISHED },
    ...(['draining', 'maintenance', 'decommissioning', 'removed'] as const).map((duty) => ({
      name: `does not go to a node that is ${duty}`,
      step,
      range,
      nodes: nodes(nodeInfo(2, { duty })),
      expected: because('impossible', /^node 2 is /),
    })),
    ...(['suspect', 'down'] as const).map((liveness) => ({
      name: `does not go to a node that is ${liveness}`,
      step,
      range,
      nodes: nodes(nodeInfo(2, { liveness })),
      expected: because('impossible', /^node 2 is /),
    })),
    {
      name: 'does not go to a silent replica',
      step,
      range: { ...range, silent: { 2: 1 } },
      expected: because('impossible', /silent/),
    },
    {
      name: 'waits for a replica that lags',
      step,
      range: { ...range, behind: [2] },
      expected: because('wait', /lags/),
    },
    {
      name: 'does not go to a learner',
      step: { type: 'transferLeader', nodeId: 4 },
      range,
      expected: because('impossible', /no voter/),
    },
    {
      name: 'does not go to a node without a replica',
      step: { type: 'transferLeader', nodeId: 5 },
      range,
      expected: because('impossible', /no voter/),
    },
  ])('$name', (row) => expect(status(row)).toEqual(row.expected));
});

describe('leaving a joint configuration', () => {
  const step: Step = { type: 'leaveJoint' };
  test.each<Row>([
    { name: 'is told', step, range: { voters: [1, 2], joint: true }, expected: tell({ type: 'leaveJoint' }) },
    { name: 'is finished when it is simple', step, range: { voters: [1, 2] }, expected: FINISHED },
  ])('$name', (row) => expect(status(row)).toEqual(row.expected));
});

describe('splitting', () => {
  const at = (key: string): Step => ({ type: 'split', at: Buffer.from(key), version: 1 });
  const range = { voters: [1], start: 'c', end: 'm' };
  test.each<Row>([
    { name: 'is told with its key', step: at('d'), range, expected: tell({ type: 'split', at: Buffer.from('d') }) },
    {
      name: 'is told for the middle',
      step: { type: 'split', at: undefined, version: 1 },
      range,
      expected: tell({ type: 'split', at: undefined }),
    },
    {
      name: 'in the middle is finished when the range has a new version',
      step: { type: 'split', at: undefined, version: 1 },
      range: { ...range, version: 2 },
      expected: FINISHED,
    },
    {
      name: 'is finished when the range ends there',
      step: at('d'),
      range: { ...range, end: 'd', version: 2 },
      expected: FINISHED,
    },
    {
      name: 'is told again when the range was split behind its key (S5)',
      step: at('d'),
      range: { ...range, end: 'f', version: 2 },
      expected: tell({ type: 'split', at: Buffer.from('d') }),
    },
    {
      name: 'is impossible when its key has gone to another range (S5)',
      step: at('f'),
      range: { ...range, end: 'd', version: 2 },
      expected: because('impossible', /now in another range/),
    },
    { name: 'is impossible at the start', step: at('c'), range, expected: because('impossible', /border/) },
    { name: 'is impossible at the end', step: at('m'), range, expected: because('impossible', /border/) },
    { name: 'is impossible outside', step: at('x'), range, expected: because('impossible', /outside/) },
    {
      name: 'is told behind the start of the last range',
      step: at('x'),
      range: { voters: [1], start: 'm' },
      expected: tell({ type: 'split', at: Buffer.from('x') }),
    },
  ])('$name', (row) => expect(status(row)).toEqual(row.expected));

  test('is finished when its key begins a range that has left since', () => {
    const info = rangeInfo(1, { ...range, end: 'd', version: 3 });
    const child = rangeInfo(2, { voters: [1], start: 'f', end: 'm' });
    expect(stepStatus(at('f'), info, viewOf({ nodes: upNodes(1), ranges: [info, child] }), 0)).toEqual(FINISHED);
  });
});

describe('merging', () => {
  const target = rangeInfo(1, { voters: [1, 2, 3], end: 'm' });
  const behind: RangeGiven = { voters: [3, 2, 1], start: 'm', end: 't' };
  const merge = (source: RangeGiven, into = target, sourceId = 2) => {
    const ranges = [into, rangeInfo(2, source), rangeInfo(3, { voters: [1, 2, 3], start: 't' })];
    const step: Step = { type: 'merge', source: sourceId, version: 1, bytesMax: 7 };
    return stepStatus(step, into, viewOf({ nodes: upNodes(5), ranges }), 0);
  };

  test('is told with the range that ends', () =>
    expect(merge(behind)).toEqual(tell({ type: 'merge', source: rangeInfo(2, behind).descriptor, bytesMax: 7 })));
  test('is finished when that one is gone and the range has grown', () => {
    expect(merge(behind, rangeInfo(1, { voters: [1, 2, 3], end: 't', version: 2 }), 9)).toEqual({ type: 'finished' });
  });
  test('is impossible with the neighbour before: of two the first one goes on', () => {
    const second = rangeInfo(1, { voters: [1, 2, 3], start: 'c', end: 't' });
    expect(merge({ voters: [1, 2, 3], end: 'c' }, second)).toEqual(because('impossible', /does not start where/));
  });
  test('is impossible with a range that is not beside it', () => {
    expect(merge(behind, target, 3)).toEqual(because('impossible', /does not start where/));
  });
  test('is impossible with a range on other nodes', () => {
    expect(merge({ ...behind, voters: [1, 2, 4] })).toEqual(because('impossible', /other nodes: 1, 2, 4, not 1, 2, 3/));
  });
  test('is impossible with a range that went elsewhere', () => {
    expect(merge(behind, target, 9)).toEqual(because('impossible', /no longer exists/));
  });
  test('is impossible when the range was changed by something else', () => {
    const split = rangeInfo(1, { voters: [1, 2, 3], end: 'm', version: 2 });
    expect(merge(behind, split)).toEqual(because('impossible', /in the meantime/));
  });
  test('waits while the members of the other one change', () => {
    expect(merge({ ...behind, joint: true })).toEqual(because('wait', /changing/));
  });
});

test.each([true, false])('whether a learner has caught up (%s) is what its leader says', (caughtUp) => {
  const progress = [{ replicaId: 102, caughtUp }];
  expect(hasCaughtUp(rangeInfo(1, { voters: [1], learners: [2], progress }), 2)).toBe(caughtUp);
});

test('a learner of which the leader says nothing has not caught up', () => {
  expect(hasCaughtUp(rangeInfo(1, { voters: [1], learners: [2], progress: [] }), 2)).toBe(false);
});
