import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ClusterView,
  type KvEvent,
  kvRoutingKey,
  type RangeDescriptor,
  type RpcChannel,
  type RpcDialer,
  type StreamHandle,
  type WatchCreate,
  type WatchMessage,
  type WatchRequest,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { nothingInFlight } from '../calls/in-flight.ts';
import { Routes } from '../routes/routes.ts';
import { MergedWatch } from './merged-watch.ts';
import { WatchStreams } from './watch-streams.ts';

const WHOLE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: { confVersion: 1, version: 1 },
  replicas: [1, 2].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' as const })),
  revisionSource: 'range',
};
const SPLIT = { epoch: { confVersion: 1, version: 2 }, revisionSource: 'master' } as const;
const BORDER = kvRoutingKey(Buffer.from('m'));
const PARTS: readonly RangeDescriptor[] = [
  { ...WHOLE, ...SPLIT, end: BORDER },
  { ...WHOLE, ...SPLIT, start: BORDER, rangeId: 3 },
];

interface Stream {
  readonly node: number;
  readonly requests: WatchRequest[];
  readonly send: (message: WatchMessage) => void;
  readonly end: () => void;
}

interface Several {
  readonly ranges: readonly RangeDescriptor[];
  readonly end: string;
}

/** Leaders whose streams the test writes. */
class WatchBed {
  readonly clock = new ManualClock();
  readonly streams: Stream[] = [];
  readonly seen: string[] = [];
  readonly watch: MergedWatch;
  readonly inFlight = nothingInFlight();
  leader = 1;
  /** What the client does when it is told of events. */
  onEvents = (): void => {};
  /** Streams cannot even be begun. */
  refusing = false;
  readonly routes: Routes;
  /** Questions to the master. */
  doubts = 0;
  readonly askedNow: ((revision: number) => void)[] = [];

  /** `end`: it watches a span; ranges are those of the view, and each is led by the node that `leader` says. */
  constructor(startRevision: number, { ranges = [WHOLE], end = '' }: Partial<Several> = {}) {
    const dialer: RpcDialer = { channel: (node) => this.#channel(node), channelTo: () => this.#channel(0) };
    const view: ClusterView = { clusterId: 'c', nodes: [], ranges, leaders: [], masterLeader: 0 };
    const routes = new Routes(
      this.clock,
      () => view,
      () => {
        this.doubts++;
      },
    );
    this.routes = routes;
    const span = end === '' ? {} : { end: Buffer.from(end) };
    const { clock } = this;
    this.watch = new MergedWatch(
      {
        ...{ dialer, routes, clock, inFlight: this.inFlight },
        random: new SeededRandom(1),
        streams: new WatchStreams(dialer, clock),
        now: (_span, done) => {
          this.askedNow.push(done);
          return () => {};
        },
      },
      { key: Buffer.from('k'), ...span, startRevision, noPut: false, noDelete: false, prevKv: false },
      {
        onCreated: (revision) => this.seen.push(`created ${revision}`),
        onEvents: (events, revision) => {
          this.seen.push(`${events.map((event) => event.kv.modRevision).join(' ')} to ${revision}`);
          this.onEvents();
        },
        onProgress: (revision) => this.seen.push(`progress ${revision}`),
        onEnd: (error) => this.seen.push(error.code),
      },
    );
    this.watch.start();
    clock.advance(50);
  }

  #channel(node: number): RpcChannel {
    return {
      call: (_method, request, _options, done) => {
        const { rangeId } = request as unknown as { readonly rangeId: number };
        const info = { rangeId, leaderNode: this.leader, rangeTimeMs: 1, revision: 1, term: 1 };
        this.clock.setTimer(1, () => done(undefined, info as never));
        return { cancel() {} };
      },
      openStream: (_method, request, onMessage, onEnd) => {
        if (this.refusing) {
          onEnd(new ServiceError('UNAVAILABLE', 'in the pause after a failure'));
          return { send() {}, cancel() {} };
        }
        const requests = [request as unknown as WatchRequest];
        this.streams.push({
          node,
          requests,
          send: (message) => onMessage(message as never),
          end: () => onEnd(new ServiceError('UNAVAILABLE', 'broken')),
        });
        const handle: StreamHandle<WatchRequest> = { send: (next) => requests.push(next), cancel() {} };
        return handle as never;
      },
    };
  }

