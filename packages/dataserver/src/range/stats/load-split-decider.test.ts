import { SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { lockSpan } from '@remora/lock';
import { kvRoutingKey, type RangeRequest, type SplitLoads } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { range as read } from '../../../test/support/state-bed.ts';
import { LoadSplitDecider } from './load-split-decider.ts';

const LOADS: SplitLoads = { requestsPerS: 100, bytesPerS: 10_000, holdMs: 10_000 };
const reading = (key: string): Pick<RangeRequest, 'body'> => ({
  body: { kind: 'query', query: { type: 'range', op: read(key), serializable: false }, notBefore: 0 },
});

class Bed {
  readonly clock = new ManualClock();
  readonly rates = { readsPerS: 0, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0 };
  readonly decider: LoadSplitDecider;

  constructor(loads: SplitLoads | undefined = LOADS) {
    this.decider = new LoadSplitDecider({ clock: this.clock, load: { rates: () => this.rates }, loads: () => loads });
  }

  /** Seconds of requests for the keys that `next` gives. */
  run(seconds: number, next: () => string, perS = 200, bytesOf: (key: string) => number = () => 1): void {
    for (let s = 0; s < seconds; s++) {
      this.decider.tick();
      for (let i = 0; i < perS; i++) {
        const key = next();
        this.decider.asked(reading(key), bytesOf(key));
      }
      this.clock.advance(1_000);
    }
    this.decider.tick();
  }

  get at(): string | undefined {
    const { candidate } = this.decider;
    return candidate && Buffer.from(candidate.subarray(1)).toString();
  }
}

describe('a range under load', () => {
  test('is to be split where its load divides, however its keys lie', () => {
    const bed = new Bed();
    bed.rates.readsPerS = 500;
    const random = new SeededRandom(4);
    // Nine in ten requests go to the last hundredth of the keys.
    const next = (): string => `k${random.int(10) === 0 ? 1_000 + random.int(9_000) : 9_900 + random.int(100)}`;
    bed.run(11, next);
    expect(Number(bed.at?.slice(1))).toBeGreaterThan(9_930);
    expect(Number(bed.at?.slice(1))).toBeLessThan(9_960);
  });

  test.each<{ name: string; keys: readonly string[]; at: string | undefined }>([
    { name: 'two keys in turn are parted', keys: ['a', 'b'], at: 'b' },
    { name: 'four keys in turn are halved', keys: ['a', 'b', 'c', 'd'], at: 'c' },
    { name: 'a single key is not', keys: ['a'], at: undefined },
    { name: 'nor one that has nearly all of it', keys: [...Array.from({ length: 19 }, () => 'm'), 'a'], at: undefined },
  ])('$name', ({ keys, at }) => {
    const bed = new Bed();
    bed.rates.writesPerS = 500;
    let i = 0;
    bed.run(11, () => keys[i++ % keys.length] ?? '', 2_000);
    expect(bed.at).toBe(at);
  });

  test('counts requests of all kinds, or bytes, and only for long enough', () => {
    let i = 0;
    const next = (): string => `k${i++ % 10}`;
    for (const [rates, seconds, hot] of [
      [{ readsPerS: 60, writesPerS: 60 }, 11, true],
      [{ readsPerS: 60, writesPerS: 60 }, 9, false],
      [{ readsPerS: 60, writesPerS: 30 }, 30, false],
      [{ readBytesPerS: 6_000, writeBytesPerS: 6_000 }, 11, true],
    ] as const) {
      const bed = new Bed();
      Object.assign(bed.rates, rates);
      bed.run(seconds, next);
      expect(bed.at !== undefined, JSON.stringify([rates, seconds])).toBe(hot);
    }
  });

  test.each<{ name: string; rates: object; at: string }>([
    { name: 'bytes, when these are above the limit', rates: { readBytesPerS: 12_000 }, at: 'k8' },
    { name: 'requests, when these are', rates: { readsPerS: 120 }, at: 'k5' },
    { name: 'what is further above it, when both are', rates: { readsPerS: 120, writeBytesPerS: 90_000 }, at: 'k8' },
  ])('is to be split where its load divides by $name', ({ rates, at }) => {
    const bed = new Bed();
    Object.assign(bed.rates, rates);
    let i = 0;
    // Ten keys in turn; the last three have nearly all of the bytes.
    const next = (): string => `k${i++ % 10}`;
    bed.run(11, next, 200, (key) => (key >= 'k7' ? 1_000 : 10));
    expect(bed.at).toBe(at);
  });

  test('is not split where one key has most of the bytes', () => {
    const bed = new Bed();
    bed.rates.readBytesPerS = 50_000;
    let i = 0;
    bed.run(
      11,
      () => `k${i++ % 10}`,
      200,
      (key) => (key === 'k4' ? 9_000 : 10),
    );
    expect(bed.at).toBeUndefined();
  });

  test('is forgotten when the load falls, and when the range is another one', () => {
    let i = 0;
    const bed = new Bed();
    bed.rates.readsPerS = 500;
    bed.run(11, () => `k${i++ % 10}`);
    expect(bed.at).toBeDefined();
    bed.rates.readsPerS = 10;
    bed.decider.tick();
    expect(bed.at).toBeUndefined();
    bed.rates.readsPerS = 500;
    bed.run(11, () => `k${i++ % 10}`);
    bed.decider.reset();
    expect(bed.at).toBeUndefined();
    bed.run(9, () => `k${i++ % 10}`); // begins anew
    expect(bed.at).toBeUndefined();
  });

  test('says nothing when nobody splits by load, or too little was asked to say where', () => {
    let i = 0;
    for (const [bed, perS] of [
      [new Bed({ requestsPerS: 0, bytesPerS: 0, holdMs: 10_000 }), 200],
      [new Bed(), 5],
    ] as const) {
      bed.rates.readsPerS = 1_000_000;
      bed.run(11, () => `k${i++ % 10}`, perS);
      expect(bed.at).toBeUndefined();
    }
  });

  test('of locks is divided between two of them, never within one', () => {
    const bed = new Bed();
    bed.rates.readsPerS = 500;
    const locks = ['a', 'b'].map((name) => ({ namespace: 'n', name: Buffer.from(name) }));
    bed.decider.tick();
    for (let i = 0; i < 500; i++) {
      const lock = locks[i % 2] ?? locks[0];
      if (lock !== undefined)
        bed.decider.asked(
          { body: { kind: 'query', query: { type: 'lock', query: { type: 'show', lock } }, notBefore: 0 } },
          0,
        );
    }
    bed.clock.advance(10_000);
    bed.decider.tick();
    expect(bed.decider.candidate).toEqual(lockSpan(locks[1] ?? { namespace: '', name: Buffer.alloc(0) }).start);
    expect(kvRoutingKey(Buffer.from('a'))[0]).not.toBe(bed.decider.candidate?.[0]);
  });
});
