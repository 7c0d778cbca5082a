import type { ServiceError } from '@remora/base';
import type { NodeDuty, NodeRole, OperatorInfo, RangeChange, SetNodeDutyRequest } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { descriptor } from '../../test/support/descriptor.ts';
import {
  type BedGiven,
  NOW_MS,
  nodeInfo,
  rangeInfo,
  schedulingBed,
  upNodes,
} from '../../test/support/scheduling-bed.ts';
import type { EndedOperator } from '../metadata/ended-operator.ts';
import type { NodeInfo, RangeInfo } from '../scheduling/cluster-model.ts';
import type { Scheduling } from '../scheduling/scheduling.ts';
import { Actions } from './actions.ts';

const RANGES = [
  rangeInfo(1, { voters: [1, 2, 3], start: '', end: 'm' }),
  rangeInfo(2, { voters: [3, 2, 1], start: 'm', end: '' }),
];
/** Nobody has reported it. */
const SILENT = rangeInfo(3, { voters: [4] });
const EPOCH = { confVersion: 1, version: 1 };
const MOVE: RangeChange = { type: 'move', from: 3, to: 4 };

const WALL_MS = 1_700_000_000_000;

let earlier: readonly EndedOperator[];
let nowMs: number;
let scheduling: Scheduling;
let actions: Actions;
let duties: SetNodeDutyRequest[];
let rests: string | undefined;
/** What the metadata have. */
let ranges: readonly RangeInfo[];

/** A master's leader that has heard of five nodes with data, a gateway, and two ranges, unless told otherwise. */
function bed(given: Partial<BedGiven> & { readonly odd?: readonly NodeInfo[] } = {}): void {
  const nodes = upNodes(5).map((node) => given.odd?.find(({ nodeId }) => nodeId === node.nodeId) ?? node);
  nowMs = NOW_MS;
  earlier = [];
  duties = [];
  rests = undefined;
  ranges = [...RANGES, SILENT];
  scheduling = schedulingBed({ nodes, ranges: RANGES, ...given });
  const roles: Readonly<Record<number, readonly NodeRole[]>> = {
    ...{ 1: ['master', 'data'], 6: ['gateway'], 8: ['master'] },
  };
  const known = [1, 2, 3, 4, 5, 6, 7, 8].map((nodeId) => descriptor(nodeId, { roles: roles[nodeId] ?? ['data'] }));
  actions = new Actions({
    masters: {
      ...{ isMaster: (nodeId) => [1, 8].includes(nodeId), isHeard: (nodeId) => nodeId === 8 },
      ...{ staysBecause: () => undefined, why: () => [] },
      missedBecause: (nodeId) =>
        nodeId === 2 ? 'the masters would lose their majority while node 2 is down: node 9 is silent' : undefined,
    },
    scheduling,
    monotonicMs: () => nowMs,
    wallMs: () => WALL_MS,
    state: {
      nodes: () => known,
      ranges: () => ranges.map((range) => range.descriptor),
      range: (rangeId) => [...RANGES, SILENT].find((range) => range.descriptor.rangeId === rangeId)?.descriptor,
      mergedInto: (rangeId) => (rangeId === 8 ? 2 : undefined),
      isRemoved: (nodeId) => nodeId === 7,
      get operators() {
        return earlier;
      },
    },
    refresh: () => {},
    restsBecause: () => rests,
    setDuty: (request, done) => {
      duties.push(request);
      done(undefined, undefined);
    },
    pauseScheduler: ({ name, forMs }, done) => {
      scheduling.schedulers.pause(name, nowMs + forMs);
      done(undefined, undefined);
    },
  });
}
beforeEach(() => bed());

const steer = (change: RangeChange, rangeId = 1, epoch = EPOCH): OperatorInfo =>
  actions.steerRange({ rangeId, epoch, change });

/** The range's leader reports; what it is told now. */
function report(range: RangeInfo) {
  return scheduling.rangeReported(range, nowMs);
}

