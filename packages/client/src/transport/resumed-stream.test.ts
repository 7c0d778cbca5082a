import { type ErrorCode, SeededRandom, ServiceError, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { pipeQuery, type Query } from '@remora/protocol';
import { beforeEach, expect, test } from 'vitest';
import { KvWatch } from '../kv/watch.ts';
import { eventsOfLock, eventsOfLocks } from '../lock/lock-events.ts';
import type { Requester } from './requester.ts';
import type { Subscription } from './subscription.ts';

/** A gateway; `answer`: what it says to a question about keys or locks, if it says anything. */
class FakeGateway {
  readonly asked: Query[] = [];
  answer: ErrorCode | 'ok' | undefined = 'ok';
  streams = 0;
  tell: () => void = () => {};
  readonly #clock: ManualClock;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  openStream(_method: unknown, _request: unknown, onMessage: (message: unknown) => void) {
    this.streams++;
    this.tell = () => onMessage({ kind: 'events', revision: 9, events: [] });
    return {
      send() {},
      cancel: () => {
        this.streams--;
      },
    };
  }

  call(
    method: unknown,
    { query }: { query: Query },
    { timeoutMs }: { timeoutMs: number },
    done: (e?: ServiceError) => void,
  ) {
    expect(method).toEqual(pipeQuery);
    this.asked.push(query);
    const { answer } = this;
    const code = answer ?? 'UNKNOWN_OUTCOME';
    const error = code === 'ok' ? undefined : new ServiceError(code, code);
    const timer = this.#clock.setTimer(answer === undefined ? timeoutMs : 1, () => done(error));
    return { cancel: () => timer.cancel() };
  }
}

let clock: ManualClock;
let gateways: readonly FakeGateway[];
let current: number;
beforeEach(() => {
  clock = new ManualClock();
  gateways = [new FakeGateway(clock), new FakeGateway(clock)];
  current = 0;
});

function requesterOf(count: number): Requester {
  return {
    ports: { clock, random: new SeededRandom(1), liveness: { hold() {}, release() {} } },
    gateways: {
      get channel() {
        return gateways[current];
      },
      failed(channel: unknown, cutOff = false) {
        if (cutOff && channel === gateways[current]) current = (current + 1) % count;
      },
    },
    closed: false,
  } as unknown as Requester;
}

const LOCK = { namespace: 'n', name: utf8('a') };
const kinds: readonly { readonly name: string; readonly open: (on: Requester) => Subscription<never, never, never> }[] =
  [
    { name: 'keys', open: (on) => new KvWatch(on, { key: Buffer.from('r') }, {}) as never },
    { name: 'a lock', open: (on) => eventsOfLock(on, LOCK, {}) as never },
    { name: 'all locks', open: (on) => eventsOfLocks(on, { namespace: 'n', name: utf8('') }, {}) as never },
  ];

function streams(): readonly number[] {
  return gateways.map(({ streams }) => streams);
}

test.each(kinds)('who listens to $name goes to another gateway when its own reaches no range (RS2)', ({ open }) => {
  for (const answer of ['UNAVAILABLE', 'DEADLINE_EXCEEDED', undefined] as const) {
    const from = current;
    const events = open(requesterOf(2));
    clock.advance(15_000);
    expect(streams()[from]).toBe(1);
    (gateways[from] as FakeGateway).answer = answer;
    clock.advance(15_000);
    expect([current, streams()]).toEqual([1 - from, from === 0 ? [0, 1] : [1, 0]]);
    (gateways[from] as FakeGateway).answer = 'ok';
    events.close();
    expect([streams(), clock.pendingTimers]).toEqual([[0, 0], 0]);
  }
});

test('a stream stays where it is while its gateway reaches the ranges, or says so by what it tells', () => {
  const [first] = gateways as readonly [FakeGateway];
  const watch = new KvWatch(requesterOf(2), { key: Buffer.from('r') }, {});
  clock.advance(100_000);
  first.answer = 'RESOURCE_EXHAUSTED';
  clock.advance(100_000);
  expect([streams(), first.asked.length > 5]).toEqual([[1, 0], true]);
  first.answer = 'UNAVAILABLE';
  const asked = first.asked.length;
  for (let i = 0; i < 20; i++) {
    first.tell();
    clock.advance(10_000);
  }
  expect([streams(), first.asked.length]).toEqual([[1, 0], asked]);
  watch.close();
  expect(clock.pendingTimers).toBe(0);
});

test('where there is one gateway the stream stays open, as it may reach the ranges again', () => {
  const [only] = gateways as readonly [FakeGateway];
  only.answer = undefined;
  const watch = new KvWatch(requesterOf(1), { key: Buffer.from('r') }, {});
  clock.advance(100_000);
  expect([streams(), only.asked.length > 2]).toEqual([[1, 0], true]);
  watch.close();
  expect(clock.pendingTimers).toBe(0);
});
