import { sleep } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { hostOptions } from '../options.ts';
import { newStats } from '../stats.ts';
import type { ByteRate } from './byte-rate.ts';
import { snapshotRates } from './snapshot-rates.ts';
import { WorkMeter } from './work-meter.ts';

const MIB = 1024 * 1024;
const LIMITS = { snapshotBytesPerSecondMax: 32 * MIB, snapshotBytesPerSecondBusy: 4 * MIB };
/** What there is to copy, where nothing else limits it. */
const SOURCE_MIB_PER_MS = 1;
const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('the work of a node', () => {
  function meterOf() {
    const [clock, stats] = [new ManualClock(), newStats()];
    const meter = new WorkMeter(clock, stats);
    /** What the meter says at the end of each of `windows`, in which so much is written. */
    const during = (windows: number, appends: number) =>
      Array.from({ length: windows }, () => {
        clock.advance(100);
        stats.appends += appends;
        return meter.busy;
      });
    return { clock, stats, meter, during };
  }

  test('is not known at first, which counts as busy (W2)', () => {
    const { clock, meter, during } = meterOf();
    expect(meter.busy).toBe(true);
    expect(during(2, 0)).toEqual([false, false]);
    clock.advance(201);
    expect(meter.busy).toBe(true);
  });

  test('is seen at once, and its end after a window', () => {
    const { clock, stats, meter, during } = meterOf();
    expect([meter.busy, ...during(1, 0)]).toEqual([true, false]);
    clock.advance(10);
    stats.appends += 5;
    expect(meter.busy).toBe(true);
    clock.advance(90);
    expect(meter.busy).toBe(true);
    clock.advance(99);
    expect(meter.busy).toBe(true);
    clock.advance(1);
    expect(meter.busy).toBe(false);
  });

  test.each(['appends', 'readsStarted', 'readsLeased'] as const)('is what %s counts', (counter) => {
    const { stats, meter, during } = meterOf();
    expect([meter.busy, ...during(1, 0)]).toEqual([true, false]);
    stats[counter] += 5;
    expect(meter.busy).toBe(true);
  });

  test('is not the housekeeping of groups that nobody uses (W1)', () => {
    const { meter, during } = meterOf();
    expect([meter.busy, ...during(5, 4)]).toEqual([true, false, false, false, false, false]);
    expect(during(2, 5)).toEqual([true, true]);
  });
});

describe('the rates of snapshots', () => {
  /** MiB that one snapshot gets in each of `seconds`; `work` tells how much is written every 10 ms of it. */
  async function mibPerSecond(direction: 'sending' | 'receiving', limits: Partial<typeof LIMITS>, work: number[]) {
    const [clock, stats] = [new ManualClock(), newStats()];
    const rate: ByteRate = snapshotRates({ clock, options: hostOptions({ ...LIMITS, ...limits }), stats })[direction];
    const share = rate.share();
    let bytes = 0;
    void (async () => {
      for (;;) {
        await share.take(MIB / 16, never);
        bytes += MIB / 16;
        if (bytes % (SOURCE_MIB_PER_MS * MIB) === 0) await sleep(clock, 1);
      }
    })();
    const taken: number[] = [];
    for (const appends of work) {
      const before = bytes;
      for (let ms = 0; ms < 1_000; ms++) {
        clock.advance(1);
        if (ms % 10 === 0) stats.appends += appends;
        await settle();
      }
      taken.push(Math.round((bytes - before) / MIB));
    }
    return taken;
  }

  test('what is sent gives way while there is other work, and takes up its pace again', async () => {
    const [busy = 0, idle = 0, again = 0] = await mibPerSecond('sending', {}, [1, 0, 1]);
    expect(busy).toBe(4);
    expect(idle).toBeGreaterThan(28); // the first window of it is not over at once
    expect(idle).toBeLessThanOrEqual(32);
    expect(again).toBeLessThanOrEqual(6);
  });

  test('what is received gives way as well, and is limited by its sender alone otherwise', async () => {
    const [busy = 0, idle = 0] = await mibPerSecond('receiving', {}, [1, 0]);
    expect(busy).toBe(4);
    expect(idle).toBeGreaterThan(SOURCE_MIB_PER_MS * 800);
  });

  test.each([
    { name: 'the lower limit counts', limits: { snapshotBytesPerSecondMax: 2 * MIB }, sent: 2 },
    { name: '0 while busy is as fast as otherwise', limits: { snapshotBytesPerSecondBusy: 0 }, sent: 32 },
    { name: '0 otherwise leaves the limit while busy', limits: { snapshotBytesPerSecondMax: 0 }, sent: 4 },
  ])('$name', async ({ limits, sent }) => {
    expect(await mibPerSecond('sending', limits, [1])).toEqual([sent]);
  });
});
