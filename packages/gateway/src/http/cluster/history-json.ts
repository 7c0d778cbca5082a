/** Converts what the masters' leader remembers to the JSON forms of `/v1/cluster/activity` and `/v1/cluster/heat`. */
import {
  type ActivityReply,
  type HeatReply,
  type HistorySpan,
  MINUTE_MS,
  NODE_RATES,
  type RangeDescriptor,
  routingKeyText,
} from '@remora/protocol';
import type { ActivityJson, HeatJson, HeatMeasure, NodeActivityJson } from '../json/history.ts';

export function activityJson({ span, nodes }: ActivityReply): ActivityJson {
  return {
    ...{ stepMs: MINUTE_MS, times: timesOf(span) },
    nodes: nodes.map(({ nodeId, values }) => ({ nodeId, ...seriesOf(values, span.count) })),
  };
}

type Series = Omit<NodeActivityJson, 'nodeId'>;

function seriesOf(values: Float32Array, count: number): Series {
  const series = NODE_RATES.map(
    (name, r) => [name, Array.from(values.subarray(r * count, (r + 1) * count), shown)] as const,
  );
  return Object.fromEntries(series) as unknown as Series;
}

/** As many digits as are certain. */
const DIGITS = 4;

/** JSON has no NaN. */
function shown(value: number): number | null {
  return Number.isNaN(value) ? null : rounded(value);
}

export function rounded(value: number, digits: number = DIGITS): number {
  return Number(value.toPrecision(digits));
}

function timesOf({ first, count }: HistorySpan): readonly number[] {
  return Array.from({ length: count }, (_, i) => (first + i) * MINUTE_MS);
}

/** More ranges are not drawn as lines between columns. */
const RANGES_SHOWN_MAX = 1_000;

interface Asked {
  readonly what: HeatMeasure;
  readonly end: Uint8Array;
  readonly ranges: readonly RangeDescriptor[];
}

export function heatJson({ span, borders, values }: HeatReply, { what, end, ranges }: Asked): HeatJson {
  const texts = [...borders, end].map((border) => routingKeyText(border));
  const rows = Array.from({ length: span.count }, (_, i) => {
    const row = values.subarray(i * borders.length, (i + 1) * borders.length);
    return row.some(Number.isNaN) ? null : Array.from(row, (value) => rounded(value));
  });
  return {
    ...{ stepMs: MINUTE_MS, what, times: timesOf(span), borders: texts, values: rows },
    ranges: ranges.length > RANGES_SHOWN_MAX ? [] : ranges.map(rangeJson),
  };
}

function rangeJson({ rangeId, start }: RangeDescriptor) {
  return { id: rangeId, start: routingKeyText(start) };
}
