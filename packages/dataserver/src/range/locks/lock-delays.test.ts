import { utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { DelayedHold } from '@remora/lock';
import type { Command } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { memoryEngine } from '../../../test/support/state-bed.ts';
import { DelayedHolds } from '../../state/locks/delayed-holds.ts';
import { LockDelays } from './lock-delays.ts';

const holdOf = (version: number, delayMs: number): DelayedHold => ({
  lock: { namespace: 'n', name: utf8('plant') },
  owner: { session: { lease: 7n, incarnation: 1 }, token: 't' },
  ...{ version, delayMs },
});

/** A watch whose proposals wait until the test decides them. */
class DelaysBed {
  readonly clock = new ManualClock({ monotonicMs: 50_000 });
  readonly holds = new DelayedHolds(memoryEngine());
  readonly proposed: { readonly command: Command; readonly done: (applied: boolean) => void }[] = [];
  readonly delays = new LockDelays(this.clock, this.holds, (command, done) => this.proposed.push({ command, done }));

  begin(hold: DelayedHold): void {
    this.holds.add(hold);
    this.delays.began(hold);
  }
}

describe('lock-delays', () => {
  test('end by a proposal that names the hold, once the delay has passed, and once only', () => {
    const bed = new DelaysBed();
    bed.delays.start();
    const hold = holdOf(5, 1_000);
    bed.begin(hold);
    bed.clock.advance(999);
    expect(bed.proposed).toEqual([]);
    bed.clock.advance(101);
    const { lock, owner, version } = hold;
    expect(bed.proposed.map(({ command }) => command)).toEqual([
      { type: 'lock', command: { type: 'endDelay', lock, owner, version } },
    ]);
    bed.clock.advance(500);
    bed.holds.remove(hold);
    bed.proposed[0]?.done(true);
    bed.clock.advance(500);
    expect([bed.proposed.length, bed.clock.pendingTimers]).toEqual([1, 0]);
  });

  test('begin again in full with each leadership, and are kept by no replica that does not lead (LD1)', () => {
    const bed = new DelaysBed();
    bed.begin(holdOf(5, 1_000));
    bed.clock.advance(5_000);
    for (let term = 0; term < 3; term++) {
      bed.delays.start();
      bed.clock.advance(900);
      expect(bed.proposed).toEqual([]);
    }
    bed.clock.advance(200);
    expect(bed.proposed.length).toBe(1);
    bed.delays.stop();
    bed.clock.advance(5_000);
    expect(bed.proposed.length).toBe(1);
  });

  test('are proposed again when that did not come about, and forgotten when the hold went to another range', () => {
    const bed = new DelaysBed();
    bed.delays.start();
    bed.begin(holdOf(5, 100));
    bed.begin(holdOf(6, 9_000));
    bed.clock.advance(200);
    bed.proposed[0]?.done(false);
    bed.clock.advance(100);
    expect(bed.proposed.length).toBe(2);
    for (const hold of [...bed.holds.all()]) bed.holds.remove(hold);
    bed.clock.advance(10_000);
    expect([bed.proposed.length, bed.clock.pendingTimers]).toEqual([2, 0]);
  });
});
