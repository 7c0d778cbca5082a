import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

/** Tokens are fractions in floating point: about this much may be lost or won over a run. */
const EPSILON = 1e-6;

const bucketOptions = fc.record({
  ratePerSecond: fc.double({ min: 0.1, max: 100_000, noNaN: true }),
  burst: fc.double({ min: 0, max: 50_000, noNaN: true }),
});
const gapMs = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 2_000, noNaN: true }));

test('T1: no span lets more through than the burst and the rate allow, whatever is taken by force', () => {
  const step = fc.record({ gapMs, asks: fc.integer({ min: 1, max: 200 }), forced: fc.boolean() });
  fc.assert(
    fc.property(bucketOptions, fc.array(step, { minLength: 1, maxLength: 60 }), (options, steps) => {
      const bucket = new TokenBucket(options, 0);
      const burst = Math.max(1, options.burst);
      const served: number[] = [];
      let nowMs = 0;
      for (const { gapMs, asks, forced } of steps) {
        nowMs += gapMs;
        for (let i = 0; i < asks; i++) {
          if (forced) bucket.take(nowMs);
          else if (bucket.tryTake(nowMs)) served.push(nowMs);
        }
      }
      // From the ith success to the jth: j - i + 1 <= burst + rate · (t[j] - t[i]), and so for all pairs at once.
      let least = Number.POSITIVE_INFINITY;
      for (const [i, atMs] of served.entries()) {
        const ahead = i - (options.ratePerSecond * atMs) / 1_000;
        least = Math.min(least, ahead);
        expect(ahead - least).toBeLessThanOrEqual(burst - 1 + EPSILON * (1 + Math.abs(least)));
      }
    }),
    { seed: 1 },
  );
});

test('T2: whoever asks alone is served again after the time of one token', () => {
  fc.assert(
    fc.property(bucketOptions, fc.integer({ min: 0, max: 1_000 }), fc.array(gapMs), (options, drained, gaps) => {
      const bucket = new TokenBucket(options, 0);
      for (let i = 0; i < drained; i++) bucket.tryTake(0);
      let nowMs = 0;
      for (const gap of gaps) {
        nowMs += gap;
        if (bucket.tryTake(nowMs)) continue;
        nowMs += 1_000 / options.ratePerSecond + EPSILON;
        expect(bucket.tryTake(nowMs)).toBe(true);
      }
    }),
    { seed: 2 },
  );
});

test('T3: what is owed is bounded, so that others are served again in time', () => {
  fc.assert(
    fc.property(bucketOptions, fc.integer({ min: 0, max: 200_000 }), (options, forced) => {
      const bucket = new TokenBucket(options, 0);
      for (let i = 0; i < forced; i++) bucket.take(0);
      const burst = Math.max(1, options.burst);
      const waitMs = ((burst + 1) * 1_000) / options.ratePerSecond;
      expect(bucket.tryTake(waitMs * (1 + EPSILON) + EPSILON)).toBe(true);
    }),
    { seed: 3, numRuns: 50 },
  );
});

test('a bucket that is asked all the time lets the rate through', () => {
  const bucket = new TokenBucket({ ratePerSecond: 1_000, burst: 10 }, 0);
  let served = 0;
  for (let tenth = 0; tenth < 100_000; tenth++) if (bucket.tryTake(tenth / 10)) served++;
  expect(served).toBeGreaterThan(9_990);
  expect(served).toBeLessThanOrEqual(10_010);
});
