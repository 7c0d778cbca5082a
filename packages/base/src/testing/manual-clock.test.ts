import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../random.ts';
import { ManualClock } from './manual-clock.ts';

describe('ManualClock', () => {
  it('fires timers in the order they are due, ties in the order they were set, each at its own time', () => {
    const clock = new ManualClock();
    const random = new SeededRandom(7);
    const fired: { due: number; n: number; at: number }[] = [];
    const expected: { due: number; n: number; at: number }[] = [];
    for (let n = 0; n < 500; n++) {
      const due = random.int(40);
      clock.setTimer(due, () => fired.push({ due, n, at: clock.monotonicMs() }));
      expected.push({ due, n, at: due });
    }
    expected.sort((a, b) => a.due - b.due || a.n - b.n);
    clock.advance(20);
    expect(fired).toEqual(expected.filter((timer) => timer.due <= 20));
    clock.advance(100);
    expect(fired).toEqual(expected);
    expect(clock.monotonicMs()).toBe(120);
    expect(clock.pendingTimers).toBe(0);
  });

  it('fires a timer that a timer sets within the same advance, and none that was cancelled', () => {
    const clock = new ManualClock();
    const seen: string[] = [];
    const cancelled = clock.setTimer(6, () => seen.push('cancelled'));
    clock.setTimer(5, () => {
      seen.push(`first ${clock.monotonicMs()}`);
      cancelled.cancel();
      clock.setTimer(2, () => seen.push(`second ${clock.monotonicMs()}`));
    });
    clock.advance(10);
    expect(seen).toEqual(['first 5', 'second 7']);
  });

  it('runs immediates before later timers, with those they set', () => {
    const clock = new ManualClock();
    const seen: string[] = [];
    clock.setTimer(0, () => {
      seen.push('timer a');
      clock.setImmediate(() => seen.push('from timer a'));
    });
    clock.setTimer(0, () => seen.push('timer b'));
    clock.setImmediate(() => {
      seen.push('immediate');
      clock.setImmediate(() => seen.push('nested'));
    });
    clock.advance(0);
    expect(seen).toEqual(['immediate', 'nested', 'timer a', 'from timer a', 'timer b']);
  });

  it('lets the wall clock jump without moving monotonic time', () => {
    const clock = new ManualClock({ wallMs: 1000 });
    clock.advance(5);
    clock.jumpWall(-500);
    expect(clock.wallMs()).toBe(505);
    expect(clock.monotonicMs()).toBe(5);
  });
});