function refusal(work: () => unknown): ServiceError {
  try {
    work();
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error('it was not refused');
}

describe('a change of a range', () => {
  test('is told as steps in words, and who asks again learns of the same operator', () => {
    const begun = steer(MOVE);
    expect(begun).toMatchObject({
      ...{ rangeId: 1, kind: 'admin', status: 'created', step: 0, ageMs: 0, endedMs: -1, outcome: '' },
      reason: 'requested: move from node 3 to node 4',
      steps: ['add a learner on node 4', 'promote node 4 and remove node 3'],
    });
    nowMs += 500;
    expect(steer(MOVE)).toMatchObject({ operatorId: begun.operatorId, ageMs: 500 });
    const seenLater = { confVersion: 2, version: 1 };
    expect(steer(MOVE, 1, seenLater).operatorId).toBe(begun.operatorId);
    expect(actions.operators({ ended: false, rangeId: 0, limit: 10 })).toHaveLength(1);
  });

  test('that is done is not done again for the range as it was seen before (ST1)', () => {
    const begun = steer({ type: 'split', at: undefined });
    report(rangeInfo(1, { voters: [1, 2, 3], end: 'm' }));
    report(rangeInfo(1, { voters: [1, 2, 3], end: 'f', version: 2 }));
    expect(steer({ type: 'split', at: undefined })).toMatchObject({
      ...{ operatorId: begun.operatorId, status: 'success', endedMs: 0 },
    });
    const next = steer({ type: 'split', at: undefined }, 1, { confVersion: 1, version: 2 });
    expect(next.operatorId).toBeGreaterThan(begun.operatorId);
  });

  test('that was cancelled can be asked for again', () => {
    const begun = steer(MOVE);
    actions.cancelOperator(begun.operatorId);
    expect(steer(MOVE).operatorId).toBeGreaterThan(begun.operatorId);
  });

  test('is refused to the second of two who want different things, with what the first one wants', () => {
    const { operatorId } = steer(MOVE);
    const error = refusal(() => steer({ type: 'move', from: 3, to: 5 }));
    expect(error.code).toBe('RESOURCE_EXHAUSTED');
    expect(error.message).toBe(
      `not possible now: operator ${operatorId} is running for range 1 (requested: move from node 3 to node 4: add a learner on ` +
        'node 4); wait until it has ended, or cancel it',
    );
  });

  test.each<{ name: string; ask: () => unknown; code: string; says: string }>([
    {
      name: 'of a range that is not any more as it was seen',
      ask: () => {
        report(rangeInfo(1, { voters: [1, 2, 4], end: 'm', confVersion: 3 }));
        return steer(MOVE);
      },
      code: 'INVALID_ARGUMENT',
      says: 'range 1 has changed since you looked at it',
    },
    {
      name: 'of a range that has gone on without reporting',
      ask: () => steer(MOVE, 1, { confVersion: 2, version: 1 }),
      code: 'UNAVAILABLE',
      says: 'has not reported its last change yet; try again',
    },
    { name: 'of no range', ask: () => steer(MOVE, 9), code: 'RANGE_NOT_FOUND', says: 'unknown range 9' },
    {
      name: 'of a range that ended',
      ask: () => steer(MOVE, 8),
      code: 'RANGE_NOT_FOUND',
      says: 'was merged into range 2',
    },
    {
      name: 'of a range that nobody leads',
      ask: () => steer(MOVE, 3),
      code: 'UNAVAILABLE',
      says: 'no leader of range 3',
    },
    {
      name: 'that is not possible',
      ask: () => steer({ type: 'move', from: 3, to: 2 }),
      code: 'INVALID_ARGUMENT',
      says: 'node 2 already has a replica; nodes 4, 5 can receive it',
    },
  ])('$name is refused', ({ ask, code, says }) => {
    expect(refusal(ask)).toMatchObject({ code, message: expect.stringContaining(says) });
  });
});

describe('operators', () => {
  test('tell what their step waits for', () => {
    steer(MOVE);
    report(rangeInfo(1, { voters: [1, 2, 3], end: 'm' }));
    scheduling.controller.refused(1, 'the disk of node 4 is full', nowMs);
    const [told] = actions.operators({ ended: false, rangeId: 1, limit: 10 });
    expect(told).toMatchObject({ status: 'started', outcome: 'refused so far: the disk of node 4 is full' });
    scheduling.controller.noted(1, 'a snapshot is being sent');
    expect(actions.operators({ ended: false, rangeId: 1, limit: 10 })).toMatchObject([
      { outcome: 'a snapshot is being sent' },
    ]);
  });

  test('are cancelled by their ids, once or twice', () => {
    const { operatorId } = steer(MOVE);
    nowMs += 70;
    const ended = { operatorId, status: 'cancelled', outcome: 'cancelled by request' };
    expect(actions.cancelOperator(operatorId)).toMatchObject({ ...ended, ageMs: 70, endedMs: 0 });
    expect(actions.cancelOperator(operatorId)).toMatchObject(ended);
    expect(actions.operators({ ended: true, rangeId: 2, limit: 10 })).toEqual([]);
    expect(actions.operators({ ended: true, rangeId: 1, limit: 10 })).toMatchObject([ended]);
  });

  test('that earlier leaders have ended are listed after those of this one', () => {
    const { operatorId } = steer(MOVE);
    actions.cancelOperator(operatorId);
    const ended = {
      kind: 'admin',
      status: 'success',
      reason: 'requested',
      step: 1,
      steps: ['a step'],
      outcome: 'done',
    };
    const times = { createdMs: WALL_MS - 9_000, endedMs: WALL_MS - 7_000 };
    earlier = [
      { ...ended, ...times, operatorId: 7, rangeId: 1, partner: 0 },
      { ...ended, ...times, operatorId: 8, rangeId: 2, partner: 1 },
      { ...ended, ...times, operatorId, rangeId: 1, partner: 0 },
    ];
    const ids = (rangeId: number, limit = 10): readonly number[] =>
      actions.operators({ ended: true, rangeId, limit }).map((operator) => operator.operatorId);
    expect(ids(0)).toEqual([operatorId, 8, 7]);
    expect(ids(2)).toEqual([8]);
    expect(ids(1, 2)).toEqual([operatorId, 8]);
    expect(actions.operators({ ended: true, rangeId: 2, limit: 10 })).toEqual([
      { ...ended, operatorId: 8, rangeId: 2, ageMs: 9_000, endedMs: 7_000 },
    ]);
  });

  test('that there are not, or that have ended otherwise, are not cancelled', () => {
    const { operatorId } = steer({ type: 'split', at: undefined });
    expect(refusal(() => actions.cancelOperator(999)).message).toBe(
      `unknown operator 999; the running operators are ${operatorId}`,
    );
    report(rangeInfo(1, { voters: [1, 2, 3], end: 'f', version: 2 }));
    expect(refusal(() => actions.cancelOperator(operatorId)).message).toContain('has already ended as success');
  });
});

describe('spreading', () => {
  test('a group is of the ranges that have the keys', () => {
    const key = (text: string) => Buffer.from(text);
    expect(actions.scatter({ start: key(''), end: key('') })).toEqual({ ranges: 2 });
    expect(actions.scatter({ start: key('m'), end: key('') })).toEqual({ ranges: 1 });
    expect(actions.scatter({ start: key('a'), end: key('m') })).toEqual({ ranges: 1 });
  });

  test('a group is not scattered while that is paused', () => {
    actions.pauseScheduler({ name: 'scatter', forMs: 5_000 }, () => {});
    const all = { start: Buffer.of(), end: Buffer.of() };
    expect(refusal(() => actions.scatter(all)).message).toContain('resume it first');
    nowMs += 5_000;
    expect(actions.scatter(all)).toEqual({ ranges: 2 });
  });

  test('a rehearsal of balance begins nothing, and what it shows is what is begun then', () => {
    const ranges = Array.from({ length: 12 }, (_, i) =>
      rangeInfo(i + 1, { voters: [1, 2, 3], start: String(10 + i), end: String(11 + i) }),
    );
    bed({ ranges });
    scheduling.tick(nowMs - 1_000_000); // checks what is new; nodes have not been up for long enough then
    for (const { operatorId } of scheduling.controller.active()) actions.cancelOperator(operatorId);
    nowMs += 3_600_000;
    const before = actions.operators({ ended: true, rangeId: 0, limit: 1_000 }).length;
    const rehearsed = actions.rebalance({ dryRun: true });
    expect(rehearsed.changes.length).toBeGreaterThan(0);
    expect(actions.operators({ ended: false, rangeId: 0, limit: 10 })).toEqual([]);
    expect(actions.operators({ ended: true, rangeId: 0, limit: 1_000 })).toHaveLength(before);
    expect(actions.rebalance({ dryRun: true })).toEqual(rehearsed);
    const begun = actions.rebalance({ dryRun: false });
    const bySteps = (changes: typeof begun.changes) =>
      changes.map(({ rangeId, steps }) => `${rangeId} ${steps}`).sort();
    expect(bySteps(begun.changes)).toEqual(bySteps(rehearsed.changes));
  });
});

test('nothing is balanced, nor rehearsed, while scheduling rests', () => {
  rests = 'scheduling is off';
  for (const dryRun of [true, false]) {
    expect(refusal(() => actions.rebalance({ dryRun }))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: 'not possible now: scheduling is off',
    });
  }
});

