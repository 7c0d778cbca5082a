import { FRAME_BYTES_MAX_INITIAL } from './protocol.ts';

/** One limit: its value, what it counts, and what happens beyond it. */
export interface LimitDeclaration {
  readonly value: number;
  readonly unit: 'count' | 'bytes' | 'ms';
  readonly what: string;
  readonly beyond: string;
}

const CALM = 'The connection ends with ENHANCE_YOUR_CALM.';
const REFUSED = 'The stream gets REFUSED_STREAM.';

/**
 * What clients may hold and do. Every connection has its own share, and all together have a total. Documentation and
 * defaults come from here; a metric counts how often each was reached, by its name.
 */
export const HTTP2_LIMIT_TABLE = {
  connectionsMax: {
    ...{ value: 10_000, unit: 'count', what: 'connections' },
    beyond: 'The connection is closed without an answer.',
  },
  streamsPerConnectionMax: {
    ...{ value: 1_024, unit: 'count', beyond: REFUSED },
    what: 'streams of one connection (SETTINGS_MAX_CONCURRENT_STREAMS)',
  },
  streamsMax: {
    ...{ value: 65_536, unit: 'count', what: 'streams of all connections' },
    beyond: `The connection with the most unfinished requests ends with ENHANCE_YOUR_CALM. Without one: ${REFUSED}`,
  },
  headerListBytesMax: {
    ...{ value: 32 << 10, unit: 'bytes', beyond: 'The call gets RESOURCE_EXHAUSTED.' },
    what: 'one header list, 32 more for each field (SETTINGS_MAX_HEADER_LIST_SIZE)',
  },
  headerFieldsMax: {
    ...{ value: 256, unit: 'count', what: 'fields of one header list' },
    beyond: 'The call gets RESOURCE_EXHAUSTED; counted as headerListBytesMax.',
  },
  headerBlockBytesMax: {
    ...{ value: 32 << 10, unit: 'bytes', what: 'one header block that comes in several frames', beyond: CALM },
  },
  continuationFramesMax: { value: 8, unit: 'count', what: 'CONTINUATION frames of one header block', beyond: CALM },
  headerTableBytesMax: {
    ...{ value: 4_096, unit: 'bytes', beyond: 'The connection ends with COMPRESSION_ERROR.' },
    what: 'the table of header fields that a client fills (SETTINGS_HEADER_TABLE_SIZE)',
  },
  streamWindowBytes: {
    ...{ value: 65_535, unit: 'bytes', beyond: 'The stream gets FLOW_CONTROL_ERROR.' },
    what: 'DATA of one stream on its way (SETTINGS_INITIAL_WINDOW_SIZE)',
  },
  connectionWindowBytes: {
    ...{ value: 4 << 20, unit: 'bytes', what: 'DATA of one connection on its way' },
    beyond: 'The connection ends with FLOW_CONTROL_ERROR.',
  },
  unfinishedBytesPerConnectionMax: {
    ...{
      value: 16 << 20,
      unit: 'bytes',
      what: 'incomplete messages, and header lists of 4 KiB and more, of one connection',
    },
    beyond: 'One stream at a time gets window updates, until its message is complete.',
  },
  unfinishedBytesMax: {
    ...{ value: 256 << 20, unit: 'bytes', what: 'the same and incomplete frames, of all connections' },
    beyond: 'The connection with the most ends with ENHANCE_YOUR_CALM.',
  },
  messageMs: {
    ...{ value: 60_000, unit: 'ms', what: 'for a header block, a frame, a request or a message of a stream' },
    beyond: 'The call gets DEADLINE_EXCEEDED; for a frame or a header block, the connection ends.',
  },
  prefaceMs: { value: 5_000, unit: 'ms', what: "until a connection's preface and settings arrive", beyond: CALM },
  settingsAckMs: {
    ...{ value: 10_000, unit: 'ms', what: 'until the client acknowledges our settings' },
    beyond: 'The connection ends with SETTINGS_TIMEOUT.',
  },
  outputBytesPerConnectionMax: {
    ...{ value: 256 << 20, unit: 'bytes', what: 'answers that wait for the windows of one connection', beyond: CALM },
  },
  outputBytesMax: {
    ...{ value: 512 << 20, unit: 'bytes', what: 'answers that wait for the windows of all connections' },
    beyond: 'The connection with the most ends with ENHANCE_YOUR_CALM.',
  },
  stalledAnswerMs: {
    ...{ value: 60_000, unit: 'ms', beyond: 'The stream gets CANCEL.' },
    what: "for the rest of an answer to wait for the client's window without progress",
  },
  resetsPerSecondMax: {
    value: 1_000,
    unit: 'count',
    what: 'RST_STREAM frames of one connection a second',
    beyond: CALM,
  },
  streamErrorsPerSecondMax: {
    ...{ value: 100, unit: 'count', what: 'stream errors of one connection a second, such as malformed requests' },
    beyond: CALM,
  },
  pingsPerSecondMax: { value: 10_000, unit: 'count', what: 'PING frames of one connection a second', beyond: CALM },
  settingsPerSecondMax: { value: 100, unit: 'count', what: 'SETTINGS frames of one connection a second', beyond: CALM },
  uselessFramesPerSecondMax: {
    ...{ value: 1_000, unit: 'count', beyond: CALM },
    what: 'frames of one connection a second that carry nothing: empty DATA, PRIORITY, unknown types',
  },
  tinyFramesPerSecondMax: {
    ...{ value: 10_000, unit: 'count', beyond: CALM },
    what: 'DATA frames below 1 KiB a second into which small window updates cut the answers of one connection',
  },
  pingIntervalMs: {
    ...{
      value: 5_000,
      unit: 'ms',
      beyond: 'The client gets a strike; HEADERS or DATA of the server clear all strikes.',
    },
    what: 'at least between two PING frames of a client',
  },
  pingStrikesMax: {
    ...{ value: 2, unit: 'count', what: 'strikes of one connection' },
    beyond: 'The connection ends with ENHANCE_YOUR_CALM and `too_many_pings`, as with etcd.',
  },
  keepAliveMs: {
    ...{ value: 30_000, unit: 'ms', what: 'for a connection to be silent', beyond: 'The server sends a PING.' },
  },
  keepAliveTimeoutMs: {
    ...{
      value: 20_000,
      unit: 'ms',
      what: 'after that PING until anything arrives',
      beyond: 'The connection is closed.',
    },
  },
} as const satisfies Readonly<Record<string, LimitDeclaration>>;

export type Http2Limits = { readonly [Name in keyof typeof HTTP2_LIMIT_TABLE]: number };

/** The largest payload that clients may send: the initial value, which this server never raises. */
export const FRAME_BYTES_MAX = FRAME_BYTES_MAX_INITIAL;
