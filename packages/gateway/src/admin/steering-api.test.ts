import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { createLocalChannel, createRpcRegistry, type Done, type Method, type OperatorInfo } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterCalls } from './cluster-calls.ts';
import { SteeringApi } from './steering-api.ts';

const CALL = { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };
const EPOCH = { confVersion: 3, version: 1 };
const OPERATOR: OperatorInfo = {
  ...{ operatorId: 9, rangeId: 2, kind: 'admin', status: 'created', reason: 'requested', steps: ['a', 'b'] },
  ...{ step: 0, ageMs: 1.5, endedMs: -1, outcome: '' },
};
const RANGES = { ranges: [{ descriptor: { rangeId: 2, epoch: EPOCH }, leaderNode: 1, reports: [] }], more: false };

let asked: (readonly [method: string, request: unknown])[];
let answers: unknown[];
let api: SteeringApi;
let clock: ManualClock;
beforeEach(() => {
  asked = [];
  answers = [];
  clock = new ManualClock();
  const nobody = createLocalChannel({ registry: createRpcRegistry(), clock });
  const master = {
    call<Request, Reply>(method: Method<Request, Reply>, request: Request, _: unknown, done: Done<Reply>) {
      asked.push([method.name, request]);
      const answer = answers.shift();
      if (answer instanceof ServiceError) done(answer, undefined);
      else done(undefined, answer as Reply);
      return { cancel() {} };
    },
  };
  const dialer = { channel: () => nobody, channelTo: () => nobody };
  api = new SteeringApi(new ClusterCalls({ clock, random: new SeededRandom(1), dialer, master }));
});

/** What comes of it as time passes. */
async function settled(work: Promise<unknown>): Promise<unknown> {
  let result: unknown;
  const ended = work.then(
    (value) => {
      result = value;
    },
    (error: unknown) => {
      result = error;
    },
  );
  for (let passed = 0; passed < 2 * CALL.timeoutMs && result === undefined; passed++) {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    clock.advance(1);
  }
  await ended;
  return result;
}

const wish = (change: admin.ChangeRangeRequest['change'], seen = { confVersion: 0n, version: 0n }) =>
  api.changeRange({ rangeId: 2n, ...seen, change }, CALL);
const move = { $case: 'move', value: { fromNode: 1n, toNode: 4n } } as const;

