import { FRAME_BYTES_MAX_INITIAL } from './protocol.ts';

/**
 * What clients may hold and do. Every connection has its own share, and all together have a total. `onRefused` hears
 * the name of each limit that was reached.
 */
export interface Http2Limits {
  /** Connections at a time. A further one is closed without an answer. */
  readonly connectionsMax: number;
  /** Streams of one connection at a time: SETTINGS_MAX_CONCURRENT_STREAMS. A further one gets REFUSED_STREAM. */
  readonly streamsPerConnectionMax: number;
  /** Streams of all connections at a time. A further one gets REFUSED_STREAM. */
  readonly streamsMax: number;

  /** Octets of one header list, 32 more for each field: SETTINGS_MAX_HEADER_LIST_SIZE. The request is refused. */
  readonly headerListBytesMax: number;
  /** Fields of one header list. The request is refused. */
  readonly headerFieldsMax: number;
  /** Octets of one header block before it is decoded. The connection ends with ENHANCE_YOUR_CALM. */
  readonly headerBlockBytesMax: number;
  /** CONTINUATION frames of one header block. The connection ends with ENHANCE_YOUR_CALM. */
  readonly continuationFramesMax: number;
  /** Octets of the table of header fields that a client fills: SETTINGS_HEADER_TABLE_SIZE. */
  readonly headerTableBytesMax: number;

  /** A request's bytes on their way: the window of each stream. More is a FLOW_CONTROL_ERROR of the stream. */
  readonly streamWindowBytes: number;
  /** Bytes on their way on a connection: its window. More is a FLOW_CONTROL_ERROR of the connection. */
  readonly connectionWindowBytes: number;
  /**
   * Bytes of incomplete messages of one connection. Above it, one stream at a time gets window updates, so a connection
   * holds at most this, a window for each stream, and one message.
   */
  readonly unfinishedBytesPerConnectionMax: number;
  /** Bytes of incomplete frames and messages of all connections. The connection with the most is closed. */
  readonly unfinishedBytesMax: number;
  /** How long a client may take to send a header block, a request or a message of a stream. The call is refused. */
  readonly messageMs: number;
  /** How long a connection may take until its preface and its settings have arrived. It is closed. */
  readonly prefaceMs: number;
  /** How long a client may take to acknowledge our settings. The connection ends with SETTINGS_TIMEOUT. */
  readonly settingsAckMs: number;

  /** Bytes of answers that one connection does not read. It is closed. */
  readonly outputBytesPerConnectionMax: number;
  /** Bytes of answers that all connections do not read. The connection with the most is closed. */
  readonly outputBytesMax: number;
  /** How long the rest of an answer may wait for the client's window. The stream gets CANCEL. */
  readonly stalledAnswerMs: number;

  /** RST_STREAM frames of one connection a second. It ends with ENHANCE_YOUR_CALM. */
  readonly resetsPerSecondMax: number;
  /** Stream errors of one connection a second: malformed requests and the like. It ends with ENHANCE_YOUR_CALM. */
  readonly streamErrorsPerSecondMax: number;
  /** PING frames of one connection a second. It ends with ENHANCE_YOUR_CALM. */
  readonly pingsPerSecondMax: number;
  /** SETTINGS frames of one connection a second. It ends with ENHANCE_YOUR_CALM. */
  readonly settingsPerSecondMax: number;
  /** Frames of one connection a second that carry nothing: empty DATA, PRIORITY, unknown types; as above. */
  readonly uselessFramesPerSecondMax: number;
  /** Cuts of answers a second into DATA frames below 1 KiB, which small window updates force; as above. */
  readonly tinyFramesPerSecondMax: number;

  /** The least time between two PING frames while the server sends no HEADERS or DATA … */
  readonly pingIntervalMs: number;
  /** … and how many may come earlier. One more ends the connection with ENHANCE_YOUR_CALM, as etcd does. */
  readonly pingStrikesMax: number;
  /** A connection that is silent for this long is sent a PING … */
  readonly keepAliveMs: number;
  /** … and closed if nothing arrives within this time. */
  readonly keepAliveTimeoutMs: number;
}

export const HTTP2_LIMITS: Http2Limits = {
  connectionsMax: 10_000,
  streamsPerConnectionMax: 1_024,
  streamsMax: 65_536,
  headerListBytesMax: 32 << 10,
  headerFieldsMax: 256,
  headerBlockBytesMax: 32 << 10,
  continuationFramesMax: 8,
  headerTableBytesMax: 4_096,
  streamWindowBytes: 65_535,
  connectionWindowBytes: 4 << 20,
  unfinishedBytesPerConnectionMax: 16 << 20,
  unfinishedBytesMax: 256 << 20,
  messageMs: 60_000,
  prefaceMs: 5_000,
  settingsAckMs: 10_000,
  outputBytesPerConnectionMax: 256 << 20,
  outputBytesMax: 512 << 20,
  stalledAnswerMs: 60_000,
  resetsPerSecondMax: 1_000,
  streamErrorsPerSecondMax: 100,
  pingsPerSecondMax: 10_000,
  settingsPerSecondMax: 100,
  uselessFramesPerSecondMax: 1_000,
  tinyFramesPerSecondMax: 10_000,
  pingIntervalMs: 5_000,
  pingStrikesMax: 2,
  keepAliveMs: 30_000,
  keepAliveTimeoutMs: 20_000,
};

/** The largest payload that clients may send: the initial value, which this server never raises. */
export const FRAME_BYTES_MAX = FRAME_BYTES_MAX_INITIAL;
