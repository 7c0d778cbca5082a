import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type RangeDescriptor, type RangeInfo, type RpcChannel, type RpcDialer, staleEpoch } from '@remora/protocol';
import { expect, test } from 'vitest';
import { LeaderSearch } from './leader-search.ts';
import { Routes } from './routes.ts';

const RANGE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: { confVersion: 1, version: 1 },
  replicas: [1, 2, 3].map((nodeId) => ({ replicaId: nodeId, nodeId, type: 'voter' as const })),
  revisionSource: 'range',
};

/** The range that has taken the keys over. */
const UNION: RangeDescriptor = { ...RANGE, rangeId: 3, epoch: { confVersion: 1, version: 2 } };
const KEY = Buffer.from([3, 0x6b]);

/** Each node answers with the leader that it knows; one that is absent never answers. */
function setUp(says: Map<number, { leader: number; term: number } | 'unreachable' | 'merged away'>) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const channel = (node: number): RpcChannel => ({
    call(_method, _request, _options, done) {
      asked.push(node);
      const answer = says.get(node);
      clock.setImmediate(() => {
        if (answer === 'unreachable') done(new ServiceError('UNAVAILABLE', 'gone'), undefined);
        else if (answer === 'merged away') done(staleEpoch([UNION]), undefined);
        else if (answer !== undefined) {
          const info: RangeInfo = {
            rangeId: 2,
            leaderNode: answer.leader,
            rangeTimeMs: 5,
            revision: 1,
            term: answer.term,
          };
          done(undefined, info as never);
        }
      });
      return { cancel() {} };
    },
    openStream: () => ({ send() {}, cancel() {} }),
  });
  const dialer: RpcDialer = { channel, channelTo: () => channel(0) };
  const view = { clusterId: 'c', nodes: [], ranges: [RANGE], leaders: [], masterLeader: 0 };
  const routes = new Routes(clock, () => view);
  return { clock, asked, routes, search: new LeaderSearch({ dialer, routes, clock, stats: { leaders: 0 } }) };
}

test('only a replica that says "I lead" is believed (LS1)', () => {
  const says = new Map<number, { leader: number; term: number } | 'unreachable'>([
    [1, 'unreachable'],
    [2, { leader: 1, term: 1 }],
    [3, { leader: 1, term: 1 }],
  ]);
  const { clock, routes, search } = setUp(says);
  let found = 0;
  search.wait(RANGE, KEY, () => found++);
  clock.advance(500);
  expect([found, routes.leader(2)]).toEqual([0, 0]);
  says.set(3, { leader: 3, term: 2 });
  clock.advance(60);
  expect([found, routes.leader(2)]).toEqual([1, 3]);
});

test('all who wait share the questions, and none is asked twice at a time (LS2)', () => {
  const { clock, asked, search } = setUp(new Map([[2, { leader: 0, term: 1 }]]));
  for (let i = 0; i < 100; i++) search.wait(RANGE, KEY, () => {});
  clock.advance(240);
  expect(asked.filter((node) => node === 1).length).toBe(1);
  expect(asked.filter((node) => node === 2).length).toBeLessThanOrEqual(11);
  expect(asked.filter((node) => node === 2).length).toBeGreaterThan(5);
});

test('the search ends when nobody waits any more', () => {
  const { clock, search } = setUp(new Map([[2, { leader: 0, term: 1 }]]));
  const stop = search.wait(RANGE, KEY, () => {});
  clock.advance(100);
  stop();
  clock.advance(100);
  expect(clock.pendingTimers).toBe(0);
});

// Cluster seed 80215: an observer of an election was told nothing any more, as its range was led by a new member.
test('a leader that became a member after the search began is found (LS2)', () => {
  const says = new Map([1, 2, 3].map((node) => [node, { leader: 0, term: 1 }]));
  const { clock, routes, search } = setUp(says);
  let found = 0;
  search.wait(RANGE, KEY, () => found++);
  clock.advance(100);
  says.set(4, { leader: 4, term: 2 });
  says.set(2, { leader: 4, term: 2 });
  clock.advance(60);
  expect([found, routes.leader(2)]).toEqual([1, 4]);
});

test('those are asked that are members by now, as the routes know (LS2)', () => {
  const says = new Map([[5, { leader: 5, term: 2 }]]);
  const { clock, routes, search } = setUp(says);
  let found = 0;
  search.wait(RANGE, KEY, () => found++);
  clock.advance(100);
  const replicas = [4, 5, 6].map((nodeId) => ({ replicaId: nodeId, nodeId, type: 'voter' as const }));
  routes.learnRanges([{ ...RANGE, epoch: { confVersion: 4, version: 1 }, replicas }]);
  clock.advance(60);
  expect([found, routes.leader(2)]).toEqual([1, 5]);
});

test('who waits for the leader of a range that was merged away is let go, to ask where its key is now (LS3)', () => {
  const says = new Map<number, { leader: number; term: number } | 'unreachable' | 'merged away'>([
    [1, 'unreachable'],
    [2, 'unreachable'],
    [3, 'unreachable'],
  ]);
  const { clock, asked, routes, search } = setUp(says);
  let found = 0;
  search.wait(RANGE, KEY, () => found++);
  clock.advance(100);
  expect(found).toBe(0);
  says.set(2, 'merged away');
  clock.advance(60);
  expect([found, routes.find(KEY)?.rangeId]).toEqual([1, 3]);
  const before = asked.length;
  clock.advance(500);
  expect(asked.length).toBeLessThanOrEqual(before + 3); // nobody waits any more
});

test('who was told of a leader is not told again, when another replica says afterwards that the range was merged away', () => {
  const { clock, routes, search } = setUp(
    new Map<number, { leader: number; term: number } | 'merged away'>([
      [1, { leader: 1, term: 1 }],
      [2, 'merged away'],
    ]),
  );
  let found = 0;
  search.wait(RANGE, KEY, () => found++);
  clock.advance(500);
  expect([found, routes.find(KEY)?.rangeId]).toEqual([1, 3]);
});