describe('a change of a range', () => {
  test.each<{ name: string; change: admin.ChangeRangeRequest['change']; asks: unknown }>([
    { name: 'a move', change: move, asks: { type: 'move', from: 1, to: 4 } },
    {
      name: 'a replica more',
      change: { $case: 'addReplica', value: { node: 4n } },
      asks: { type: 'addReplica', nodeId: 4 },
    },
    {
      name: 'a replica less',
      change: { $case: 'removeReplica', value: { node: 1n } },
      asks: { type: 'removeReplica', nodeId: 1 },
    },
    {
      name: 'a split in the middle',
      change: { $case: 'split', value: { at: Buffer.of() } },
      asks: { type: 'split', at: undefined },
    },
    {
      name: 'a split at a key',
      change: { $case: 'split', value: { at: Buffer.of(3, 4) } },
      asks: { type: 'split', at: Buffer.of(3, 4) },
    },
    { name: 'a merge', change: { $case: 'merge', value: { source: 8n } }, asks: { type: 'merge', source: 8 } },
  ])('is meant for the range as it was seen: $name', async ({ change, asks }) => {
    answers = [OPERATOR];
    expect(await wish(change, { confVersion: 2n, version: 5n })).toMatchObject({ id: 9, ageMs: 1, endedMs: -1 });
    const seen = { confVersion: 2, version: 5 };
    expect(asked).toEqual([['master.steerRange', { rangeId: 2, epoch: seen, change: asks }]]);
  });

  test('is meant for the range as it is now, when nobody says how it was seen', async () => {
    answers = [RANGES, OPERATOR];
    await wish(move);
    expect(asked.map(([method]) => method)).toEqual(['master.ranges', 'master.steerRange']);
    expect(asked[1]?.[1]).toMatchObject({ epoch: EPOCH });
  });

  test.each<{ name: string; change: admin.ChangeRangeRequest['change'] }>([
    { name: 'no change at all', change: undefined },
    { name: 'a move to no node', change: { $case: 'move', value: { fromNode: 1n, toNode: 0n } } },
    { name: 'a merge with no range', change: { $case: 'merge', value: { source: -3n } } },
  ])('is refused without asking the master: $name', async ({ change }) => {
    await expect(wish(change, { confVersion: 1n, version: 1n })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(asked).toEqual([]);
  });

  test('that the master refuses is not asked for again', async () => {
    answers = [new ServiceError('INVALID_ARGUMENT', 'node 4 is down; nodes 5, 6 can receive it')];
    await expect(wish(move, { confVersion: 1n, version: 1n })).rejects.toThrow('nodes 5, 6 can receive it');
    expect(asked).toHaveLength(1);
  });
});

describe('a change of which an answer was lost', () => {
  const lost = new ServiceError('UNKNOWN_OUTCOME', 'no answer');
  const drain = () => api.setNodeDuty({ nodeId: 4n, duty: 'draining', forMs: 0n }, CALL);

  test('is asked for again, and told as done once that is known', async () => {
    answers = [lost, undefined];
    expect(await settled(drain())).toEqual({});
    expect(asked).toHaveLength(2);
  });

  test('may have been done, whatever refuses it afterwards', async () => {
    answers = [lost, new ServiceError('INVALID_ARGUMENT', 'node 4 was removed')];
    const error = { code: 'UNKNOWN_OUTCOME', message: expect.stringContaining('node 4 was removed') };
    expect(await settled(drain())).toMatchObject(error);
  });

  test('may have been done when nobody answers in time', async () => {
    answers = [lost, ...Array.from({ length: 1_000 }, () => new ServiceError('NOT_LEADER', 'not here'))];
    expect(await settled(drain())).toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  });

  test('is no matter of what only asks', async () => {
    answers = [lost, new ServiceError('INVALID_ARGUMENT', 'no')];
    expect(await settled(api.why({ rangeId: 2n, nodeId: 0n }, CALL))).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describe('other wishes', () => {
  test.each([
    { duty: 'lazy', forMs: 0n, says: /expected one of serving, draining/ },
    { duty: 'maintenance', forMs: 0n, says: /from 1 to/ },
    { duty: 'maintenance', forMs: 2n ** 40n, says: /from 1 to/ },
    { duty: 'draining', forMs: 5n, says: /belongs to maintenance/ },
  ])('a duty of $duty for $forMs ms is refused', async ({ duty, forMs, says }) => {
    await expect(api.setNodeDuty({ nodeId: 4n, duty, forMs }, CALL)).rejects.toThrow(says);
    expect(asked).toEqual([]);
  });

  test('a duty is told to the master', async () => {
    answers = [undefined];
    await api.setNodeDuty({ nodeId: 4n, duty: 'maintenance', forMs: 60_000n }, CALL);
    expect(asked).toEqual([['master.setNodeDuty', { nodeId: 4, duty: 'maintenance', forMs: 60_000 }]]);
  });

  test('a scatter of a span that ends before it begins is refused', async () => {
    const span = { start: Buffer.from('b'), end: Buffer.from('b') };
    await expect(api.scatter(span, CALL)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    answers = [{ ranges: 4 }];
    expect(await api.scatter({ ...span, end: Buffer.of() }, CALL)).toEqual({ ranges: 4 });
  });

  test('why is asked of one range or one node', async () => {
    for (const [rangeId, nodeId] of [[0n, 0n] as const, [2n, 4n] as const]) {
      await expect(api.why({ rangeId, nodeId }, CALL)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    answers = [{ lines: ['it has no problems'] }];
    expect(await api.why({ rangeId: 2n, nodeId: 0n }, CALL)).toEqual({ lines: ['it has no problems'] });
  });

  test('operators are listed up to the limit that the master takes', async () => {
    answers = [[OPERATOR], []];
    expect(await api.listOperators({ ended: false, rangeId: 0n, limit: 0 }, CALL)).toMatchObject({
      operators: [{ id: 9, steps: ['a', 'b'] }],
    });
    await api.listOperators({ ended: true, rangeId: 2n, limit: 5_000 }, CALL);
    expect(asked.map(([, request]) => request)).toEqual([
      { ended: false, rangeId: 0, limit: 100 },
      { ended: true, rangeId: 2, limit: 1_000 },
    ]);
  });
});