describe('schedulers', () => {
  test('rest for a time, and run again', () => {
    let told: unknown;
    actions.pauseScheduler({ name: 'bytes', forMs: 60_000 }, (_error, schedulers) => {
      told = schedulers?.find(({ name }) => name === 'bytes');
    });
    expect(told).toMatchObject({ pausedMs: 60_000, settings: ['bytes-tolerance-percent', 'bytes-gap-min'] });
    nowMs += 60_000;
    expect(actions.schedulers().find(({ name }) => name === 'bytes')).toMatchObject({ pausedMs: -1 });
  });

  test('that there are not cannot rest', () => {
    const error = refusal(() => actions.pauseScheduler({ name: 'colour', forMs: 1 }, () => {}));
    expect(error.message).toMatch(/unknown scheduler "colour"; the schedulers are scatter, merge, space/);
  });
});

describe('why', () => {
  test('is told of ranges and nodes, also of those that were not heard or store nothing', () => {
    expect(actions.why({ rangeId: 1, nodeId: 0 }).lines).toContain('it has no problems');
    expect(actions.why({ rangeId: 0, nodeId: 1 }).lines[0]).toBe('it has 2 replicas and leads 1');
    expect(actions.why({ rangeId: 0, nodeId: 6 }).lines).toEqual([expect.stringContaining('stores no data')]);
    expect(actions.why({ rangeId: 0, nodeId: 7 }).lines).toEqual([expect.stringContaining('it has not reported')]);
    expect(refusal(() => actions.why({ rangeId: 0, nodeId: 9 })).message).toContain('unknown node 9; the nodes are');
    expect(refusal(() => actions.why({ rangeId: 3, nodeId: 0 })).code).toBe('UNAVAILABLE');
    rests = 'scheduling is off';
    expect(actions.why({ rangeId: 1, nodeId: 0 }).lines[0]).toContain(
      'no operator starts automatically: scheduling is off',
    );
  });
});

