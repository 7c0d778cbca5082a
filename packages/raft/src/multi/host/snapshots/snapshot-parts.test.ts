import type { Logger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { ByteRate } from './byte-rate.ts';
import { SendQueue } from './send-queue.ts';
import { ProgressLog, pacedChunks, TooLateError, within } from './snapshot-pace.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

async function runFor(clock: ManualClock, ms: number): Promise<void> {
  for (let i = 0; i < ms; i++) {
    clock.advance(1);
    await settle();
  }
}

/** Takes `sizes` over and over; returns the count of bytes taken. */
function taker(rate: ByteRate, size: (n: number) => number, signal = never): { bytes: number } {
  const share = rate.share();
  const taken = { bytes: 0 };
  void (async () => {
    for (let n = 0; ; n++) {
      await share.take(size(n), signal);
      taken.bytes += size(n);
    }
  })().catch(() => undefined);
  return taken;
}

describe('the byte rate', () => {
  test('keeps several senders together at the limit (B1)', async () => {
    const clock = new ManualClock();
    const rate = new ByteRate(clock, () => 10 * MIB);
    const takers = [1, 2, 3].map(() => taker(rate, () => MIB / 4));
    await runFor(clock, 2_000);
    const sum = takers.reduce((total, { bytes }) => total + bytes, 0);
    expect(sum).toBeGreaterThan(19 * MIB);
    expect(sum).toBeLessThanOrEqual(20 * MIB + 1.25 * MIB); // a burst of 50 ms and a grant each
  });

  test('is shared equally by bytes, whatever the sizes asked for (B2)', async () => {
    const clock = new ManualClock();
    const rate = new ByteRate(clock, () => 4 * MIB);
    const small = taker(rate, () => 4_000);
    const large = taker(rate, () => MIB / 4);
    const mixed = taker(rate, (n) => (n % 2 === 0 ? 1_000 + (n % 1_000) : 100_000));
    await runFor(clock, 6_000);
    const fair = (4 * MIB * 6) / 3;
    for (const bytes of [small.bytes, large.bytes, mixed.bytes]) expect(Math.abs(bytes - fair)).toBeLessThan(MIB);
  });

  test('lets a sender that was idle join in without a claim on what it left (B2)', async () => {
    const clock = new ManualClock();
    const rate = new ByteRate(clock, () => 4 * MIB);
    const first = taker(rate, () => 64_000);
    await runFor(clock, 2_000);
    const before = first.bytes;
    const second = taker(rate, () => 64_000);
    await runFor(clock, 1_000);
    expect(Math.abs(first.bytes - before - second.bytes)).toBeLessThanOrEqual(2 * 64 * 1024);
  });

  test('takes back what a sender did not use of its grant', async () => {
    const clock = new ManualClock();
    const rate = new ByteRate(clock, () => MIB);
    let moved = 0;
    void (async () => {
      for (; ; moved++) {
        const share = rate.share();
        await share.take(1_024, never);
        share.done();
      }
    })();
    await runFor(clock, 100);
    expect(moved).toBeGreaterThan(50);
  });

  test('lets go of a sender that gives up, and of no limit makes nobody wait', async () => {
    const clock = new ManualClock();
    const rate = new ByteRate(clock, () => MIB);
    const controller = new AbortController();
    const share = rate.share();
    await share.take(64 * 1024, never);
    const waiting = expect(share.take(64 * 1024, controller.signal)).rejects.toThrow('enough');
    controller.abort(new Error('enough'));
    await waiting;
    await runFor(clock, 1_000);
    await rate.share().take(64 * 1024, never);
    const unlimited = new ByteRate(clock, () => 0).share();
    for (let i = 0; i < 100; i++) await unlimited.take(100 * MIB, never);
  });
});

describe('the queue of snapshots to send', () => {
  const anyKey = () => true;

  test('gives nodes turns, and is first come, first served within a node (Q1)', () => {
    const queue = new SendQueue<string>();
    for (const item of ['a1', 'a2', 'a3']) queue.put(1, item, item);
    queue.put(2, 'b1', 'b1');
    queue.put(3, 'c1', 'c1');
    const order = Array.from({ length: 6 }, () => queue.next(0, anyKey));
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'a3', undefined]);
  });

  test('passes over a node that is put off, until its time (Q3)', () => {
    const queue = new SendQueue<string>();
    queue.put(1, 'a1', 'a1');
    queue.put(2, 'b1', 'b1');
    queue.putOff(1, 500);
    expect(queue.next(0, anyKey)).toBe('b1');
    expect(queue.next(499, anyKey)).toBeUndefined();
    expect(queue.next(500, anyKey)).toBe('a1');
  });

  test('holds one entry per key, in its place, and skips those that are not free (Q2)', () => {
    const queue = new SendQueue<string>();
    queue.put(1, 'x', 'old');
    queue.put(1, 'y', 'y');
    queue.put(1, 'x', 'new');
    queue.put(1, 'z', 'z', 'front');
    expect(queue.next(0, (key) => key !== 'z')).toBe('new');
    expect(queue.next(0, anyKey)).toBe('z');
    queue.delete(1, 'y');
    expect(queue.next(0, anyKey)).toBeUndefined();
  });
});

