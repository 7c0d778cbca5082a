import { ManualClock } from '@remora/base/testing';
import type { ProgressStatus } from '@remora/raft';
import { expect, test } from 'vitest';
import type { KeyedRequest } from '../../heat/sampled-load.ts';
import { PeerLiveness } from '../membership/peer-liveness.ts';
import { RangeLoad } from './range-load.ts';

const NOWHERE = { read() {}, wrote() {} };
const REQUEST: KeyedRequest = { body: { kind: 'query', query: { type: 'status' }, notBefore: 0 } };

test('rates approach what there is, and fall again when there is nothing', () => {
  const clock = new ManualClock();
  const load = new RangeLoad(clock, NOWHERE);
  const seconds = (count: number, perSecond: number): void => {
    for (let i = 0; i < count; i++) {
      for (let n = 0; n < perSecond; n++) load.wrote(REQUEST, 100);
      load.read(REQUEST, 7);
      clock.advance(1_000);
      load.rates();
    }
  };
  seconds(60, 20);
  const busy = load.rates();
  expect(busy.writesPerS).toBeCloseTo(20, 0);
  expect(busy.writeBytesPerS / busy.writesPerS).toBeCloseTo(100);
  expect([busy.readsPerS, busy.readBytesPerS / busy.readsPerS]).toEqual([expect.closeTo(1, 1), expect.closeTo(7)]);
  seconds(7, 0);
  expect(load.rates().writesPerS).toBeCloseTo(10, 0);
  seconds(120, 0);
  expect(load.rates().writesPerS).toBeLessThan(0.01);
});

test('rates do not depend on how often somebody looks', () => {
  const clock = new ManualClock();
  const [often, rarely] = [new RangeLoad(clock, NOWHERE), new RangeLoad(clock, NOWHERE)];
  for (let i = 0; i < 100; i++) {
    for (const load of [often, rarely]) load.wrote(REQUEST, 1);
    clock.advance(100);
    often.rates();
  }
  expect(often.rates().writesPerS).toBeCloseTo(rarely.rates().writesPerS, 1);
});

test('a replica is silent since it was heard last, and one that nobody has heard since it was looked at first', () => {
  const liveness = new PeerLiveness();
  const peer = (replica: number, heardLately: boolean) => ({ replica, heardLately }) as ProgressStatus;
  liveness.look([peer(1, true), peer(2, false)], 1_000);
  liveness.look([peer(1, false), peer(2, false)], 2_000);
  expect([1, 2].map((id) => liveness.silentMs(peer(id, false), 5_000))).toEqual([4_000, 4_000]);
  liveness.look([peer(1, true), peer(2, false)], 6_000);
  expect([1, 2].map((id) => liveness.silentMs(peer(id, id === 1), 7_000))).toEqual([0, 6_000]);
  liveness.look([peer(2, false)], 8_000);
  liveness.look([peer(1, false), peer(2, false)], 9_000); // back as a new member
  expect(liveness.silentMs(peer(1, false), 10_000)).toBe(1_000);
  liveness.clear();
  expect(liveness.silentMs(peer(2, false), 11_000)).toBe(0);
});

test('a replica that was heard at the last look was heard until shortly before this one, however long ago that was', () => {
  const liveness = new PeerLiveness();
  const peer = (heardLately: boolean) => ({ replica: 1, heardLately }) as ProgressStatus;
  liveness.look([peer(true)], 1_000);
  expect(liveness.allHeard).toBe(true);
  liveness.touched();
  expect(liveness.allHeard).toBe(false);
  liveness.look([peer(false)], 25_000);
  expect([liveness.allHeard, liveness.silentMs(peer(false), 25_000)]).toEqual([false, 1_000]);
  liveness.look([peer(false)], 26_000);
  expect(liveness.silentMs(peer(false), 27_000)).toBe(3_000);
});

test('a range that nobody uses keeps no rates, and says when there is load again', () => {
  const clock = new ManualClock();
  let begun = 0;
  const load = new RangeLoad(clock, NOWHERE, () => begun++);
  expect([load.quiet, load.rates().readsPerS]).toEqual([true, 0]);
  load.read(REQUEST, 1);
  load.read(REQUEST, 1);
  expect([load.quiet, begun]).toEqual([false, 1]);
  for (let i = 0; i < 200; i++) {
    clock.advance(1_000);
    load.rates();
  }
  expect([load.quiet, load.rates()]).toEqual([
    true,
    { readsPerS: 0, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0 },
  ]);
  load.wrote(REQUEST, 1);
  expect([load.quiet, begun]).toEqual([false, 2]);
});
