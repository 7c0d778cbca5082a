import { expect, test } from 'vitest';
import { eachOf } from './each-of.ts';

test('begins nothing behind the first error, though others are under way then', async () => {
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const all = eachOf([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    if (item === 3) throw new Error('no');
    await new Promise<void>((resolve) => ends.push(resolve));
  });
  ends[0]?.();
  await expect(all).rejects.toThrow('no');
  ends[1]?.();
  for (let i = 0; i < 10; i++) await Promise.resolve();
  expect(begun).toEqual([1, 2, 3]);
});
