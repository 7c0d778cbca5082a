import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { KvEvent, PipeWatchMessage, PipeWatchRequest } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Requester } from '../transport/requester.ts';
import { KvWatch } from './watch.ts';

/** A gateway whose streams are fed by the test. */
class WatchBed {
  readonly clock = new ManualClock();
  readonly asked: PipeWatchRequest[] = [];
  tell: (message: PipeWatchMessage) => void = () => {};
  breakOff: () => void = () => {};
  readonly #channel = {
    openStream: (
      _method: unknown,
      first: PipeWatchRequest,
      onMessage: (message: PipeWatchMessage) => void,
      onEnd: (error: ServiceError) => void,
    ) => {
      this.asked.push(first);
      this.tell = onMessage;
      this.breakOff = () => onEnd(new ServiceError('UNAVAILABLE', 'the link broke'));
      return { cancel() {} };
    },
  };
  readonly requester = {
    ports: { clock: this.clock, random: new SeededRandom(1), liveness: { hold() {}, release() {} } },
    gateways: { channel: this.#channel, failed() {} },
    closed: false,
  } as unknown as Requester;

  watch(startRevision: number): KvWatch {
    return new KvWatch(this.requester, { key: Buffer.from('r'), end: Buffer.from('s') }, { startRevision });
  }

  /** Breaks the stream; gives from where the watch goes on. */
  resumedFrom(): number {
    this.breakOff();
    this.clock.advance(5_000);
    return (this.asked.at(-1) as Extract<PipeWatchRequest, { kind: 'create' }>).startRevision;
  }
}

function put(revision: number): KvEvent {
  const key = Buffer.from('r1');
  const kv = { key, value: key, createRevision: revision, modRevision: revision, version: 1, lease: 0n };
  return { type: 'put', kv };
}

test('a watch goes on behind what is complete', () => {
  const bed = new WatchBed();
  const watch = bed.watch(0);
  bed.tell({ kind: 'created', revision: 10 });
  expect(bed.resumedFrom()).toBe(11);
  bed.tell({ kind: 'created', revision: 12 });
  bed.tell({ kind: 'events', revision: 13, events: [put(13)] });
  bed.tell({ kind: 'events', revision: 17, events: [] });
  expect(bed.resumedFrom()).toBe(18);
  watch.close();
});

// Found by the simulation of whole clusters (60360): it was told of a change before its beginning.
test('a watch that begins at a revision to come never begins before it, whatever it is told meanwhile', () => {
  const bed = new WatchBed();
  const watch = bed.watch(100);
  bed.tell({ kind: 'created', revision: 90 });
  bed.tell({ kind: 'events', revision: 95, events: [] });
  expect([watch.nextRevision, bed.resumedFrom()]).toEqual([100, 100]);
  watch.close();
});

test('a watch from now on says where it begins, before it tells anything, and once', async () => {
  const bed = new WatchBed();
  const watch = bed.watch(0);
  const began = watch.began();
  bed.tell({ kind: 'created', revision: 10 });
  bed.tell({ kind: 'events', revision: 12, events: [put(12)] });
  expect([await began, bed.resumedFrom()]).toEqual([11, 13]);
  bed.tell({ kind: 'created', revision: 20 });
  watch.close();
  expect(await watch.began()).toBe(11);
});

test('whoever waits for a watch to begin is told when it ends before', async () => {
  const watch = new WatchBed().watch(0);
  const began = watch.began();
  watch.close();
  await expect(began).rejects.toMatchObject({ code: 'CANCELED' });
});
