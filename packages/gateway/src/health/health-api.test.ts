import { ManualClock } from '@remora/base/testing';
import type { health as pb } from '@remora/protocol/etcd';
import { expect, test } from 'vitest';
import type { StreamSink } from '../calls.ts';
import { HealthApi } from './health-api.ts';

const SERVING = 1;
const NOT_SERVING = 2;
const CALL = { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };

class Sink implements StreamSink<pb.HealthCheckResponse> {
  readonly statuses: number[] = [];
  keepsUp = true;

  write({ status }: pb.HealthCheckResponse): boolean {
    this.statuses.push(status);
    return this.keepsUp;
  }
  unread(): number {
    return 0;
  }
  end(): void {}
}

function bed() {
  const state = { ready: false };
  const clock = new ManualClock();
  const api = new HealthApi({ clock, isReady: () => state.ready });
  return { state, clock, api };
}

test('the status is that of /ready; another service is unknown (GH1)', () => {
  const { state, api } = bed();
  const status = (): number | undefined => {
    let answer: pb.HealthCheckResponse | undefined;
    api.check({ service: '' }, CALL, (_error, response) => {
      answer = response;
    });
    return answer?.status;
  };
  expect(status()).toBe(NOT_SERVING);
  state.ready = true;
  expect(status()).toBe(SERVING);
  expect(() => api.check({ service: 'etcdserverpb.KV' }, CALL, () => {})).toThrow('the service "etcdserverpb.KV"');
});

test('a watch reports the status at once, then changes, and each once (GH2)', () => {
  const { state, clock, api } = bed();
  const sink = new Sink();
  const watch = api.watch(sink);
  watch.onRequest({ service: '' });
  clock.advance(2_000);
  state.ready = true;
  clock.advance(2_000);
  expect(sink.statuses).toEqual([NOT_SERVING, SERVING]);
  watch.onClose();
  state.ready = false;
  clock.advance(2_000);
  expect(sink.statuses).toHaveLength(2);
  expect(clock.nextTimerMs()).toBeUndefined();
});

test('a watch that does not read gets the latest status when it reads again (GH2)', () => {
  const { state, clock, api } = bed();
  const sink = new Sink();
  sink.keepsUp = false;
  const watch = api.watch(sink);
  watch.onRequest({ service: '' });
  for (const ready of [true, false, true]) {
    state.ready = ready;
    clock.advance(600);
  }
  expect(sink.statuses).toEqual([NOT_SERVING]);
  watch.onDrain();
  expect(sink.statuses).toEqual([NOT_SERVING, SERVING]);
});

test('a watch of another service stays open and reports that it is unknown (GH1)', () => {
  const { clock, api } = bed();
  const sink = new Sink();
  api.watch(sink).onRequest({ service: 'x' });
  clock.advance(2_000);
  expect(sink.statuses).toEqual([3]);
});
