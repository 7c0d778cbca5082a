/** The ranges of the cluster, as live events tell them: first all, then those that changed. */
import type { LiveRangeJson, LiveRangesJson } from '@remora/gateway/http/json/history';

/** No bound, as the start of the first range and the end of the last one. */
const FIRST = '-';

/** The ranges after an event, in the order of their keys. Nothing is kept of ranges that have ended. */
export function withChanges(
  before: readonly LiveRangeJson[],
  { whole, ranges, removed }: LiveRangesJson,
): readonly LiveRangeJson[] {
  if (whole) return ranges;
  const known = new Map(before.map((range) => [range.id, range]));
  for (const id of removed) known.delete(id);
  const isSameDivision = removed.length === 0 && ranges.every((range) => hasSameKeys(known.get(range.id), range));
  for (const range of ranges) known.set(range.id, range);
  // A changed range keeps its place in the map.
  return isSameDivision ? [...known.values()] : inOrder([...known.values()]);
}

function hasSameKeys(before: LiveRangeJson | undefined, now: LiveRangeJson): boolean {
  return before?.start === now.start && before.end === now.end;
}

/** Each range begins where another one ends, so the order follows without comparing keys. */
function inOrder(ranges: readonly LiveRangeJson[]): readonly LiveRangeJson[] {
  const byStart = new Map(ranges.map((range) => [range.start, range]));
  const ordered: LiveRangeJson[] = [];
  let next = byStart.get(FIRST);
  while (next !== undefined && ordered.length < ranges.length) {
    ordered.push(next);
    byStart.delete(next.start);
    next = next.end === FIRST ? undefined : byStart.get(next.end);
  }
  return [...ordered, ...byStart.values()];
}
