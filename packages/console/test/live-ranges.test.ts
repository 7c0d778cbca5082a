import type { LiveRangeJson } from '@remora/gateway/http/json/history';
import { expect, test } from 'vitest';
import { withChanges } from '../src/logic/live-ranges.ts';

const range = (id: number, start: string, end: string, leaderNode = 1): LiveRangeJson => ({
  ...{ id, start, end, leaderNode },
  replicas: [],
});
const changed = (ranges: readonly LiveRangeJson[], removed: readonly number[] = []) => ({
  ...{ whole: false, ranges, removed, atMs: 0 },
});
const FIRST = [range(1, '-', 'b'), range(2, 'b', 'd'), range(3, 'd', '-')];

test.each([
  ['a new leader', changed([range(2, 'b', 'd', 7)]), [1, 2, 3]],
  ['a split', changed([range(2, 'b', 'c'), range(9, 'c', 'd')]), [1, 2, 9, 3]],
  ['a merge', changed([range(1, '-', 'd')], [2]), [1, 3]],
  ['all of them', { ...changed([range(5, '-', '-')]), whole: true }, [5]],
])('after %s, the ranges are in the order of their keys', (_name, event, ids) => {
  const now = withChanges(FIRST, event);
  expect(now.map(({ id }) => id)).toEqual(ids);
  for (const each of event.ranges) expect(now).toContain(each);
});

test('after an hour of changes, there are as many ranges as the cluster has, and none that has ended', () => {
  let ranges: readonly LiveRangeJson[] = FIRST;
  for (let i = 0; i < 1_200; i++) {
    const id = 100 + i;
    ranges = withChanges(ranges, changed([range(2, 'b', 'c', i), range(id, 'c', 'd')]));
    ranges = withChanges(ranges, changed([range(2, 'b', 'd', i)], [id]));
  }
  expect(ranges).toEqual([FIRST[0], range(2, 'b', 'd', 1_199), FIRST[2]]);
});
