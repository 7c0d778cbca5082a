/** The numbers of HTTP/2: RFC 9113. */

/** What a client sends first (§3.4). */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** §4.1. */
export const FRAME_HEAD_BYTES = 9;

/** §6. */
export const FRAME = {
  data: 0x0,
  headers: 0x1,
  priority: 0x2,
  rstStream: 0x3,
  settings: 0x4,
  pushPromise: 0x5,
  ping: 0x6,
  goaway: 0x7,
  windowUpdate: 0x8,
  continuation: 0x9,
} as const;

export const FLAG = { none: 0x0, ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** §6.5.2. */
export const SETTING = {
  headerTableSize: 0x1,
  enablePush: 0x2,
  maxConcurrentStreams: 0x3,
  initialWindowSize: 0x4,
  maxFrameSize: 0x5,
  maxHeaderListSize: 0x6,
} as const;

/** §7. */
export const ERROR = {
  noError: 0x0,
  protocolError: 0x1,
  internalError: 0x2,
  flowControlError: 0x3,
  settingsTimeout: 0x4,
  streamClosed: 0x5,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  enhanceYourCalm: 0xb,
} as const;

/** The window of the connection, and of each stream, before anyone changes it (§6.9.2). */
export const WINDOW_BYTES_INITIAL = 65_535;
/** No window may grow beyond this (§6.9.1). */
export const WINDOW_BYTES_MAX = 2 ** 31 - 1;
/** The largest payload of a frame before anyone changes it, which is also the smallest maximum (§6.5.2). */
export const FRAME_BYTES_MAX_INITIAL = 16_384;
export const STREAM_ID_MAX = 2 ** 31 - 1;
