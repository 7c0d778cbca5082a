import { createHook } from 'node:async_hooks';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { SharedClock } from './shared-clock.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a clock that stands still', () => {
  test('fires timers in order while it skips, each at its own time, with what follows from one before the next (TC1)', async () => {
    const clock = new SharedClock({ runs: false });
    const seen: string[] = [];
    const see = (what: string): void => void seen.push(`${what} ${clock.monotonicMs()}`);
    clock.setTimer(20, () => see('c'));
    clock.setTimer(10, () => {
      see('a');
      clock.setImmediate(() => void Promise.resolve().then(() => clock.setTimer(5, () => see('b'))));
    });
    clock.setTimer(20, () => see('d'));
    clock.setTimer(31, () => see('late'));
    const cancelled = clock.setTimer(15, () => see('never'));
    cancelled.cancel();
    await clock.skip(30);
    expect(seen).toEqual(['a 10', 'b 15', 'c 20', 'd 20']);
    expect([clock.monotonicMs(), clock.wallMs(), clock.pendingTimers]).toEqual([30, Date.UTC(2026, 0, 1) + 30, 1]);
  });

  test('fires nothing by itself, but does work of one turn at once (TC2)', async () => {
    const clock = new SharedClock({ runs: false });
    const seen: string[] = [];
    clock.setTimer(0, () => seen.push('timer'));
    clock.setImmediate(() => seen.push('immediate'));
    for (let turns = 0; turns < 5; turns++) await turn();
    expect(seen).toEqual(['immediate']);
    await clock.skip(0);
    expect(seen).toEqual(['immediate', 'timer']);
  });

  test('skips one time after another (TC5)', async () => {
    const clock = new SharedClock({ runs: false });
    const seen: number[] = [];
    for (const ms of [5, 15]) clock.setTimer(ms, () => seen.push(clock.monotonicMs()));
    await Promise.all([clock.skip(10), clock.skip(10)]);
    expect([seen, clock.monotonicMs()]).toEqual([[5, 15], 20]);
  });

  test('skips until some work is done, and no further', async () => {
    const clock = new SharedClock({ runs: false });
    const work = new Promise((resolve) => clock.setTimer(700, () => clock.setTimer(300, () => resolve('done'))));
    clock.setTimer(5_000, () => {});
    expect(await clock.skipUntil(work)).toBe('done');
    expect(clock.monotonicMs()).toBe(1_000);
    await expect(clock.skipUntil(Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });

  test('gives up on work that is not done after 10 minutes of its own time', async () => {
    const clock = new SharedClock({ runs: false });
    const again = (): void => void clock.setTimer(60_000, again);
    again();
    await expect(clock.skipUntil(new Promise(() => {}))).rejects.toThrow('within 10 minutes');
  });

  test('goes on after a timer that throws', async () => {
    const clock = new SharedClock({ runs: false });
    const seen: string[] = [];
    clock.setTimer(1, () => {
      throw new Error('of a timer');
    });
    clock.setTimer(2, () => seen.push('next'));
    await expect(clock.skip(5)).rejects.toThrow('of a timer');
    await clock.skip(5);
    expect(seen).toEqual(['next']);
  });
});

describe('a clock that runs', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test('fires timers by itself, also those set before an earlier one', async () => {
    const clock = new SharedClock({ runs: true });
    const seen: string[] = [];
    await new Promise<void>((resolve) => {
      clock.setTimer(30, resolve);
      clock.setTimer(20, () => seen.push('second'));
      clock.setTimer(1, () => seen.push('first'));
    });
    expect(seen).toEqual(['first', 'second']);
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(30);
  });

  test('skips time in addition', async () => {
    const clock = new SharedClock({ runs: true });
    const seen: number[] = [];
    clock.setTimer(3_600_000, () => seen.push(clock.monotonicMs()));
    await clock.skip(3_599_000);
    expect(seen).toEqual([]);
    await clock.skip(1_000);
    expect(seen).toEqual([expect.closeTo(3_600_000, -5)]);
  });

  test('runs on, and skips, while a test library has replaced timers and dates (TC3)', async () => {
    const clock = new SharedClock({ runs: true });
    vi.useFakeTimers();
    await new Promise<void>((resolve) => void clock.setTimer(5, resolve));
    await clock.skip(1_000);
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(1_005);
  });

  test('has no timer of the process once it is cleared', async () => {
    const timers = new Set<number>();
    let watching = true; // Other timers of this process are none of the clock's.
    const hook = createHook({
      init: (id, type) => void (watching && type === 'Timeout' && timers.add(id)),
      destroy: (id) => void timers.delete(id),
    }).enable();
    const clock = new SharedClock({ runs: true });
    let fired = 0;
    for (let i = 0; i < 10; i++) clock.setTimer(60_000, () => fired++);
    watching = false;
    expect(timers.size).toBe(1);
    clock.clear();
    await turn();
    hook.disable();
    expect([fired, clock.pendingTimers, timers.size]).toEqual([0, 0, 0]);
  });
});

test('a clock that stands still runs while some work is done, if that is asked for', async () => {
  const clock = new SharedClock({ runs: false });
  await clock.runUntil(new Promise<void>((resolve) => void clock.setTimer(5, resolve)));
  const afterMs = clock.monotonicMs();
  expect(afterMs).toBeGreaterThanOrEqual(5);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(clock.monotonicMs()).toBe(afterMs);
});
