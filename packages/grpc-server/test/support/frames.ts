/** Frames of HTTP/2 as octets, for tests that speak it on a raw socket. */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** Flags; ACK and END_STREAM are one bit. */
export const FLAG = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

export const SETTING = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const ERROR = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  connectError: 10,
  enhanceYourCalm: 11,
} as const;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

const HEAD_BYTES = 9;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 6);
  pairs.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  });
  return frame(FRAME.settings, 0, 0, payload);
}

export const SETTINGS_ACK = frame(FRAME.settings, FLAG.ack, 0);

export function windowUpdate(stream: number, increment: number): Buffer {
  return frame(FRAME.windowUpdate, 0, stream, uint32(increment));
}

export function rstStream(stream: number, code: number): Buffer {
  return frame(FRAME.rstStream, 0, stream, uint32(code));
}

export function ping(payload: Uint8Array = Buffer.alloc(8)): Buffer {
  return frame(FRAME.ping, 0, 0, payload);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Splits a byte stream into frames; keeps what is incomplete. */
export class FrameParser {
  #rest = Buffer.alloc(0);

  push(chunk: Buffer): readonly Frame[] {
    const found: Frame[] = [];
    let bytes = Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      const [, , , type = 0, flags = 0] = bytes;
      const stream = bytes.readUInt32BE(5) & 0x7fffffff;
      found.push({ type, flags, stream, payload: bytes.subarray(HEAD_BYTES, end) });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    return found;
  }
}
