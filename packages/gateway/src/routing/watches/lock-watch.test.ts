import { SeededRandom, ServiceError, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type LockNews, lockSpan } from '@remora/lock';
import {
  type ClusterView,
  type LockWatchRequest,
  type RangeDescriptor,
  type RpcChannel,
  type RpcDialer,
  staleEpoch,
} from '@remora/protocol';
import { expect, test } from 'vitest';
import { nothingInFlight } from '../calls/in-flight.ts';
import { LeaderSearch } from '../routes/leader-search.ts';
import { Routes } from '../routes/routes.ts';
import { LockWatch } from './lock-watch.ts';

const WHOLE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: { confVersion: 1, version: 1 },
  replicas: [1, 2].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' as const })),
  revisionSource: 'range',
};
const SPLIT = { epoch: { confVersion: 1, version: 2 }, revisionSource: 'master' } as const;
const BORDER = lockSpan({ namespace: 'n', name: utf8('p/m') }).start;
const PARTS: readonly RangeDescriptor[] = [
  { ...WHOLE, ...SPLIT, end: BORDER },
  { ...WHOLE, ...SPLIT, start: BORDER, rangeId: 3 },
];
const BEGIN: LockNews = { type: 'begin', from: utf8(''), to: utf8('') };
const LIVE: LockNews = { type: 'live' };
const FREED: LockNews = { type: 'events', lock: { namespace: 'n', name: utf8('p/a') }, revision: 7, events: [] };

interface Stream {
  readonly node: number;
  readonly request: LockWatchRequest;
  readonly send: (...news: LockNews[]) => void;
  readonly end: (error: ServiceError) => void;
  open: boolean;
}

/** Leaders whose streams the test writes, and a client that watches the locks of a prefix. */
class WatchBed {
  readonly clock = new ManualClock();
  readonly streams: Stream[] = [];
  readonly seen: string[] = [];
  readonly inFlight = nothingInFlight();
  readonly watch: LockWatch;
  leader = 1;

  constructor() {
    const dialer: RpcDialer = { channel: (node) => this.#channel(node), channelTo: () => this.#channel(0) };
    const view: ClusterView = { clusterId: 'c', nodes: [], ranges: [WHOLE], leaders: [], masterLeader: 0 };
    const { clock, inFlight } = this;
    const routes = new Routes(clock, () => view);
    const search = new LeaderSearch({ dialer, routes, clock, stats: { leaders: 0 } });
    const deps = { dialer, routes, search, clock, random: new SeededRandom(1), inFlight };
    this.watch = new LockWatch(deps, { namespace: 'n', name: utf8('p/'), single: false }, (news) =>
      this.seen.push(news.map(({ type }) => type).join(' ')),
    );
    this.watch.start();
    clock.advance(50);
  }

  #channel(node: number): RpcChannel {
    return {
      call: (_method, request, _options, done) => {
        const { rangeId } = request as unknown as { readonly rangeId: number };
        const leaderNode = this.leader;
        this.clock.setTimer(1, () =>
          done(undefined, { rangeId, leaderNode, rangeTimeMs: 1, revision: 1, term: 1 } as never),
        );
        return { cancel() {} };
      },
      openStream: (_method, request, onMessage, onEnd) => {
        const stream: Stream = {
          ...{ node, open: true, request: request as unknown as LockWatchRequest },
          send: (...news) => onMessage(news as never),
          end: (error) => {
            stream.open = false;
            onEnd(error);
          },
        };
        this.streams.push(stream);
        return {
          send() {},
          cancel() {
            stream.open = false;
          },
        };
      },
    };
  }

  get open(): readonly Stream[] {
    return this.streams.filter(({ open }) => open);
  }

  stream(index: number): Stream {
    return this.open[index] ?? expect.fail(`no stream ${index}`);
  }
}

test('a new leader is listened to from the beginning', () => {
  const bed = new WatchBed();
  bed.stream(0).send(BEGIN, LIVE);
  bed.stream(0).send(FREED);
  bed.leader = 2;
  bed.stream(0).end(new ServiceError('NOT_LEADER', 'no longer leads'));
  bed.clock.advance(200);
  expect(bed.open.map(({ node }) => node)).toEqual([2]);
  bed.stream(0).send(BEGIN, LIVE);
  expect(bed.seen).toEqual(['begin live', 'events', 'begin live']);
});

test('after a split each part is listened to, and all is live when both are', () => {
  const bed = new WatchBed();
  bed.stream(0).send(BEGIN, LIVE);
  bed.stream(0).end(staleEpoch(PARTS));
  bed.clock.advance(500);
  expect(bed.open.map(({ request }) => request.rangeId)).toEqual([2, 3]);
  expect(bed.stream(0).request.span.end).toEqual(bed.stream(1).request.span.start);
  bed.stream(0).send(BEGIN, LIVE);
  bed.stream(1).send(BEGIN);
  bed.stream(1).send(FREED, LIVE);
  expect(bed.seen).toEqual(['begin live', 'begin', 'begin', 'events live']);
});

test('while it is paused nothing is listened to, and what is cancelled leaves nothing', () => {
  const bed = new WatchBed();
  bed.stream(0).send(BEGIN, LIVE);
  bed.watch.pause();
  expect(bed.open).toEqual([]);
  bed.watch.resume();
  bed.clock.advance(50);
  bed.stream(0).send(BEGIN);
  expect(bed.seen).toEqual(['begin live', 'begin']);
  bed.watch.cancel();
  bed.watch.cancel();
  bed.clock.advance(5_000);
  expect([bed.open.length, bed.inFlight.watches]).toEqual([0, 0]);
});

test('a watch that is cancelled while its leader is looked for begins nothing', () => {
  const bed = new WatchBed();
  bed.leader = 0;
  bed.stream(0).end(new ServiceError('NOT_LEADER', 'no longer leads'));
  bed.clock.advance(30);
  bed.watch.cancel();
  bed.leader = 1;
  bed.clock.advance(5_000);
  expect(bed.open).toEqual([]);
});
