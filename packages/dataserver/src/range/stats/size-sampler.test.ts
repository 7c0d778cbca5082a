import { EMPTY_BYTES, nodeClock, SeededRandom, type Span, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { lockSpan } from '@remora/lock';
import { kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, memoryEngine } from '../../../test/support/state-bed.ts';
import { boundsOf } from '../../state/bounds.ts';
import { attachedKeyRow, currentKey, historyKey, leaseKey } from '../../state/keys.ts';
import { encodeVersion } from '../../state/kv/record.ts';
import { RangeSize } from './range-size.ts';
import { hasMoreThan, type SizeSample, sampleSize } from './size-sampler.ts';

const ALL: Span = { start: EMPTY_BYTES, end: EMPTY_BYTES };
const running = { clock: nodeClock(), stopped: () => false };
const name = (i: number): Buffer => Buffer.from(`k${String(i).padStart(6, '0')}`);
const row = (bytes: number): Buffer =>
  encodeVersion({ value: Buffer.alloc(bytes), createRevision: 2, modRevision: 2, version: 1, lease: 0n });

async function measured(fill: (engine: ReturnType<typeof memoryEngine>) => void, span = ALL): Promise<SizeSample> {
  const engine = memoryEngine();
  fill(engine);
  const found = await sampleSize(engine, span, running);
  if (found === undefined) throw new Error('nobody stopped it');
  return found;
}

describe('the middle of a range', () => {
  test('has about half of the bytes on either side, however sizes are spread', async () => {
    for (const seed of [1, 2, 3]) {
      const random = new SeededRandom(seed);
      const sizes = Array.from({ length: 20_000 }, (_, i) => (i < 2_000 ? 2_000 : random.int(300)));
      const { middle, live, bytes } = await measured((engine) => {
        for (const [i, size] of sizes.entries()) engine.put(currentKey(name(i)), row(size));
      });
      const at = sizes.findIndex((_, i) => kvRoutingKey(name(i)).equals(middle?.at ?? EMPTY_BYTES));
      const before = sizes.slice(0, at).reduce((sum, size) => sum + size + 41, 0);
      expect(Math.abs(before / bytes - 0.5)).toBeLessThan(0.02);
      expect(middle?.live.keys).toBe(sizes.length - at);
      expect(live).toEqual({ keys: sizes.length, bytes: sizes.reduce((sum, size) => sum + size + 7, 0) });
    }
  });

  test('counts older versions where their keys are', async () => {
    const { middle } = await measured((engine) => {
      for (let i = 0; i < 100; i++) engine.put(currentKey(name(i)), row(1_000));
      for (let i = 1; i < 1_000; i++) engine.put(historyKey(name(90), i), row(1_000));
    });
    expect(middle?.at).toEqual(kvRoutingKey(name(90)));
  });

  test.each<{ name: string; rows: readonly Buffer[]; at: Buffer }>([
    {
      name: 'a lock',
      rows: [1, 2].flatMap((lock) => {
        const { start } = lockSpan({ namespace: 'n', name: Buffer.from([lock]) });
        return Array.from({ length: 9 }, (_, i) => Buffer.concat([start, Buffer.from([1, i])]));
      }),
      at: Buffer.from(lockSpan({ namespace: 'n', name: Buffer.from([2]) }).start),
    },
    {
      name: 'a lease',
      rows: [5n, 6n].flatMap((id) => [
        leaseKey(id),
        ...[1, 2, 3].map((i) => attachedKeyRow(leaseKey(id), Buffer.from([i]))),
      ]),
      at: leaseKey(6n),
    },
  ])('is not within $name', async ({ rows, at }) => {
    const { middle } = await measured((engine) => {
      for (const key of rows) engine.put(key, Buffer.alloc(4_000));
    });
    expect(middle?.at).toEqual(at);
  });

  test('is not there when there is but one key, one lock or nothing', async () => {
    const { start } = lockSpan({ namespace: 'n', name: Buffer.from('l') });
    for (const rows of [[], [currentKey(name(1))], [start, Buffer.concat([start, Buffer.from([1])])]]) {
      const { middle } = await measured((engine) => {
        for (const key of rows) engine.put(key, row(9_000));
      });
      expect(middle).toBeUndefined();
    }
  });

  test('is within the bounds, whatever lies around', async () => {
    const span = { start: kvRoutingKey(name(400)), end: kvRoutingKey(name(500)) };
    const { middle, live } = await measured((engine) => {
      for (let i = 0; i < 1_000; i++) engine.put(currentKey(name(i)), row(9_000));
    }, span);
    expect([middle?.at, live.keys]).toEqual([kvRoutingKey(name(450)), 100]);
  });
});

test('whether a span has more than so much is said without reading on', async () => {
  const engine = memoryEngine();
  for (let i = 0; i < 1_000; i++) {
    engine.put(currentKey(name(i)), row(960));
    engine.put(historyKey(name(i), 1), row(960));
  }
  const span = { start: kvRoutingKey(name(500)), end: EMPTY_BYTES };
  const { bytes } = (await sampleSize(engine, span, running)) ?? { bytes: 0 };
  expect(bytes).toBeGreaterThan(900_000);
  for (const [than, more] of [
    [bytes - 1, true],
    [bytes, false],
    [5_000, true],
  ] as const) {
    expect(await hasMoreThan(engine, span, { bytes: than, ...running })).toBe(more);
  }
});

describe('the size of a range', () => {
  const sizes = { checkBytes: 100_000, splitBytes: 200_000, maxBytes: 400_000 };
  const turns = async (clock: ManualClock): Promise<void> => {
    for (let i = 0; i < 300; i++) {
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  function ranged(given: typeof sizes | undefined) {
    const [engine, clock] = [memoryEngine(), new ManualClock()];
    let views = 0;
    const view = engine.view.bind(engine);
    engine.view = () => {
      views++;
      return view();
    };
    const state = { rangeId: 2, descriptor: DESCRIPTOR, bounds: boundsOf(ALL), bytes: 0 };
    let candidates = 0;
    const onCandidate = (): void => void candidates++;
    const size = new RangeSize({ engine, clock, logger: silentLogger, state, sizes: () => given, onCandidate });
    let next = 0;
    const grow = (bytes: number): void => {
      for (let done = 0; done < bytes; done += 1_000) {
        engine.put(currentKey(name(next++)), row(960));
        size.written(1_000, false);
      }
    };
    return { size, engine, state, clock, grow, views: () => views, candidates: () => candidates };
  }

  test('is measured from the check size on, and a candidate is there from the split size on', async () => {
    const { size, clock, grow, views, candidates } = ranged(sizes);
    grow(90_000);
    size.tick();
    await turns(clock);
    expect([views(), size.candidate]).toEqual([0, undefined]);
    grow(20_000);
    size.tick();
    await turns(clock);
    expect([views(), size.candidate]).toEqual([1, undefined]);
    size.tick(); // nothing was written since
    expect(views()).toBe(1);
    grow(120_000);
    size.tick();
    size.tick(); // one at a time
    await turns(clock);
    expect(views()).toBe(2);
    expect(size.candidate?.live.keys).toBeGreaterThan(90);
    expect(candidates()).toBe(1);
    grow(10_000);
    size.tick(); // not grown enough
    expect(views()).toBe(2);
  });

  test('is looked at with every entry that its leader applies', () => {
    const { size, grow, views } = ranged(sizes);
    grow(99_000);
    size.written(1, true);
    expect(views()).toBe(0);
    grow(1_000);
    size.written(1, true);
    expect(views()).toBe(1);
  });

  test('is not measured between the check size and the split size, as that reads all of the range', async () => {
    const { size, clock, grow, views } = ranged(sizes);
    for (let at = 0; at < 190_000; at += 10_000) {
      grow(10_000);
      size.tick();
      await turns(clock);
    }
    expect(views()).toBe(1);
  });

  test('is forgotten with the bounds that were measured, not with the membership, and when it begins anew', async () => {
    const { size, state, clock, grow } = ranged(sizes);
    grow(300_000);
    size.tick();
    await turns(clock);
    expect(size.candidate).toBeDefined();
    state.descriptor = { ...DESCRIPTOR, epoch: { confVersion: 2, version: 1 } };
    expect(size.candidate).toBeDefined();
    state.descriptor = { ...DESCRIPTOR, epoch: { confVersion: 1, version: 2 } };
    expect(size.candidate).toBeUndefined();
    state.descriptor = DESCRIPTOR;
    size.reset();
    expect(size.candidate).toBeUndefined();
    grow(300_000);
    size.tick();
    size.reset(); // while it is being measured
    await turns(clock);
    expect(size.candidate).toBeUndefined();
  });

  test('presses from half between the split size and the maximum on, while it is measured or can be split', async () => {
    const { size, clock, grow } = ranged(sizes);
    grow(290_000);
    size.tick();
    expect(size.pressure).toBe(0); // being measured, and not so large
    await turns(clock);
    expect([size.candidate === undefined, size.pressure]).toEqual([false, 0]);
    grow(60_000);
    expect(size.pressure).toBeCloseTo(0.5, 1);
    size.tick(); // measured again: meanwhile what is known counts
    expect(size.pressure).toBeCloseTo(0.5, 1);
    await turns(clock);
    expect(size.pressure).toBeCloseTo(0.5, 1);
    grow(60_000);
    expect(size.pressure).toBeGreaterThan(1);
    size.reset();
    expect(size.pressure).toBe(0);
  });

  test('presses nobody when one key has all of it, not even while it is measured again', async () => {
    const { size, engine, clock } = ranged(sizes);
    const grow = (): void => {
      for (let i = 0; i < 45; i++) {
        engine.put(historyKey(name(7), next++), row(10_000));
        size.written(10_000, false);
      }
    };
    let next = 1;
    grow();
    size.tick();
    expect(size.pressure).toBeGreaterThan(1);
    await turns(clock);
    expect([size.candidate, size.pressure]).toEqual([undefined, 0]);
    expect(size.remark).toContain('one key, lock or lease has all of it');
    grow();
    size.tick();
    expect(size.pressure).toBe(0);
  });

  test('presses nobody for entries that left nothing behind', async () => {
    const { size, clock } = ranged(sizes);
    for (let i = 0; i < 20; i++) {
      size.written(90_000, true);
      await turns(clock);
      expect(size.pressure).toBe(0);
    }
  });

  test('costs nothing when nobody splits', async () => {
    const { size, clock, grow, views } = ranged(undefined);
    grow(300_000);
    size.tick();
    await turns(clock);
    expect([views(), size.candidate]).toEqual([0, undefined]);
  });
});
