import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { Ticker } from './ticker.ts';

describe('ticker', () => {
  function ticking() {
    const clock = new ManualClock();
    const counts: number[] = [];
    const stalls: number[] = [];
    const ticker = new Ticker({
      clock,
      tickMs: 50,
      catchUpTicksMax: 2,
      tick: (count) => counts.push(count),
      stalled: (elapsedMs) => stalls.push(elapsedMs),
    });
    ticker.start();
    return { clock, counts, stalls, ticker };
  }

  test('ticks once per interval', () => {
    const { clock, counts, stalls } = ticking();
    clock.advance(1000);
    expect(counts).toEqual(Array.from({ length: 20 }, () => 1));
    expect(stalls).toEqual([]);
  });

  test('makes up for few ticks after a stall, and only after the input that waited', () => {
    const clock = new ManualClock();
    let stalledMs = 0;
    const log: string[] = [];
    const ticker = new Ticker({
      clock: {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs() + stalledMs,
        setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
        setImmediate: (fn) => clock.setImmediate(fn),
      },
      tickMs: 50,
      catchUpTicksMax: 2,
      tick: (count) => log.push(`tick ${count}`),
      stalled: (elapsedMs) => log.push(`stalled ${elapsedMs}`),
    });
    ticker.start();
    clock.advance(50);
    // The loop does not run for ten seconds; what came meanwhile is handled in the turn in which the late timer fires.
    clock.setImmediate(() => log.push('input'));
    stalledMs = 10_000;
    clock.fireNext();
    clock.advance(50);
    expect(log).toEqual(['tick 1', 'input', 'stalled 10050', 'tick 2', 'tick 1']);
  });

  test('a stopped ticker ticks no more', () => {
    const { clock, counts, ticker } = ticking();
    clock.advance(50);
    ticker.stop();
    clock.advance(500);
    expect(counts).toEqual([1]);
    expect(clock.pendingTimers).toBe(0);
  });
});
