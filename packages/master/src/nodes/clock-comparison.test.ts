import { describe, expect, test } from 'vitest';
import { ClockComparison, type ClockDifference } from './clock-comparison.ts';

const WALL = 1_800_000_000_000;

/** This node and the leader of the masters, one heartbeat a second. */
class Bed {
  readonly comparison = new ClockComparison();
  leader = 1;
  /** True time since the start. */
  nowMs = 0;
  aheadMs = 0;
  roundTripMs = 2;
  /** How fast this node's clock runs. */
  rate = 1;
  ownMs = 0;
  leaderBeganMs = 0;

  beat(seconds: number): ClockDifference | undefined {
    for (let i = 0; i < seconds; i++) {
      const sentMs = this.ownMs;
      this.comparison.observe({
        leader: this.leader,
        leaderWallMs: WALL + this.nowMs + this.roundTripMs / 2,
        leaderMonotonicMs: this.nowMs + this.roundTripMs / 2 - this.leaderBeganMs,
        ...{ sentMs, receivedMs: sentMs + this.roundTripMs },
        wallMs: WALL + this.nowMs + this.roundTripMs + this.aheadMs,
      });
      this.nowMs += 1_000;
      this.ownMs += 1_000 * this.rate;
    }
    return this.comparison.difference;
  }
}

describe('wall clocks (CC1)', () => {
  test.each<{ name: string; given: Partial<Bed>; aheadMs: number | undefined }>([
    { name: 'are close', given: { aheadMs: 900 }, aheadMs: undefined },
    { name: 'this one is ahead', given: { aheadMs: 5_000 }, aheadMs: 5_000 },
    { name: 'this one is behind', given: { aheadMs: -3_600_000 }, aheadMs: -3_600_000 },
    { name: 'the round trip explains the difference', given: { aheadMs: 1_400, roundTripMs: 900 }, aheadMs: undefined },
  ])('$name', ({ given, aheadMs }) => {
    const bed = Object.assign(new Bed(), given);
    expect(bed.beat(30)?.aheadMs).toBe(aheadMs);
  });

  test('that are set right are found right', () => {
    const bed = Object.assign(new Bed(), { aheadMs: 5_000 });
    expect(bed.beat(30)).toBeDefined();
    bed.aheadMs = 0;
    expect(bed.beat(11)).toBeUndefined();
  });
});

describe('rates (CC2)', () => {
  test.each<{ name: string; rate: number; fasterPercent: number | undefined }>([
    { name: 'are alike', rate: 1.001, fasterPercent: undefined },
    { name: 'this clock is fast', rate: 1.03, fasterPercent: 2.9 },
    { name: 'this clock is slow', rate: 0.95, fasterPercent: -5.3 },
  ])('$name', ({ rate, fasterPercent }) => {
    const bed = Object.assign(new Bed(), { rate });
    expect(bed.beat(59)).toBeUndefined();
    const found = bed.beat(130)?.fasterPercent;
    if (fasterPercent === undefined) expect(found).toBeUndefined();
    else expect(found).toBeCloseTo(fasterPercent, 1);
  });

  test('a pause of the machine is no difference', () => {
    const bed = new Bed();
    bed.beat(70);
    bed.nowMs += 10_000; // This clock stood still meanwhile, and so did its wall clock until it was set.
    expect(bed.beat(200)).toBeUndefined();
  });

  test('a leader that restarts, or another one, begins a new comparison', () => {
    const bed = Object.assign(new Bed(), { rate: 1.03 });
    expect(bed.beat(190)).toBeDefined();
    bed.leaderBeganMs = bed.nowMs;
    expect(bed.beat(100)).toBeUndefined();
    expect(bed.beat(100)).toBeDefined();
    bed.leader = 2;
    expect(bed.beat(100)).toBeUndefined();
  });
});
