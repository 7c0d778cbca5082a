import { EMPTY_BYTES } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import { expect, test } from 'vitest';
import { DESCRIPTOR } from '../../../test/support/state-bed.ts';
import { whoMayKnow } from './orphaned-seals.ts';

/** Ranges that begin at these letters, each up to the next; their ids are 10, 11, … */
function rangesAt(letters: string): RangeDescriptor[] {
  const starts = ['', ...letters].map((letter) => Buffer.from(letter));
  return starts.map((start, i) => ({ ...DESCRIPTOR, rangeId: 10 + i, start, end: starts[i + 1] ?? EMPTY_BYTES }));
}

const asked = (ranges: RangeDescriptor[], targetId: number, start: string, times: number) =>
  Array.from(
    { length: times },
    (_, looks) => whoMayKnow(ranges, { targetId, start: Buffer.from(start), looks })?.rangeId,
  );

test('the target is asked, wherever it is', () => {
  expect(asked(rangesAt('bdf'), 11, 'd', 3)).toEqual([11, 11, 11]);
});

test('of a target that is gone the range before is asked, and by turns all before that', () => {
  // Range 99 was merged into one that has been split since: whoever took it over is not the neighbour any more.
  expect(asked(rangesAt('bdf'), 99, 'f', 8)).toEqual([12, 12, 12, 11, 12, 10, 12, 12]);
});

test('before the first key there is nobody to ask', () => {
  expect(asked(rangesAt('b'), 99, '', 2)).toEqual([undefined, undefined]);
});
