import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { Ticker } from './ticker.ts';

describe('ticker', () => {
  function ticking() {
    const clock = new ManualClock();
    const counts: number[] = [];
    const stalls: number[] = [];
    const due = { next: 1 };
    const ticker = new Ticker({
      clock,
      tickMs: 50,
      catchUpTicksMax: 2,
      tick: (count) => counts.push(count),
      stalled: (elapsedMs) => stalls.push(elapsedMs),
      nextDue: () => due.next,
    });
    ticker.start();
    return { clock, counts, stalls, ticker, due };
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
      nextDue: () => 1,
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

  test('sleeps over ticks at which nothing is due, and makes them all when it wakes', () => {
    const { clock, counts, due } = ticking();
    due.next = 4;
    clock.advance(50 + 3 * 200);
    expect(counts).toEqual([1, 4, 4, 4]);
  });

  test('input finds the ticks that have passed, but none at which something is due (T3, T4)', () => {
    const { clock, counts, stalls, ticker, due } = ticking();
    due.next = 4;
    clock.advance(50 + 120);
    ticker.sync();
    expect(counts.splice(0)).toEqual([1, 2]);
    ticker.sync();
    expect(counts).toEqual([]);
    clock.advance(80);
    expect(counts.splice(0)).toEqual([2]);
    expect(stalls).toEqual([]);
  });

  test('of what comes after an input no more than the catch-up covers the time before it (T3)', () => {
    const clock = new ManualClock();
    let lateMs = 0;
    const counts: number[] = [];
    const stalls: number[] = [];
    const ticker = new Ticker({
      clock: {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs() + lateMs,
        setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
        setImmediate: (fn) => clock.setImmediate(fn),
      },
      tickMs: 50,
      catchUpTicksMax: 2,
      tick: (count) => counts.push(count),
      stalled: (elapsedMs) => stalls.push(elapsedMs),
      nextDue: () => 4,
    });
    ticker.start();
    clock.advance(50);
    lateMs = 1_000;
    ticker.sync();
    expect(counts.splice(0)).toEqual([1, 3]);
    clock.fireNext();
    expect(counts).toEqual([2]);
    expect(stalls).toHaveLength(1);
  });

  test('wakes earlier for what has become due meanwhile', () => {
    const { clock, counts, ticker, due } = ticking();
    due.next = 4;
    clock.advance(50);
    ticker.wakeWithin(2);
    clock.advance(100);
    expect(counts).toEqual([1, 2]);
    clock.advance(200);
    expect(counts).toEqual([1, 2, 4]);
    expect(clock.pendingTimers).toBe(1);
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