  get stream(): Stream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('no stream was opened');
    return stream;
  }

  creates(): readonly WatchCreate[] {
    return this.streams.flatMap(({ requests }) => requests).filter((request) => request.kind === 'create');
  }

  /** What the leader of one of several ranges says. */
  tellOf(rangeId: number, revision: number, ...events: readonly (number | KvEvent)[]): void {
    const { watchId } = this.latest(rangeId);
    const all = events.map((one) => (typeof one === 'number' ? event(one) : one));
    this.stream.send({ kind: 'events', watchId, revision, events: all });
  }

  /** What the leader of one of several ranges answers to the last question of its stream, or to another one. */
  answerOf(rangeId: number, revision: number, question = this.progressAsked): void {
    this.stream.send({ kind: 'progress', watchId: this.latest(rangeId).watchId, revision, question });
  }

  createdIn(rangeId: number, revision: number): void {
    this.stream.send({ kind: 'created', watchId: this.latest(rangeId).watchId, revision });
  }

  latest(rangeId: number): WatchCreate {
    const create = this.creates().findLast((request) => request.rangeId === rangeId);
    if (create === undefined) throw new Error(`range ${rangeId} was not asked`);
    return create;
  }

  get cancelled(): readonly number[] {
    const requests = this.streams.flatMap((stream) => stream.requests);
    return requests.flatMap((request) => (request.kind === 'cancel' ? [request.watchId] : []));
  }

  get progressAsked(): number {
    return this.stream.requests.filter(({ kind }) => kind === 'progress').length;
  }

  /** What the leader says of the watch that was asked for last. */
  tell(revision: number, ...events: readonly number[]): void {
    this.stream.send({
      kind: 'events',
      watchId: this.creates().at(-1)?.watchId ?? 0,
      revision,
      events: events.map(event),
    });
  }

  created(revision: number): void {
    this.stream.send({ kind: 'created', watchId: this.creates().at(-1)?.watchId ?? 0, revision });
  }
}

function event(modRevision: number, valueBytes = 0): KvEvent {
  const kv = {
    key: Buffer.from('k'),
    value: Buffer.alloc(valueBytes),
    createRevision: 1,
    modRevision,
    version: 1,
    lease: 0n,
  };
  return { type: 'put', kv };
}

describe('a routed watch', () => {
  test('goes on behind the last revision when its stream breaks, and when leadership moves', () => {
    const bed = new WatchBed(0);
    bed.created(10);
    bed.tell(12, 11, 12);
    bed.stream.end();
    bed.clock.advance(2_000);
    expect(bed.creates().at(-1)?.startRevision).toBe(13);
    bed.created(14);
    bed.leader = 2;
    const { watchId } = bed.creates().at(-1) ?? { watchId: 0 };
    bed.stream.send({ kind: 'ended', watchId, code: 'NOT_LEADER', message: '', compactRevision: 0 });
    bed.clock.advance(2_000);
    expect(bed.stream.node).toBe(2);
    bed.tell(15, 13, 15);
    expect(bed.seen).toEqual(['created 10', '11 12 to 12', '13 15 to 15']);
  });

  test('asks the same leader again while its range is being merged', () => {
    const bed = new WatchBed(0);
    bed.created(10);
    const { watchId } = bed.creates().at(-1) ?? { watchId: 0 };
    bed.stream.send({ kind: 'ended', watchId, code: 'UNAVAILABLE', message: '', compactRevision: 0 });
    bed.clock.advance(2_000);
    expect(bed.creates().at(-1)).toMatchObject({ startRevision: 11 });
    expect([bed.creates().at(-1)?.watchId === watchId, bed.routes.leader(2)]).toEqual([false, 1]);
    expect(bed.seen).toEqual(['created 10']);
  });

  test('is under way until it is cancelled or ended, whatever happens to its streams', () => {
    const bed = new WatchBed(0);
    bed.created(10);
    bed.stream.end();
    bed.clock.advance(2_000);
    bed.watch.pause();
    bed.watch.resume();
    expect(bed.inFlight.watches).toBe(1);
    bed.watch.cancel();
    bed.watch.cancel();
    expect(bed.inFlight.watches).toBe(0);
  });

  test('is not lost when a stream cannot even be begun', () => {
    const bed = new WatchBed(5);
    bed.created(9);
    bed.refusing = true;
    bed.stream.end();
    bed.clock.advance(3_000);
    expect(bed.streams.length).toBe(1);
    bed.refusing = false;
    bed.clock.advance(3_000);
    expect(bed.creates().length).toBe(2);
    bed.tell(9, 6);
    expect(bed.seen).toEqual(['created 9', '6 to 9']);
  });

  test('is begun once, however often it is paused and resumed while it waits', () => {
    const bed = new WatchBed(5);
    bed.stream.end();
    for (let i = 0; i < 5; i++) {
      bed.watch.pause();
      bed.watch.resume();
      bed.clock.advance(1);
    }
    bed.clock.advance(5_000);
    const open = bed.streams.flatMap(({ requests }) => requests);
    const cancelled = open.filter((request) => request.kind === 'cancel').length;
    expect(bed.creates().length - 1 - cancelled).toBe(1);
  });

  test('takes nothing from a watch that it took back', () => {
    const bed = new WatchBed(5);
    bed.created(9);
    const before = bed.creates().at(-1)?.watchId ?? 0;
    bed.watch.pause();
    bed.stream.send({ kind: 'events', watchId: before, revision: 6, events: [event(6)] });
    bed.watch.resume();
    bed.clock.advance(10);
    bed.stream.send({ kind: 'events', watchId: before, revision: 7, events: [event(6), event(7)] });
    bed.tell(7, 6, 7);
    expect(bed.seen).toEqual(['created 9', '6 7 to 7']);
  });

  test('ends for good when its start is compacted', () => {
    const bed = new WatchBed(5);
    const { watchId } = bed.creates()[0] ?? { watchId: 0 };
    bed.stream.send({ kind: 'ended', watchId, code: 'COMPACTED', message: '', compactRevision: 8 });
    bed.clock.advance(5_000);
    expect(bed.seen).toEqual(['COMPACTED']);
    expect(bed.creates().length).toBe(1);
    expect(bed.clock.pendingTimers).toBe(0);
  });

  test('asks for progress once per turn, however many ask', () => {
    const bed = new WatchBed(5);
    bed.created(9);
    for (let i = 0; i < 10; i++) bed.watch.progress();
    bed.clock.advance(1);
    expect(bed.stream.requests.filter((request) => request.kind === 'progress').length).toBe(1);
  });
});