/** Runs `work`, with turns of the loop going on meanwhile. */
async function inTurns(clock: ManualClock, work: () => Promise<void>): Promise<void> {
  let done = false;
  const working = work().finally(() => {
    done = true;
  });
  while (!done) {
    await settle();
    clock.runImmediates();
  }
  await working;
}

describe('the pace of a snapshot', () => {
  const paceOf = (clock: ManualClock, sent: (bytes: number) => void) => ({
    clock,
    share: new ByteRate(clock, () => 0).share(),
    signal: never,
    idleTimeoutMs: 1_000,
    sent,
  });

  test('cuts large chunks, keeps their order, and counts their bytes', async () => {
    let bytes = 0;
    async function* chunks() {
      yield Buffer.alloc(600 * 1024, 1);
      yield Buffer.alloc(10, 2);
    }
    const clock = new ManualClock();
    const pieces: Uint8Array[] = [];
    const pace = paceOf(clock, (count) => {
      bytes += count;
    });
    await inTurns(clock, async () => {
      for await (const piece of pacedChunks(chunks(), pace)) pieces.push(piece);
    });
    expect(pieces.map(({ length }) => length)).toEqual([...Array(9).fill(64 * 1024), 24 * 1024, 10]);
    expect(bytes).toBe(600 * 1024 + 10);
  });

  test('gives one piece for each turn of the loop, however much is there and allowed (A1)', async () => {
    async function* chunks() {
      for (let i = 0; i < 50; i++) yield Buffer.alloc(1024 * 1024);
    }
    const clock = new ManualClock();
    let pieces = 0;
    void (async () => {
      for await (const _piece of pacedChunks(
        chunks(),
        paceOf(clock, () => undefined),
      ))
        pieces++;
    })();
    for (let turn = 1; turn <= 40; turn++) {
      await settle();
      expect(pieces).toBe(turn);
      clock.runImmediates();
    }
  });

  test('gives up a state machine that gives no further chunk', async () => {
    const clock = new ManualClock();
    async function* stuck() {
      yield Buffer.alloc(1);
      await new Promise(() => undefined);
    }
    const read = pacedChunks(
      stuck(),
      paceOf(clock, () => undefined),
    )[Symbol.asyncIterator]();
    await read.next();
    const failed = expect(read.next()).rejects.toThrow(TooLateError);
    await settle();
    clock.runImmediates();
    await settle();
    clock.advance(1_000);
    await failed;
  });

  test('waiting within a limit leaves no timer behind', async () => {
    const clock = new ManualClock();
    expect(await within(clock, 1_000, Promise.resolve(5), 'late')).toBe(5);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a long transfer is logged at intervals, with bytes, rate and percent where the total is known', () => {
    const clock = new ManualClock();
    const lines: unknown[] = [];
    const log: Pick<Logger, 'info'> = { info: (fields: unknown) => void lines.push(fields) };
    const progress = new ProgressLog({
      clock,
      logger: log,
      what: 'sending',
      fields: { to: 3 },
      intervalMs: 10_000,
      total: 1_000,
    });
    for (let i = 0; i < 25; i++) {
      clock.advance(1_000);
      progress.add(20);
    }
    expect(lines).toEqual([
      { to: 3, bytes: 200, bytesPerSecond: 20, percent: 20 },
      { to: 3, bytes: 400, bytesPerSecond: 20, percent: 40 },
    ]);
  });
});
