import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { ClusterView, KvEvent } from '@remora/protocol';
import * as pb from '@remora/protocol/etcd';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Backend, WatchControl, WatchListener, WatchOptions } from '../backend.ts';
import { Headers } from './headers.ts';
import { ETCD_LIMITS } from './limits.ts';
import { WatchStream } from './watch-stream.ts';

/** One watch as the backend sees it: what was asked, and what the stream did with it. */
class BackendWatch implements WatchControl {
  readonly options: WatchOptions;
  readonly listener: WatchListener;
  readonly done: string[] = [];
  constructor(options: WatchOptions, listener: WatchListener) {
    this.options = options;
    this.listener = listener;
  }
  cancel(): void {
    this.done.push('cancel');
  }
  progress(): void {
    this.done.push('progress');
  }
  pause(): void {
    this.done.push('pause');
  }
  resume(): void {
    this.done.push('resume');
  }
}

function event(revision: number, value = 'v'): KvEvent {
  const kv = { createRevision: revision, modRevision: revision, version: 1, lease: 0n };
  return { type: 'put', kv: { key: Buffer.from('k'), value: Buffer.from(value), ...kv } };
}

class Bed {
  readonly clock = new ManualClock();
  readonly watches: BackendWatch[] = [];
  readonly sent: pb.WatchResponse[] = [];
  ended: ServiceError | 'ok' | undefined;
  writable = true;
  resumedReading = 0;
  /** What a watch ends with before the backend returns from it. */
  endsAtOnce: ServiceError | undefined;
  readonly stream: WatchStream;

  constructor(limits: Partial<typeof ETCD_LIMITS> = {}, refusal?: ServiceError) {
    const view: ClusterView = { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 };
    const backend: Backend = {
      nodeId: 1,
      rangeTimeMs: () => 0,
      check: () => {},
      view: () => view,
      command: () => () => {},
      query: () => expect.fail('a watch stream asks its watches, and nobody else'),
      watch: (options, listener) => {
        const watch = new BackendWatch(options, listener);
        this.watches.push(watch);
        if (this.endsAtOnce !== undefined) listener.onEnd(this.endsAtOnce, 0);
        return watch;
      },
      watchLocks: () => expect.fail('nobody watches locks'),
    };
    this.stream = new WatchStream(
      { backend, headers: new Headers(backend), clock: this.clock, caller: { principal: undefined, refusal } },
      { ...ETCD_LIMITS, ...limits },
      {
        write: (message) => {
          this.sent.push(message);
          return this.writable;
        },
        unread: () => 0,
        end: (error) => {
          this.ended = error ?? 'ok';
        },
      },
      () => {
        this.resumedReading++;
      },
    );
  }

  create(request: pb.DeepPartial<pb.WatchCreateRequest> = {}): boolean {
    const value = pb.WatchCreateRequest.create({ key: Buffer.from('k'), ...request });
    return this.stream.onRequest({ requestUnion: { $case: 'createRequest', value } });
  }
  cancel(watchId: bigint): void {
    this.stream.onRequest({ requestUnion: { $case: 'cancelRequest', value: { watchId } } });
  }
  progress(): void {
    this.stream.onRequest({ requestUnion: { $case: 'progressRequest', value: {} } });
  }
  watch(index: number): BackendWatch {
    const watch = this.watches[index];
    if (watch === undefined) throw new Error(`no watch ${index}`);
    return watch;
  }
  /** What was sent, in short. */
  get told(): string[] {
    return this.sent.map((message) => {
      const words = [`${message.watchId}@${message.header?.revision}`];
      if (message.created) words.push('created');
      if (message.canceled) words.push(`canceled(${message.compactRevision || message.cancelReason})`);
      if (message.fragment) words.push('fragment');
      if (message.events.length > 0) words.push(`events:${message.events.map((each) => each.kv?.modRevision)}`);
      return words.join(' ');
    });
  }
}

/** Watches in the past that take their steps one by one: created, two messages with events, then answers. */
class SlowWatches {
  readonly #bed: Bed;
  readonly #steps: number[] = [];

  constructor(bed: Bed) {
    this.#bed = bed;
  }

