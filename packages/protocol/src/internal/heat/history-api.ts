import { asBuffer, type Bytes } from '@remora/base';
import { bytes, field, flat, list, mapped, maybe, ms, struct, uint, uintBetween, words } from '../../schema/kinds.ts';
import { malformed } from '../../schema/malformed.ts';
import type { Infer } from '../../schema/shape.ts';
import { HEAT_MEASURES } from './heat.ts';

/** The history of the masters' leader: its length and its width. */
export const HISTORY_MINUTES = 360;
export const HEAT_COLUMNS_MAX = 512;
export const MINUTE_MS = 60_000;

/** What a node measured in a span of time. A rate or quantile is absent if there was nothing to measure. */
export const NodeRates = struct('rates of a node', {
  requestsPerS: maybe(ms, 'Requests to ranges that its gateway sent, per second.'),
  readsPerS: maybe(ms, 'Those that read keys.'),
  writesPerS: maybe(ms, 'Those that write keys.'),
  locksPerS: maybe(ms, 'Those about locks and leases.'),
  p50Ms: maybe(ms, 'Median time of a request, in milliseconds.'),
  p99Ms: maybe(ms, '99th percentile of the time of a request.'),
  fsyncP99Ms: maybe(ms, '99th percentile of the time of a synced write to its log.'),
  commitP99Ms: maybe(ms, '99th percentile of the time of an entry from its proposal there until it is applied.'),
});
export interface NodeRates extends Infer<typeof NodeRates> {}

/** Their order in the series of the history. */
export const NODE_RATES = Object.keys(NodeRates.fields) as readonly (keyof NodeRates)[];

/** The load of one minute on the ranges that a node led, in columns (heat/heat.ts). */
export const HeatColumns = struct('columns of load', {
  borders: field(
    list(bytes, HEAT_COLUMNS_MAX),
    'Routing keys, in order: where each column begins. The first is empty.',
  ),
  values: field(
    list(uint, HEAT_COLUMNS_MAX * HEAT_MEASURES.length),
    'Of each column: reads, bytes read, writes, bytes written.',
  ),
});
export interface HeatColumns extends Infer<typeof HeatColumns> {}

export const MinuteReport = struct('minute of a node', {
  minute: field(uint, 'The minute, counted since 1970 by the clock of the node.'),
  rates: field(NodeRates, 'What the node measured in it.'),
  heat: maybe(HeatColumns, 'The load on the ranges that it led; absent: there was none.'),
});
export interface MinuteReport extends Infer<typeof MinuteReport> {}

const Minutes = uintBetween(1, HISTORY_MINUTES);

/** Numbers as floats of 32 bits, least significant byte first; NaN: there is none. */
const floats = mapped<Bytes, Float32Array>(
  bytes,
  (packed) => {
    if (packed.length % 4 !== 0) throw malformed('floats of 32 bits', packed);
    const buffer = asBuffer(packed);
    return Float32Array.from({ length: packed.length / 4 }, (_, i) => buffer.readFloatLE(i * 4));
  },
  (values) => {
    const packed = Buffer.allocUnsafe(values.length * 4);
    for (const [i, value] of values.entries()) packed.writeFloatLE(value, i * 4);
    return packed;
  },
);

export const ActivityRequest = struct('request of the activity', {
  minutes: field(Minutes, 'How many minutes to return at most, up to the last complete one.'),
});
export interface ActivityRequest extends Infer<typeof ActivityRequest> {}

/** The minutes of an answer, without gaps. */
const HistorySpan = struct('span of the history', {
  first: field(uint, 'The first minute, counted since 1970.'),
  count: field(uint, 'How many there are.'),
});
export interface HistorySpan extends Infer<typeof HistorySpan> {}

export const ActivityReply = struct('activity', {
  span: flat(HistorySpan, 'Which minutes.'),
  nodes: field(
    list(
      struct('series of a node', {
        nodeId: field(uint, 'The node.'),
        values: field(floats, 'For each of its rates, in the order of `rates of a node`, a number for each minute.'),
      }),
    ),
    'The nodes that reported in these minutes.',
  ),
});
export interface ActivityReply extends Infer<typeof ActivityReply> {}

export const HeatRequest = struct('request of the heat', {
  minutes: field(Minutes, 'How many minutes to return at most, up to the last complete one.'),
  columns: field(uintBetween(1, HEAT_COLUMNS_MAX), 'How many columns to return at most.'),
  measure: field(words('measure of heat', HEAT_MEASURES), 'What to return.'),
  start: field(bytes, 'The first routing key; empty: no bound.'),
  end: field(bytes, 'The routing key behind the last one; empty: no bound.'),
});
export interface HeatRequest extends Infer<typeof HeatRequest> {}

export const HeatReply = struct('heat', {
  span: flat(HistorySpan, 'Which minutes.'),
  borders: field(list(bytes), 'Routing keys: where each column begins.'),
  values: field(floats, 'For each minute the load of each column; not numbers: nothing is known of the minute.'),
});
export interface HeatReply extends Infer<typeof HeatReply> {}

/** What a node counts now. */
export const NodeNow = struct('rates of a node now', {
  spanMs: field(ms, 'How many milliseconds it counted.'),
  rates: field(NodeRates, 'What it measured in them.'),
});
export interface NodeNow extends Infer<typeof NodeNow> {}
