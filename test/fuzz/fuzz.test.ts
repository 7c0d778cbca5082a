// The short form of fuzzing, on fixed seeds; `pnpm fuzz` goes on from others for as long as one likes.
import { afterAll, describe, expect, test } from 'vitest';
import { keptTargets } from './corpus.ts';
import { fuzz } from './engine.ts';
import { stopLiveNode } from './live/live-node.ts';
import { FuzzViolation, RUNS_DEFAULT, type Target } from './target.ts';
import { TARGETS } from './targets.ts';

const SEED = 20_261_121;

afterAll(stopLiveNode);

describe('no input makes a decoder do anything but decode or refuse', () => {
  test.each(TARGETS)('$name', async (target) => {
    await fuzz(target, { seed: SEED, runs: target.runs ?? RUNS_DEFAULT });
  });
});

test('every kept input belongs to a target, and names of targets are unique', () => {
  const names = TARGETS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(keptTargets().filter((name) => !names.includes(name))).toEqual([]);
});

describe('the engine finds', () => {
  const broken = (decode: Target['decode']): Target => ({
    name: 'broken',
    corpus: () => [Buffer.from('0401020304', 'hex')],
    decode,
    expected: (error) => error instanceof SyntaxError,
  });

  test.each<{ name: string; decode: Target['decode'] }>([
    {
      name: 'an error of another class',
      decode: (bytes) => {
        if (bytes[0] !== 4) throw new TypeError('not a function');
      },
    },
    {
      name: 'a length that is trusted before it is checked',
      decode: (bytes) => {
        const length = Buffer.from(bytes).readUInt32BE(Math.min(1, bytes.length - 4));
        if (length > 2 ** 25) Buffer.alloc(2 ** 25);
        throw new SyntaxError('cut short');
      },
    },
    {
      name: 'a promise that rejects',
      decode: async (bytes) => {
        if (bytes.length > 9) throw new RangeError('out of range');
      },
    },
  ])('$name', async ({ decode }) => {
    await expect(fuzz(broken(decode), { seed: 1, runs: 500 })).rejects.toThrow(FuzzViolation);
  });

  test('nothing in a decoder whose first call loads what later calls share', async () => {
    const loaded: Buffer[] = [];
    const target = broken(() => {
      if (loaded.length === 0) loaded.push(Buffer.alloc(2 ** 25));
      throw new SyntaxError('refused');
    });
    await fuzz(target, { seed: 1, runs: 100 });
    expect(loaded).toHaveLength(1);
  });

  test('nothing in a decoder that refuses as it should', async () => {
    await fuzz(
      broken(() => {
        throw new SyntaxError('refused');
      }),
      { seed: 1, runs: 100 },
    );
  });
});
