import { expect, test } from 'vitest';
import { ScanQueue } from './scan-queue.ts';

type Watcher = ReturnType<typeof watcher>;

function watcher(prefix: string, prevKv = false) {
  const span = { start: Buffer.from(prefix), end: Buffer.from(`${prefix}~`) };
  return { create: { span, prevKv } };
}

test('watches of one span share a scan, eight at most, and four scans are in progress at most (SQ1)', async () => {
  const scans: (readonly Watcher[])[] = [];
  const ends: (() => void)[] = [];
  const queue = new ScanQueue<Watcher>((together) => {
    scans.push(together);
    return new Promise((resolve) => ends.push(resolve));
  });
  const busy = ['1', '2', '3', '4'].map((prefix) => watcher(prefix));
  const many = Array.from({ length: 10 }, () => watcher('a'));
  const other = watcher('b');
  const withPrevious = watcher('a', true);
  for (const one of [...busy, ...many, other, withPrevious]) queue.add(one);
  expect(scans).toEqual(busy.map((one) => [one]));
  while (ends.length > 0) {
    ends.shift()?.();
    await Promise.resolve();
    expect(ends.length).toBeLessThanOrEqual(4);
  }
  expect(scans.slice(4)).toEqual([many.slice(0, 8), [other], [withPrevious], many.slice(8)]);
});
