import { TABLE_BYTES_INITIAL } from '../hpack/header-field.ts';
import type { Http2Limits } from './limits.ts';
import { ERROR, FRAME_BYTES_MAX_INITIAL, SETTING, WINDOW_BYTES_INITIAL, WINDOW_BYTES_MAX } from './protocol.ts';

/** Takes the settings of the peer that matter to a server. */
export interface SettingsSink {
  headerTableBytes(bytes: number): void;
  /** Returns false if a window of a stream would become too large by it. */
  streamWindowBytes(bytes: number): boolean;
}

export interface ProtocolProblem {
  readonly error: number;
  readonly what: string;
}

const SETTING_BYTES = 6;
const FRAME_BYTES_LIMIT = 2 ** 24 - 1;

/** The payload of our SETTINGS frame: what differs from the initial values. */
export function settingsPayload(limits: Http2Limits): Buffer {
  const settings: [number, number][] = [
    [SETTING.maxConcurrentStreams, limits.streamsPerConnectionMax],
    [SETTING.maxHeaderListSize, limits.headerListBytesMax],
  ];
  if (limits.headerTableBytesMax !== TABLE_BYTES_INITIAL)
    settings.push([SETTING.headerTableSize, limits.headerTableBytesMax]);
  if (limits.streamWindowBytes !== WINDOW_BYTES_INITIAL) {
    settings.push([SETTING.initialWindowSize, limits.streamWindowBytes]);
  }
  const payload = Buffer.alloc(settings.length * SETTING_BYTES);
  settings.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, index * SETTING_BYTES);
    payload.writeUInt32BE(value, index * SETTING_BYTES + 2);
  });
  return payload;
}

/** Applies the payload of the peer's SETTINGS frame (RFC 9113 §6.5), in order. Returns what is wrong with it. */
export function applySettings(payload: Buffer, sink: SettingsSink): ProtocolProblem | undefined {
  if (payload.length % SETTING_BYTES !== 0) {
    return { error: ERROR.frameSizeError, what: `a SETTINGS frame of ${payload.length} bytes` };
  }
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const problem = applySetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2), sink);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function applySetting(id: number, value: number, sink: SettingsSink): ProtocolProblem | undefined {
  switch (id) {
    case SETTING.headerTableSize:
      sink.headerTableBytes(value);
      return undefined;
    case SETTING.enablePush:
      return value <= 1 ? undefined : { error: ERROR.protocolError, what: `SETTINGS_ENABLE_PUSH is ${value}` };
    case SETTING.initialWindowSize:
      return value <= WINDOW_BYTES_MAX && sink.streamWindowBytes(value)
        ? undefined
        : { error: ERROR.flowControlError, what: `SETTINGS_INITIAL_WINDOW_SIZE is ${value}` };
    case SETTING.maxFrameSize:
      // Frames of the initial size are always allowed, and no larger ones are sent.
      return value >= FRAME_BYTES_MAX_INITIAL && value <= FRAME_BYTES_LIMIT
        ? undefined
        : { error: ERROR.protocolError, what: `SETTINGS_MAX_FRAME_SIZE is ${value}` };
    default:
      return undefined;
  }
}
