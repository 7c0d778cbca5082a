import { ManualClock, SeededRandom, ServiceError } from '@remora/base';
import type {
  ClusterView,
  KvEvent,
  RpcChannel,
  RpcDialer,
  StreamHandle,
  WatchCreate,
  WatchMessage,
  WatchRequest,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { MergedWatch } from './merged-watch.ts';
import { Routes } from './routes.ts';
import { nothingUnderWay } from './under-way.ts';
import { WatchStreams } from './watch-streams.ts';

const VIEW: ClusterView = {
  clusterId: 'c',
  nodes: [],
  ranges: [
    {
      rangeId: 2,
      start: new Uint8Array(0),
      end: new Uint8Array(0),
      epoch: { confVersion: 1, version: 1 },
      replicas: [1, 2].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' as const })),
      revisionSource: 'range',
    },
  ],
  leaders: [],
  masterLeader: 0,
};

interface Stream {
  readonly node: number;
  readonly requests: WatchRequest[];
  readonly send: (message: WatchMessage) => void;
  readonly end: () => void;
}

/** Leaders whose streams the test writes. */
class WatchBed {
  readonly clock = new ManualClock();
  readonly streams: Stream[] = [];
  readonly seen: string[] = [];
  readonly watch: MergedWatch;
  readonly underWay = nothingUnderWay();
  leader = 1;
  /** Streams cannot even be begun. */
  refusing = false;

  constructor(startRevision: number) {
    const dialer: RpcDialer = { channel: (node) => this.#channel(node), channelTo: () => this.#channel(0) };
    const routes = new Routes(this.clock, () => VIEW);
    const { clock } = this;
    this.watch = new MergedWatch(
      {
        ...{ dialer, routes, clock, underWay: this.underWay },
        random: new SeededRandom(1),
        streams: new WatchStreams(dialer, clock),
        now: () => () => {},
      },
      { key: Buffer.from('k'), startRevision, noPut: false, noDelete: false, prevKv: false },
      {
        onCreated: (revision) => this.seen.push(`created ${revision}`),
        onEvents: (events, revision) => {
          this.seen.push(`${events.map((event) => event.kv.modRevision).join(' ')} to ${revision}`);
        },
        onEnd: (error) => this.seen.push(error.code),
      },
    );
    this.watch.start();
    clock.advance(50);
  }

  #channel(node: number): RpcChannel {
    return {
      call: (_method, _request, _options, done) => {
        const info = { rangeId: 2, leaderNode: this.leader, rangeTimeMs: 1, revision: 1, term: 1 };
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

function event(modRevision: number): KvEvent {
  const none = Buffer.alloc(0);
  const kv = { key: Buffer.from('k'), value: none, createRevision: 1, modRevision, version: 1, lease: 0n };
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

  test('is under way until it is cancelled or ended, whatever happens to its streams', () => {
    const bed = new WatchBed(0);
    bed.created(10);
    bed.stream.end();
    bed.clock.advance(2_000);
    bed.watch.pause();
    bed.watch.resume();
    expect(bed.underWay.watches).toBe(1);
    bed.watch.cancel();
    bed.watch.cancel();
    expect(bed.underWay.watches).toBe(0);
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
