import { ManualClock, ServiceError } from '@remora/base';
import type { RangeDescriptor, RangeInfo, RpcChannel, RpcDialer } from '@remora/protocol';
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

/** Each node answers with the leader that it knows; one that is absent never answers. */
function setUp(says: Map<number, { leader: number; term: number } | 'unreachable'>) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const channel = (node: number): RpcChannel => ({
    call(_method, _request, _options, done) {
      asked.push(node);
      const answer = says.get(node);
      clock.setImmediate(() => {
        if (answer === 'unreachable') done(new ServiceError('UNAVAILABLE', 'gone'), undefined);
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
  return { clock, asked, routes, search: new LeaderSearch({ dialer, routes, clock }) };
}

test('only a replica that says "I lead" is believed (LS1)', () => {
  const says = new Map<number, { leader: number; term: number } | 'unreachable'>([
    [1, 'unreachable'],
    [2, { leader: 1, term: 1 }],
    [3, { leader: 1, term: 1 }],
  ]);
  const { clock, routes, search } = setUp(says);
  let found = 0;
  search.wait(RANGE, () => found++);
  clock.advance(500);
  expect([found, routes.leader(2)]).toEqual([0, 0]);
  says.set(3, { leader: 3, term: 2 });
  clock.advance(60);
  expect([found, routes.leader(2)]).toEqual([1, 3]);
});

test('all who wait share the questions, and none is asked twice at a time (LS2)', () => {
  const { clock, asked, search } = setUp(new Map([[2, { leader: 0, term: 1 }]]));
  for (let i = 0; i < 100; i++) search.wait(RANGE, () => {});
  clock.advance(240);
  expect(asked.filter((node) => node === 1).length).toBe(1);
  expect(asked.filter((node) => node === 2).length).toBeLessThanOrEqual(11);
  expect(asked.filter((node) => node === 2).length).toBeGreaterThan(5);
});

test('the search ends when nobody waits any more', () => {
  const { clock, search } = setUp(new Map([[2, { leader: 0, term: 1 }]]));
  const stop = search.wait(RANGE, () => {});
  clock.advance(100);
  stop();
  clock.advance(100);
  expect(clock.pendingTimers).toBe(0);
});