describe('a watch over several ranges', () => {
  const several = { ranges: PARTS, end: 'z' };

  function begun(startRevision = 5): WatchBed {
    const bed = new WatchBed(startRevision, several);
    for (const { rangeId } of PARTS) bed.createdIn(rangeId, 20);
    return bed;
  }

  test('delivers by revision, up to where each of them is', () => {
    const bed = begun();
    bed.tellOf(2, 9, 5, 9);
    expect(bed.seen).toEqual(['created 20']);
    bed.tellOf(3, 7);
    bed.tellOf(3, 12, 8, 12);
    bed.tellOf(2, 30, 12, 13);
    expect(bed.seen.slice(1)).toEqual(['5 to 7', '8 9 to 9', '12 12 to 12']);
  });

  test('asks ranges that say nothing how far they are, as long as anything waits for them', () => {
    const bed = begun();
    bed.clock.advance(1_000);
    expect(bed.progressAsked).toBe(0);
    bed.tellOf(2, 9, 9);
    bed.clock.advance(1);
    expect(bed.progressAsked).toBe(1);
    bed.clock.advance(100);
    expect(bed.progressAsked).toBeGreaterThan(3);
    bed.tellOf(3, 15);
    bed.clock.advance(100);
    const asked = bed.progressAsked;
    bed.clock.advance(1_000);
    expect([bed.seen.at(-1), bed.progressAsked]).toEqual(['9 to 9', asked]);
  });

  test('tells progress once each of them has, and no further than the slowest', () => {
    const bed = begun();
    bed.watch.progress();
    bed.clock.advance(1);
    bed.answerOf(2, 40);
    expect(bed.seen).toEqual(['created 20']);
    bed.answerOf(3, 30);
    bed.tellOf(3, 50);
    expect(bed.seen.slice(1)).toEqual(['progress 30', ' to 40']);
  });

  test('answers a question by answers alone: not by events, and not by what a range says unasked (MW7)', () => {
    const bed = begun();
    bed.watch.progress();
    bed.clock.advance(1);
    bed.tellOf(2, 25);
    bed.tellOf(3, 30, 24);
    expect(bed.seen.slice(1)).toEqual(['24 to 25']);
    bed.answerOf(2, 40);
    bed.answerOf(3, 45);
    expect(bed.seen.slice(2)).toEqual(['progress 40']);
  });

  test('answers behind the events that it held (MW7)', () => {
    const bed = begun();
    bed.watch.progress();
    bed.clock.advance(1);
    bed.answerOf(2, 40);
    bed.tellOf(3, 30, 25, 30);
    expect(bed.seen.slice(1)).toEqual(['25 30 to 30']);
    bed.tellOf(2, 43, 42, 43);
    bed.answerOf(3, 42);
    expect(bed.seen.slice(2)).toEqual(['42 to 42', 'progress 42']);
  });

  test('asks a part again that has begun again meanwhile, and one that was paused (MW7)', () => {
    const bed = begun();
    bed.watch.progress();
    bed.clock.advance(1);
    bed.answerOf(2, 40);
    const { watchId } = bed.latest(3);
    bed.stream.send({ kind: 'ended', watchId, code: 'UNAVAILABLE', message: '', compactRevision: 0 });
    bed.clock.advance(500);
    bed.createdIn(3, 41);
    bed.clock.advance(1);
    bed.answerOf(3, 41, 1);
    expect(bed.seen).toEqual(['created 20']);
    bed.watch.pause();
    bed.watch.resume();
    bed.clock.advance(10);
    for (const { rangeId } of PARTS) bed.createdIn(rangeId, 50);
    bed.clock.advance(1);
    for (const { rangeId } of PARTS) bed.answerOf(rangeId, 50);
    expect(bed.seen.slice(1)).toEqual(['progress 50']);
  });

  test('repeats a question that is not answered, and takes an answer to any of them (MW7)', () => {
    const bed = begun();
    bed.watch.progress();
    bed.clock.advance(3_500);
    expect(bed.progressAsked).toBe(4);
    bed.answerOf(2, 40, 3);
    bed.answerOf(3, 40, 4);
    expect(bed.seen.slice(1)).toEqual(['progress 40']);
    bed.clock.advance(5_000);
    expect([bed.progressAsked, bed.clock.pendingTimers]).toEqual([4, 0]);
  });

  test('that was paused amid its answer gives it when it is resumed (MW7)', () => {
    const bed = begun();
    bed.onEvents = () => bed.watch.pause();
    bed.watch.progress();
    bed.clock.advance(1);
    bed.answerOf(2, 40);
    bed.tellOf(3, 29, 31);
    bed.answerOf(3, 42);
    expect(bed.seen.slice(1)).toEqual(['31 to 40']);
  });

  test('passes on how far all of them are when nothing happens, so that its client goes on above what is compacted', () => {
    const bed = begun();
    bed.tellOf(2, 900);
    expect(bed.seen).toEqual(['created 20']);
    bed.tellOf(3, 900);
    expect(bed.seen.slice(1)).toEqual([' to 900']);
    bed.tellOf(3, 950);
    bed.clock.advance(5_000);
    expect(bed.seen.slice(1)).toEqual([' to 900']);
    expect(bed.clock.pendingTimers).toBe(0);
  });

  test('says how far it is not as often as its ranges do, which are asked for the sake of others', () => {
    const bed = begun();
    for (let revision = 100; revision <= 130; revision++) {
      for (const { rangeId } of PARTS) bed.tellOf(rangeId, revision);
      bed.clock.advance(20);
    }
    expect(bed.seen.slice(1)).toEqual([' to 100']);
    bed.clock.advance(1_000);
    expect(bed.seen.slice(2)).toEqual([' to 130']);
    bed.watch.cancel();
    expect(bed.clock.pendingTimers).toBe(0);
  });

  test('says nothing of how far it is while events wait, or an answer is owed: these say it', () => {
    const bed = begun();
    for (const { rangeId } of PARTS) bed.tellOf(rangeId, 30);
    bed.clock.advance(2_000);
    bed.tellOf(2, 45, 45);
    bed.tellOf(3, 40);
    expect(bed.seen.slice(1)).toEqual([' to 30']);
    bed.tellOf(3, 50);
    expect(bed.seen.slice(2)).toEqual(['45 to 45']);
    bed.watch.progress();
    bed.clock.advance(1);
    bed.tellOf(2, 60);
    bed.answerOf(2, 65);
    bed.tellOf(3, 66);
    bed.answerOf(3, 70);
    expect(bed.seen.slice(3)).toEqual(['progress 65']);
  });

  test('of the future tells progress as far as ranges are, and none of what is yet to come', () => {
    const bed = begun(100);
    bed.watch.progress();
    bed.clock.advance(1);
    bed.answerOf(2, 60);
    bed.answerOf(3, 70);
    expect(bed.seen.slice(1)).toEqual(['progress 60']);
    bed.tellOf(2, 101, 100);
    bed.tellOf(3, 99);
    expect(bed.seen.slice(2)).toEqual([]);
    bed.tellOf(3, 102);
    expect(bed.seen.slice(2)).toEqual(['100 to 101']);
    bed.watch.progress();
    bed.clock.advance(1);
    bed.answerOf(2, 101);
    bed.answerOf(3, 90);
    expect(bed.seen.slice(3)).toEqual(['progress 101']);
  });

  test('tells nothing before it is created, though its parts have begun, and one of them was split since (MW8)', () => {
    const bed = new WatchBed(5, several);
    bed.createdIn(2, 20);
    bed.tellOf(2, 20, 6, 20);
    const [left = WHOLE, right = WHOLE] = PARTS;
    const middle = kvRoutingKey(Buffer.from('l'));
    const halves = [
      { ...left, epoch: { confVersion: 1, version: 3 }, end: middle },
      { ...left, epoch: { confVersion: 1, version: 3 }, rangeId: 4, start: middle, end: right.start },
    ];
    const { watchId } = bed.latest(2);
    bed.stream.send({ kind: 'ended', watchId, code: 'STALE_EPOCH', message: '', compactRevision: 0, ranges: halves });
    bed.clock.advance(25);
    bed.createdIn(3, 21);
    bed.tellOf(3, 21, 7, 21);
    bed.createdIn(2, 22);
    expect(bed.seen).toEqual([]);
    bed.createdIn(4, 22);
    expect(bed.seen).toEqual(['created 22', '6 7 20 to 20']);
  });

  test('from now on begins behind one revision, and is created when all of them watch', () => {
    const bed = new WatchBed(0, several);
    expect([bed.askedNow.length, bed.creates().length]).toEqual([1, 0]);
    bed.askedNow[0]?.(70);
    bed.clock.advance(10);
    expect(bed.creates().map(({ startRevision }) => startRevision)).toEqual([71, 71]);
    bed.createdIn(2, 90);
    expect(bed.seen).toEqual([]);
    bed.createdIn(3, 60);
    expect(bed.seen).toEqual(['created 70']);
  });

  test('from now on begins behind a later revision where the first is compacted before all of them watch', () => {
    const bed = new WatchBed(0, several);
    bed.askedNow[0]?.(70);
    bed.clock.advance(10);
    bed.createdIn(2, 90);
    const ended = { kind: 'ended', code: 'COMPACTED', message: '' } as const;
    bed.stream.send({ ...ended, watchId: bed.latest(3).watchId, compactRevision: 80 });
    expect([bed.seen, bed.askedNow.length]).toEqual([[], 2]);
    bed.askedNow[1]?.(95);
    bed.clock.advance(10);
    for (const rangeId of [2, 3]) {
      expect(bed.latest(rangeId).startRevision).toBe(96);
      bed.createdIn(rangeId, 97);
    }
    expect(bed.seen).toEqual(['created 95']);
    bed.stream.send({ ...ended, watchId: bed.latest(3).watchId, compactRevision: 98 });
    expect(bed.seen).toEqual(['created 95', 'COMPACTED']);
  });

  test('holds a bounded amount: ranges that are far ahead are left, and taken up again behind what they had brought', () => {
    const bed = begun();
    const far = bed.latest(2).watchId;
    bed.tellOf(2, 9, event(8, 3 << 20), event(9, 3 << 20));
    expect(bed.cancelled).toEqual([far]);
    bed.tellOf(3, 11);
    expect([bed.seen.at(-1), bed.latest(2).startRevision]).toEqual(['8 9 to 9', 10]);
    expect(bed.latest(2).watchId).not.toBe(far);
    bed.createdIn(2, 30);
    bed.tellOf(2, 12, 12);
    bed.tellOf(3, 13);
    expect(bed.seen.at(-1)).toBe('12 to 12');
  });

  test('holds nothing while it is paused, and misses nothing by that', () => {
    const bed = begun();
    bed.tellOf(2, 9, 8, 9);
    bed.tellOf(3, 8);
    bed.watch.pause();
    expect(bed.cancelled.length).toBe(2);
    bed.watch.resume();
    bed.clock.advance(10);
    expect([bed.latest(2).startRevision, bed.latest(3).startRevision]).toEqual([9, 9]);
    for (const { rangeId } of PARTS) bed.createdIn(rangeId, 20);
    bed.tellOf(2, 9, 9);
    bed.tellOf(3, 9, 9);
    expect(bed.seen).toEqual(['created 20', '8 to 8', '9 9 to 9']);
  });

  test('that was paused goes on in each range behind what that has told, which may be compacted as far', () => {
    const bed = begun();
    bed.tellOf(2, 1_000);
    bed.watch.pause();
    bed.watch.resume();
    bed.clock.advance(10);
    expect([bed.latest(2).startRevision, bed.latest(3).startRevision]).toEqual([1_001, 5]);
    bed.tellOf(3, 7, 6);
    expect(bed.seen.slice(1)).toEqual(['6 to 7']);
  });

  test('that was paused goes on in a range that was split behind what was delivered of its keys, wherever that was held', () => {
    const bed = begun();
    const other: KvEvent = { type: 'put', kv: { ...event(7).kv, key: Buffer.from('l5') } };
    bed.tellOf(2, 9, other, 8); // they wait for range 3
    const [left = WHOLE, right = WHOLE] = PARTS;
    const middle = kvRoutingKey(Buffer.from('l'));
    const halves = [
      { ...left, epoch: { confVersion: 1, version: 3 }, end: middle },
      { ...left, epoch: { confVersion: 1, version: 3 }, rangeId: 4, start: middle, end: right.start },
    ];
    const { watchId } = bed.latest(2);
    bed.stream.send({ kind: 'ended', watchId, code: 'STALE_EPOCH', message: '', compactRevision: 0, ranges: halves });
    bed.clock.advance(25);
    expect([2, 4].map((rangeId) => bed.latest(rangeId).startRevision)).toEqual([10, 10]);
    bed.watch.pause();
    bed.watch.resume();
    bed.clock.advance(10);
    expect([2, 4, 3].map((rangeId) => bed.latest(rangeId).startRevision)).toEqual([8, 7, 5]);
  });

  test('goes on at once in the ranges that it is told of when its range is split, and asks nobody for them', () => {
    const bed = new WatchBed(5, { end: 'z' });
    bed.created(20);
    const { watchId } = bed.latest(2);
    const ended = { kind: 'ended', watchId, code: 'STALE_EPOCH', message: '', compactRevision: 0 } as const;
    bed.stream.send({ ...ended, ranges: PARTS });
    bed.clock.advance(25);
    expect(PARTS.map(({ rangeId }) => bed.latest(rangeId).startRevision)).toEqual([5, 5]);
    expect(bed.doubts).toBe(0);
  });

  test('asks the master when it is told again of ranges that it knew, and they led nowhere', () => {
    const bed = new WatchBed(5);
    bed.created(20);
    for (const doubts of [0, 1]) {
      const { watchId } = bed.latest(2);
      const ended = { kind: 'ended', watchId, code: 'STALE_EPOCH', message: '', compactRevision: 0 } as const;
      bed.stream.send({ ...ended, ranges: [WHOLE] });
      expect(bed.doubts).toBe(doubts);
      bed.clock.advance(60);
    }
  });

  test('goes on when its range is split: each part begins behind what was received of all keys', () => {
    const bed = new WatchBed(5, { end: 'z' });
    bed.created(20);
    bed.tell(21, 20, 21);
    const { watchId } = bed.latest(2);
    bed.stream.send({ kind: 'ended', watchId, code: 'STALE_EPOCH', message: '', compactRevision: 0 });
    expect(bed.doubts).toBe(1);
    bed.routes.learnRanges(PARTS);
    bed.clock.advance(500);
    expect(PARTS.map(({ rangeId }) => bed.latest(rangeId).startRevision)).toEqual([22, 22]);
    for (const { rangeId } of PARTS) bed.createdIn(rangeId, 25);
    bed.tellOf(3, 23, 22);
    bed.tellOf(2, 25, 24);
    expect(bed.seen).toEqual(['created 20', '20 21 to 21', '22 to 23']);
  });

  test('ends as a whole when one of them cannot go on', () => {
    const bed = begun();
    const { watchId } = bed.latest(3);
    bed.stream.send({ kind: 'ended', watchId, code: 'COMPACTED', message: '', compactRevision: 8 });
    bed.clock.advance(5_000);
    expect([bed.seen.at(-1), bed.cancelled, bed.inFlight.watches]).toEqual(['COMPACTED', [bed.latest(2).watchId], 0]);
    expect(bed.clock.pendingTimers).toBe(0);
  });
});