describe('the duty of a node', () => {
  const ask = (nodeId: number, duty: NodeDuty) => {
    let error: unknown;
    actions.setNodeDuty({ nodeId, duty, forMs: duty === 'maintenance' ? 1_000 : 0 }, (failed) => {
      error = failed;
    });
    expect(error).toBeUndefined();
  };
  const down = (nodeId: number) => nodeInfo(nodeId, { liveness: 'down' });
  const away = (nodeId: number) => nodeInfo(nodeId, { duty: 'maintenance', maintenanceUntilMs: NOW_MS + 1_000 });

  test.each<{ nodeId: number; duty: NodeDuty }>([
    { nodeId: 1, duty: 'draining' },
    { nodeId: 1, duty: 'maintenance' },
    { nodeId: 1, duty: 'decommissioning' },
    { nodeId: 1, duty: 'serving' },
    { nodeId: 5, duty: 'removed' },
    { nodeId: 4, duty: 'removed' }, // the report of what has left it is not there yet
    { nodeId: 6, duty: 'removed' },
  ])('becomes $duty', ({ nodeId, duty }) => {
    ranges = RANGES;
    report(rangeInfo(3, { voters: [4, 2, 3] }));
    ask(nodeId, duty);
    expect(duties).toMatchObject([{ nodeId, duty }]);
  });

  test.each<{ name: string; odd?: readonly NodeInfo[]; nodeId: number; duty: NodeDuty; says: string }>([
    { name: 'an unknown node', nodeId: 9, duty: 'draining', says: 'unknown node 9; the nodes are' },
    { name: 'a node without data', nodeId: 6, duty: 'draining', says: 'node 6 stores no data' },
    {
      name: 'the last one that serves',
      odd: [2, 3, 4, 5].map(down),
      nodeId: 1,
      duty: 'draining',
      says: 'no other node is up and serving',
    },
    {
      name: 'maintenance beside another one of the same ranges',
      odd: [away(2)],
      nodeId: 1,
      duty: 'maintenance',
      says: 'range 1 would lose its quorum while node 1 is down: its replica on node 2 is down, silent or in maintenance',
    },
    {
      name: 'maintenance of one that the masters cannot miss now',
      nodeId: 2,
      duty: 'maintenance',
      says: 'the masters would lose their majority while node 2 is down: node 9 is silent; wait until it is back',
    },
    {
      name: 'decommissioning below the number of replicas',
      odd: [4, 5].map(down),
      nodeId: 1,
      duty: 'decommissioning',
      says: 'only 2 nodes are up and serving, and ranges have 3 replicas; add a node first',
    },
    {
      name: 'removal of one that a range may miss of which nothing is known',
      odd: [down(4)],
      nodeId: 4,
      duty: 'removed',
      says: 'no leader of range 3 has reported',
    },
    {
      name: 'maintenance of one whose range nothing is known of',
      nodeId: 4,
      duty: 'maintenance',
      says: 'no leader of range 3 has reported',
    },
    {
      name: 'removal of one that lives',
      nodeId: 2,
      duty: 'removed',
      says: 'is up and holds 2 replicas; decommission it',
    },
    {
      name: 'removal of a master that lives',
      nodeId: 1,
      duty: 'removed',
      says: 'node 1 is a master and is up',
    },
    {
      name: 'removal of a master that lives, and has no other role',
      nodeId: 8,
      duty: 'removed',
      says: 'node 8 is a master and is up',
    },
    { name: 'anything of a node that was removed', nodeId: 7, duty: 'serving', says: 'node 7 was removed permanently' },
  ])('is refused: $name', ({ odd, nodeId, duty, says }) => {
    bed(odd === undefined ? {} : { odd });
    expect(refusal(() => ask(nodeId, duty)).message).toContain(says);
    expect(duties).toEqual([]);
  });
});