  /** One of them takes its next step; false: none has any left. */
  step(random: SeededRandom): boolean {
    const ready = [...this.#bed.watches.keys()].filter((index) => this.#isReady(index));
    const index = ready[random.int(ready.length)];
    if (index === undefined) return false;
    const { listener, options } = this.#bed.watch(index);
    const step = this.#steps[index] ?? 0;
    this.#steps[index] = step + 1;
    if (step === 0) listener.onCreated(92);
    else if (step === 1) listener.onEvents([event(options.startRevision)], options.startRevision);
    else if (step === 2) listener.onEvents([event(92)], 92);
    else listener.onProgress(93);
    return true;
  }

  /** A watch that is paused says nothing, and answers are to questions. */
  #isReady(index: number): boolean {
    const { done } = this.#bed.watch(index);
    const step = this.#steps[index] ?? 0;
    const asked = done.filter((what) => what === 'progress').length;
    const paused = done.findLast((what) => what !== 'progress') === 'pause';
    return step < 3 ? step === 0 || !paused : !paused && step - 3 < asked;
  }
}

describe('a watch stream', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = new Bed();
  });

  it('numbers watches from 0, skips ids that clients chose, and passes events on', () => {
    bed.create();
    bed.create({ watchId: 1n });
    bed.create();
    for (const watch of bed.watches) watch.listener.onCreated(5);
    bed.watch(2).listener.onEvents([event(6), event(7)], 7);
    expect(bed.told).toEqual(['0@5 created', '1@5 created', '2@5 created', '2@7 events:6,7']);
    expect(bed.watches.flatMap((watch) => watch.done)).toEqual([]);
  });

  it('answers creates in the order of their requests, and holds an early one back (W1)', () => {
    bed.create();
    bed.create();
    bed.watch(1).listener.onCreated(5);
    expect(bed.told).toEqual([]);
    expect(bed.watch(1).done).toEqual(['pause']);
    bed.watch(0).listener.onCreated(6);
    expect(bed.told).toEqual(['0@6 created', '1@5 created']);
    expect(bed.watch(1).done).toEqual(['pause', 'resume']);
  });

  it('translates keys, ranges, filters and revisions', () => {
    bed.create({ key: Buffer.alloc(0), rangeEnd: Buffer.from([0]), filters: [0], startRevision: 9n, prevKv: true });
    const { options } = bed.watch(0);
    expect(options).toMatchObject({ startRevision: 9, noPut: true, noDelete: false, prevKv: true });
    expect(options.key).toEqual(Buffer.from([0]));
    expect(options.end).toHaveLength(0);
  });

  it('refuses an id in use and an empty range as created and canceled at once, with no id', () => {
    bed.create({ watchId: 4n });
    bed.watch(0).listener.onCreated(5);
    bed.create({ watchId: 4n });
    bed.create({ key: Buffer.from('b'), rangeEnd: Buffer.from('a') });
    expect(bed.told.slice(1)).toEqual([
      '-1@5 created canceled(mvcc: duplicate watch ID provided on the WatchStream)',
      '-1@5 created canceled(mvcc: watcher range is empty)',
    ]);
    expect(bed.watches).toHaveLength(1);
  });

  it('refuses a caller who may not watch as created and canceled at once, with no id and the text of etcd', () => {
    for (const [code, etcd, reason] of [
      [
        'PERMISSION_DENIED',
        'permissionDenied',
        'rpc error: code = PermissionDenied desc = etcdserver: permission denied',
      ],
      ['UNAUTHENTICATED', 'userEmpty', 'rpc error: code = InvalidArgument desc = etcdserver: user name is empty'],
      [
        'UNAUTHENTICATED',
        'invalidAuthToken',
        'rpc error: code = Unauthenticated desc = etcdserver: invalid auth token',
      ],
    ] as const) {
      const bed = new Bed();
      bed.create();
      bed.create({ watchId: 7n });
      bed.watch(1).listener.onCreated(5);
      bed.watch(0).listener.onEnd(new ServiceError(code, 'no', { details: { etcd } }), 0);
      expect(bed.told).toEqual([`-1@0 created canceled(${reason})`, '7@5 created']);
    }
  });

  it('answers a caller whose token is not valid in the same way, and asks nobody (W7)', () => {
    const details = { etcd: 'invalidAuthToken' };
    const refused = new Bed({}, new ServiceError('UNAUTHENTICATED', 'invalid token', { details }));
    refused.create();
    refused.create({ watchId: 9n });
    const reason = 'rpc error: code = Unauthenticated desc = etcdserver: invalid auth token';
    const answer = { watchId: -1n, created: true, canceled: true, cancelReason: reason };
    expect(refused.sent).toEqual([expect.objectContaining(answer), expect.objectContaining(answer)]);
    expect([refused.watches, refused.ended]).toEqual([[], undefined]);
  });

  it('cancels a watch whose caller may not watch any more, by its id', () => {
    const bed = new Bed();
    bed.create();
    bed.watch(0).listener.onCreated(5);
    bed
      .watch(0)
      .listener.onEnd(new ServiceError('PERMISSION_DENIED', 'no', { details: { etcd: 'permissionDenied' } }), 0);
    expect(bed.told).toEqual(['0@5 created', '0@5 canceled(etcdserver: permission denied)']);
  });

  it('refuses a negative start revision as compacted, as etcd does since 3.6', () => {
    bed.create({ startRevision: -1n });
    expect(bed.told).toEqual(['-1@0 created canceled(etcdserver: mvcc: required revision has been compacted)']);
    expect(bed.watches).toHaveLength(0);
  });

  it('says nothing for a watch after canceled, and lets its id be used again (W2)', () => {
    bed.create({ watchId: 4n });
    bed.watch(0).listener.onCreated(5);
    bed.cancel(4n);
    bed.watch(0).listener.onEvents([event(6)], 6);
    bed.cancel(4n);
    expect(bed.told).toEqual(['4@5 created', '4@5 canceled()']);
    expect(bed.watch(0).done).toEqual(['cancel']);
    bed.create({ watchId: 4n });
    bed.watch(1).listener.onCreated(7);
    expect(bed.told.at(-1)).toBe('4@7 created');
  });

  it('answers created and canceled for a watch that was cancelled before it began', () => {
    bed.create();
    bed.cancel(0n);
    expect(bed.told).toEqual(['0@0 created', '0@0 canceled()']);
    bed.watch(0).listener.onCreated(5);
    bed.watch(0).listener.onEvents([event(6)], 6);
    expect(bed.sent).toHaveLength(2);
  });

  it('ends a watch on compacted history with the revision that is left', () => {
    bed.create({ startRevision: 2n });
    bed.watch(0).listener.onEnd(new ServiceError('COMPACTED', 'gone'), 10);
    expect(bed.told).toEqual(['0@10 created', '0@10 canceled(10)']);
    expect(bed.ended).toBeUndefined();
  });

  it('leaves no timer when its first watch ends it before the backend has returned', () => {
    bed.endsAtOnce = new ServiceError('UNAVAILABLE', 'no leader');
    bed.create({ progressNotify: true });
    expect(bed.ended).toMatchObject({ code: 'UNAVAILABLE' });
    expect(bed.watch(0).done).toEqual(['cancel']);
    expect(bed.clock.pendingTimers).toBe(0);
  });

  it('ends the stream when a watch ends for the moment only, so that clients resume (W4)', () => {
    bed.create();
    bed.create();
    bed.watch(0).listener.onCreated(5);
    bed.watch(1).listener.onCreated(5);
    bed.watch(0).listener.onEnd(new ServiceError('UNAVAILABLE', 'no leader'), 0);
    expect(bed.ended).toMatchObject({ code: 'UNAVAILABLE' });
    expect(bed.watch(1).done).toEqual(['cancel']);
    bed.watch(1).listener.onEvents([event(6)], 6);
    expect(bed.sent).toHaveLength(2);
  });

  it('pauses every watch while the client does not read, and does not read on itself (W3)', () => {
    bed.create();
    bed.create();
    for (const watch of bed.watches) watch.listener.onCreated(5);
    bed.writable = false;
    bed.watch(0).listener.onEvents([event(6)], 6);
    expect(bed.watches.map((watch) => watch.done)).toEqual([['pause'], ['pause']]);
    expect(bed.create()).toBe(false);
    bed.watch(2).listener.onCreated(6);
    expect(bed.told.at(-1)).toBe('0@6 events:6');
    bed.writable = true;
    bed.stream.onDrain();
    expect(bed.told.at(-1)).toBe('2@6 created');
    expect(bed.watches.map((watch) => watch.done.at(-1))).toEqual(['resume', 'resume', 'resume']);
    expect(bed.resumedReading).toBe(1);
  });

  it('splits events for a client that asked for fragments, and only for it', () => {
    bed = new Bed({ fragmentBytes: 250 });
    bed.create({ fragment: true });
    bed.create();
    for (const watch of bed.watches) watch.listener.onCreated(5);
    const big = [6, 6, 6, 6].map((revision) => event(revision, 'x'.repeat(80)));
    bed.watch(0).listener.onEvents(big, 6);
    bed.watch(1).listener.onEvents(big, 6);
    expect(bed.told.slice(2)).toEqual(['0@6 fragment events:6,6', '0@6 events:6,6', '1@6 events:6,6,6,6']);
  });

  it('announces no progress before a watch that was asked for is created and caught up (W5)', () => {
    bed.create();
    bed.watch(0).listener.onCreated(92);
    bed.create({ startRevision: 90n });
    bed.progress();
    bed.watch(0).listener.onProgress(92);
    expect(bed.told).toEqual(['0@92 created']);
    bed.watch(1).listener.onCreated(92);
    bed.watch(1).listener.onEvents([event(90)], 90);
    bed.watch(1).listener.onEvents([event(92)], 92);
    bed.watch(1).listener.onProgress(93);
    expect(bed.told.slice(1)).toEqual(['1@92 created', '1@90 events:90', '1@92 events:92', '-1@92']);
  });

  it('announces no progress for a watch that is created before its turn: it is paused, and asked when it goes on (W5)', () => {
    bed.create();
    bed.create({ startRevision: 90n });
    bed.watch(1).listener.onCreated(92);
    bed.progress();
    bed.watch(1).listener.onProgress(92);
    bed.watch(0).listener.onCreated(95);
    bed.watch(0).listener.onProgress(95);
    expect(bed.told).toEqual(['0@95 created', '1@95 created']);
    bed.watch(1).listener.onProgress(96);
    expect(bed.told.slice(2)).toEqual(['-1@95']);
  });

  it('answers 200 pipelined pairs of a create and a progress request, in whatever order watches begin: none too early', () => {
    for (let seed = 1; seed <= 20; seed++) {
      bed = new Bed();
      const random = new SeededRandom(seed);
      const backend = new SlowWatches(bed);
      /** Of each progress message, where it is, and how many watches were asked for by then. */
      const announced: { readonly at: number; readonly creates: number }[] = [];
      const look = (): void => {
        for (let at = (announced.at(-1)?.at ?? -1) + 1; at < bed.sent.length; at++) {
          if (bed.sent[at]?.watchId === -1n) announced.push({ at, creates: bed.watches.length });
        }
      };
      for (let i = 0; i < 200; i++) {
        bed.create({ startRevision: BigInt(1 + random.int(90)) });
        bed.progress();
        for (let turns = random.int(8); turns > 0; turns--) {
          backend.step(random);
          look();
        }
      }
      while (backend.step(random)) look();
      const late = announced.flatMap(({ at, creates }) =>
        bed.sent.slice(at).filter(({ watchId, events }) => events.length > 0 && watchId < creates),
      );
      expect([late, bed.told.at(-1), announced.at(-1)?.creates]).toEqual([[], '-1@93', 200]);
    }
  });

  it('tells an idle watch of progress at intervals, if it asked for that', () => {
    bed = new Bed({ progressIntervalMs: 1_000 });
    bed.create({ progressNotify: true });
    bed.create();
    for (const watch of bed.watches) watch.listener.onCreated(5);
    bed.watch(0).listener.onEvents([], 6);
    expect(bed.sent).toHaveLength(2);
    bed.clock.advance(1_000);
    bed.watch(0).listener.onEvents([], 6);
    bed.watch(0).listener.onProgress(7);
    bed.watch(1).listener.onEvents([], 7);
    expect(bed.told.slice(2)).toEqual(['0@7']);
    bed.watch(0).listener.onEvents([event(8)], 8);
    bed.clock.advance(1_000);
    expect(bed.watch(0).done).toEqual(['progress']);
    bed.clock.advance(1_000);
    expect(bed.watch(0).done).toEqual(['progress', 'progress']);
    expect(bed.watch(1).done).toEqual([]);
  });

  it('tells no watch of progress that lies before its first revision: it would be resumed too early', () => {
    bed = new Bed({ progressIntervalMs: 1_000 });
    bed.create({ progressNotify: true, startRevision: 9n });
    bed.watch(0).listener.onCreated(5);
    bed.clock.advance(1_000);
    bed.watch(0).listener.onProgress(7);
    bed.clock.advance(1_000);
    bed.watch(0).listener.onProgress(8);
    expect(bed.told.slice(1)).toEqual(['0@8']);
  });

  it('bounds the watches of a stream, and the creates that wait', () => {
    bed = new Bed({ watchesPerStreamMax: 2, watchRequestsPendingMax: 2 });
    expect(bed.create()).toBe(true);
    expect(bed.create()).toBe(false);
    bed.watch(0).listener.onCreated(5);
    expect(bed.resumedReading).toBe(1);
    bed.watch(1).listener.onCreated(5);
    bed.create();
    expect(bed.told.at(-1)).toBe('-1@5 created canceled(etcdserver: too many watches on one stream)');
  });

  it('lets go of everything when the client leaves', () => {
    bed.create({ progressNotify: true });
    bed.create();
    bed.watch(0).listener.onCreated(5);
    bed.stream.onHalfClose();
    expect(bed.ended).toBe('ok');
    expect(bed.watches.map((watch) => watch.done)).toEqual([['cancel'], ['cancel']]);
    expect(bed.clock.pendingTimers).toBe(0);
  });
});
