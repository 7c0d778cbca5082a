import { type LeaderReport, type RangeDescriptor, type RangeOverview, routingKeyText } from '@remora/protocol';
import { rounded } from '../cluster/history-json.ts';
import type { LiveRangeJson } from '../json/history.ts';
import type { LiveSource } from './topic-feed.ts';

/** By range: its JSON form, and the same as text, to compare. */
type Ranges = ReadonlyMap<number, { readonly range: LiveRangeJson; readonly text: string }>;

const LOAD_DIGITS = 3;

/** The topic `ranges`: there may be thousands of them, so events have those that changed. */
export function rangesSource(everyMs: () => number, list: () => Promise<readonly RangeOverview[]>): LiveSource<object> {
  const source: LiveSource<Ranges> = {
    ...{ topic: 'ranges', everyMs },
    async read() {
      return new Map((await list()).map((overview) => [overview.descriptor.rangeId, entryOf(overview)]));
    },
    whole: (state) => ({ whole: true, ranges: [...state.values()].map(({ range }) => range), removed: [] }),
    changes(before, now) {
      const ranges = [...now].flatMap(([id, { range, text }]) => (before.get(id)?.text === text ? [] : [range]));
      const removed = [...before.keys()].filter((id) => !now.has(id));
      return ranges.length + removed.length === 0 ? undefined : { whole: false, ranges, removed };
    },
  };
  return source as LiveSource<object>;
}

function entryOf(overview: RangeOverview) {
  const range = liveRange(overview);
  return { range, text: JSON.stringify(range) };
}

function liveRange({ descriptor, leaderNode, reports }: RangeOverview): LiveRangeJson {
  const { rangeId: id, start, end, replicas } = descriptor;
  const led = reports.find(({ nodeId }) => nodeId === leaderNode)?.report;
  return {
    ...{ id, start: routingKeyText(start), end: routingKeyText(end), leaderNode },
    replicas: replicas.map(({ nodeId, type }: RangeDescriptor['replicas'][number]) => ({ nodeId, type })),
    ...(led?.lead === undefined ? {} : { bytes: led.bytes, keys: led.lead.keys, load: loadJson(led.lead) }),
  };
}

function loadJson({ readsPerS, readBytesPerS, writesPerS, writeBytesPerS }: LeaderReport) {
  return {
    readsPerS: rounded(readsPerS, LOAD_DIGITS),
    readBytesPerS: rounded(readBytesPerS, LOAD_DIGITS),
    writesPerS: rounded(writesPerS, LOAD_DIGITS),
    writeBytesPerS: rounded(writeBytesPerS, LOAD_DIGITS),
  };
}
