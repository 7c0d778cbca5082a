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

/**
 * Applies the payload of the peer's SETTINGS frame (RFC 9113 §6.5). Returns what is wrong with it.
 *
 * A frame may hold thousands of settings, and a change of the window visits every stream. So each value is checked, in
 * order, and of the windows only the last one is applied, once.
 */
export function applySettings(payload: Buffer, sink: SettingsSink): ProtocolProblem | undefined {
  if (payload.length % SETTING_BYTES !== 0) {
    return { error: ERROR.frameSizeError, what: `a SETTINGS frame of ${payload.length} bytes` };
  }
  let windowBytes: number | undefined;
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const id = payload.readUInt16BE(at);
    const value = payload.readUInt32BE(at + 2);
    const problem = settingProblem(id, value);
    if (problem !== undefined) return problem;
    if (id === SETTING.headerTableSize) sink.headerTableBytes(value);
    else if (id === SETTING.initialWindowSize) windowBytes = value;
  }
  return windowBytes === undefined || sink.streamWindowBytes(windowBytes) ? undefined : windowProblem(windowBytes);
}

function settingProblem(id: number, value: number): ProtocolProblem | undefined {
  switch (id) {
    case SETTING.enablePush:
      return value <= 1 ? undefined : { error: ERROR.protocolError, what: `SETTINGS_ENABLE_PUSH is ${value}` };
    case SETTING.initialWindowSize:
      return value <= WINDOW_BYTES_MAX ? undefined : windowProblem(value);
    case SETTING.maxFrameSize:
      // Frames of the initial size are always allowed, and no larger ones are sent.
      return value >= FRAME_BYTES_MAX_INITIAL && value <= FRAME_BYTES_LIMIT
        ? undefined
        : { error: ERROR.protocolError, what: `SETTINGS_MAX_FRAME_SIZE is ${value}` };
    default:
      return undefined;
  }
}

function windowProblem(value: number): ProtocolProblem {
  return { error: ERROR.flowControlError, what: `SETTINGS_INITIAL_WINDOW_SIZE is ${value}` };
}
