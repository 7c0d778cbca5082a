import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { RangeClock } from './range-clock.ts';

function clockAt(rangeTimeMs: number): { readonly clock: ManualClock; readonly time: RangeClock } {
  const clock = new ManualClock({ monotonicMs: 70_000 });
  const time = new RangeClock(clock);
  time.reset(rangeTimeMs);
  return { clock, time };
}

test('a range that is far behind another one of its node goes on from there, at the pace of its own clock', () => {
  const { clock, time } = clockAt(5_000);
  time.catchUp(200_000);
  expect(time.nowMs()).toBe(200_000);
  clock.advance(300);
  expect(time.nowMs()).toBe(200_300);
});

test('it does not for a moment, and never goes back', () => {
  const { time } = clockAt(5_000);
  time.catchUp(6_000);
  expect(time.nowMs()).toBe(5_000);
  time.catchUp(1);
  expect(time.nowMs()).toBe(5_000);
});
