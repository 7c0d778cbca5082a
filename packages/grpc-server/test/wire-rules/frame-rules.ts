// The definitions of frames (§6).
import { FLAG, FRAME, frame, rstStream, SETTING, settings, uint32, windowUpdate } from '../support/frames.ts';
import { data, message } from '../support/raw-client.ts';
import {
  BLOCK,
  continuation,
  FRAME_SIZE,
  HEAD,
  headers,
  MALFORMED,
  NOTHING,
  PROTOCOL,
  WAITING,
  type WireRule,
} from './rule.ts';

export const DATA_AND_HEADERS_RULES: readonly WireRule[] = [
  { section: '6.1', name: 'DATA on stream 0', bytes: data(0, Buffer.alloc(1)), expect: PROTOCOL },
  {
    section: '6.1',
    name: 'DATA with as much padding as payload',
    stream: 'open',
    bytes: data(1, Buffer.from([3, 0, 0]), FLAG.padded),
    expect: PROTOCOL,
  },
  {
    section: '6.1',
    name: 'padded DATA without the length of its padding',
    stream: 'open',
    bytes: data(1, Buffer.alloc(0), FLAG.padded),
    expect: ['GOAWAY protocolError', 'GOAWAY frameSizeError'],
  },
  {
    section: '6.1',
    name: 'DATA that is all padding',
    stream: 'open',
    bytes: data(1, Buffer.from([2, 0, 0]), FLAG.padded),
    expect: NOTHING,
  },
  { section: '6.2', name: 'HEADERS on stream 0', bytes: headers(0, HEAD, BLOCK), expect: PROTOCOL },
  {
    section: '6.2',
    name: 'HEADERS with more padding than payload',
    bytes: headers(1, HEAD | FLAG.padded | FLAG.endStream, Buffer.concat([Buffer.from([255]), BLOCK])),
    expect: PROTOCOL,
  },
  {
    section: '6.2',
    name: 'HEADERS too short for their priority',
    bytes: headers(1, HEAD | FLAG.priority | FLAG.endStream, Buffer.alloc(4)),
    expect: ['GOAWAY frameSizeError', 'GOAWAY protocolError'],
  },
  {
    section: '6.2',
    name: 'HEADERS too short for their padding and priority',
    bytes: headers(1, HEAD | FLAG.priority | FLAG.padded | FLAG.endStream, Buffer.from([1, 0, 0, 0, 0, 0])),
    expect: ['GOAWAY protocolError', 'GOAWAY frameSizeError'],
  },
  {
    section: '6.2',
    name: 'HEADERS with padding and priority',
    bytes: Buffer.concat([
      headers(
        1,
        HEAD | FLAG.padded | FLAG.priority,
        Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 7]), BLOCK, Buffer.alloc(3)]),
      ),
      WAITING,
    ]),
    expect: NOTHING,
  },
  {
    section: '6.3',
    name: 'PRIORITY on stream 0',
    bytes: frame(FRAME.priority, 0, 0, Buffer.alloc(5)),
    expect: PROTOCOL,
  },
  {
    section: '6.3',
    name: 'PRIORITY that has not 5 octets',
    stream: 'open',
    bytes: frame(FRAME.priority, 0, 1, Buffer.alloc(4)),
    expect: ['RST_STREAM frameSizeError'],
  },
];

export const CONTROL_RULES: readonly WireRule[] = [
  { section: '6.4', name: 'RST_STREAM on stream 0', bytes: rstStream(0, 8), expect: PROTOCOL },
  {
    section: '6.4',
    name: 'RST_STREAM that has not 4 octets',
    stream: 'open',
    bytes: frame(FRAME.rstStream, 0, 1, Buffer.alloc(5)),
    expect: FRAME_SIZE,
  },
  { section: '6.5', name: 'SETTINGS on a stream', bytes: frame(FRAME.settings, 0, 1), expect: PROTOCOL },
  {
    section: '6.5',
    name: 'an acknowledgement with settings',
    bytes: frame(FRAME.settings, FLAG.ack, 0, Buffer.alloc(6)),
    expect: FRAME_SIZE,
  },
  {
    section: '6.5',
    name: 'SETTINGS with a part of a setting',
    bytes: frame(FRAME.settings, 0, 0, Buffer.alloc(5)),
    expect: FRAME_SIZE,
  },
  { section: '6.5.2', name: 'SETTINGS_ENABLE_PUSH of 2', bytes: settings([SETTING.enablePush, 2]), expect: PROTOCOL },
  {
    section: '6.5.2',
    name: 'SETTINGS_INITIAL_WINDOW_SIZE of 2^31',
    bytes: settings([SETTING.initialWindowSize, 2 ** 31]),
    expect: ['GOAWAY flowControlError'],
  },
  {
    section: '6.5.2',
    name: 'SETTINGS_MAX_FRAME_SIZE below 2^14',
    bytes: settings([SETTING.maxFrameSize, 16_383]),
    expect: PROTOCOL,
  },
  {
    section: '6.5.2',
    name: 'SETTINGS_MAX_FRAME_SIZE of 2^24',
    bytes: settings([SETTING.maxFrameSize, 2 ** 24]),
    expect: PROTOCOL,
  },
  {
    section: '6.5.2',
    name: 'settings at the edge of what is valid, and an unknown one',
    bytes: settings(
      [SETTING.headerTableSize, 0xffffffff],
      [SETTING.enablePush, 0],
      [SETTING.maxConcurrentStreams, 0],
      [SETTING.initialWindowSize, 2 ** 31 - 1],
      [SETTING.maxFrameSize, 2 ** 24 - 1],
      [SETTING.maxHeaderListSize, 0],
      [0xabcd, 7],
    ),
    expect: NOTHING,
  },
  {
    section: '6.6',
    name: 'PUSH_PROMISE',
    stream: 'open',
    bytes: frame(FRAME.pushPromise, HEAD, 1, Buffer.concat([uint32(2), BLOCK])),
    expect: PROTOCOL,
  },
  { section: '6.7', name: 'PING on a stream', bytes: frame(FRAME.ping, 0, 1, Buffer.alloc(8)), expect: PROTOCOL },
  {
    section: '6.7',
    name: 'PING that has not 8 octets',
    bytes: frame(FRAME.ping, 0, 0, Buffer.alloc(7)),
    expect: FRAME_SIZE,
  },
  {
    section: '6.7',
    name: 'an answer to no PING',
    bytes: frame(FRAME.ping, FLAG.ack, 0, Buffer.alloc(8)),
    expect: NOTHING,
    reference: 'refuses',
  },
  { section: '6.8', name: 'GOAWAY on a stream', bytes: frame(FRAME.goaway, 0, 1, Buffer.alloc(8)), expect: PROTOCOL },
  {
    section: '6.8',
    name: 'GOAWAY of less than 8 octets',
    bytes: frame(FRAME.goaway, 0, 0, Buffer.alloc(7)),
    expect: FRAME_SIZE,
  },
  {
    section: '7',
    name: 'RST_STREAM with an unknown code',
    stream: 'open',
    bytes: rstStream(1, 0xdeadbeef),
    expect: NOTHING,
  },
];

export const WINDOW_RULES: readonly WireRule[] = [
  { section: '6.9', name: 'WINDOW_UPDATE by 0 on the connection', bytes: windowUpdate(0, 0), expect: PROTOCOL },
  {
    section: '6.9',
    name: 'WINDOW_UPDATE by 0 on a stream',
    stream: 'open',
    bytes: windowUpdate(1, 0),
    expect: MALFORMED,
  },
  {
    section: '6.9',
    name: 'WINDOW_UPDATE that has not 4 octets',
    bytes: frame(FRAME.windowUpdate, 0, 0, Buffer.alloc(3)),
    expect: FRAME_SIZE,
  },
  {
    section: '6.9',
    name: 'WINDOW_UPDATE of a stream that has not 4 octets',
    stream: 'open',
    bytes: frame(FRAME.windowUpdate, 0, 1, Buffer.alloc(5)),
    expect: FRAME_SIZE,
  },
  {
    section: '6.9.1',
    name: 'a window of the connection beyond 2^31 - 1',
    bytes: windowUpdate(0, 2 ** 31 - 1),
    expect: ['GOAWAY flowControlError'],
  },
  {
    section: '6.9.1',
    name: 'a window of a stream beyond 2^31 - 1',
    stream: 'open',
    bytes: windowUpdate(1, 2 ** 31 - 1),
    expect: ['RST_STREAM flowControlError'],
  },
  {
    section: '6.9.1',
    name: 'more DATA than the window of a stream that is not read',
    stream: 'open',
    bytes: Buffer.concat([data(1, message('hold')), ...new Array(5).fill(data(1, Buffer.alloc(16_384)))]),
    expect: ['RST_STREAM flowControlError'],
    // Its stream is read, sooner or later.
    reference: 'varies',
  },
  {
    section: '6.9.1',
    name: 'more padding than the window of a stream that is not read',
    stream: 'open',
    bytes: Buffer.concat([
      data(1, message('hold')),
      ...new Array(257).fill(data(1, Buffer.concat([Buffer.from([255]), Buffer.alloc(255)]), FLAG.padded)),
    ]),
    expect: ['RST_STREAM flowControlError'],
    reference: 'varies',
  },
  {
    section: '6.9.2',
    name: 'a setting that takes the window of a stream beyond 2^31 - 1',
    stream: 'open',
    bytes: Buffer.concat([windowUpdate(1, 2 ** 30), settings([SETTING.initialWindowSize, 2 ** 31 - 1])]),
    expect: ['GOAWAY flowControlError'],
  },
  {
    section: '6.9.2',
    name: 'a setting that takes the window of a stream below 0',
    stream: 'open',
    bytes: settings([SETTING.initialWindowSize, 0]),
    expect: NOTHING,
  },
];

export const CONTINUATION_RULES: readonly WireRule[] = [
  { section: '6.10', name: 'CONTINUATION without HEADERS', bytes: continuation(1, HEAD, BLOCK), expect: PROTOCOL },
  {
    section: '6.10',
    name: 'CONTINUATION behind a block that has ended',
    bytes: Buffer.concat([headers(1, HEAD, BLOCK), continuation(1, HEAD, Buffer.alloc(0))]),
    expect: PROTOCOL,
  },
  {
    section: '6.10',
    name: 'CONTINUATION of another stream',
    bytes: Buffer.concat([headers(1, 0, BLOCK), continuation(3, HEAD, Buffer.alloc(0))]),
    expect: PROTOCOL,
  },
  {
    section: '6.10',
    name: 'CONTINUATION on stream 0',
    bytes: Buffer.concat([headers(1, 0, BLOCK), continuation(0, HEAD, Buffer.alloc(0))]),
    expect: PROTOCOL,
  },
  ...[
    { name: 'DATA', bytes: data(1, Buffer.alloc(1)) },
    { name: 'HEADERS', bytes: headers(1, HEAD, BLOCK) },
    { name: 'PRIORITY', bytes: frame(FRAME.priority, 0, 3, Buffer.alloc(5)) },
    { name: 'RST_STREAM', bytes: rstStream(1, 8) },
    { name: 'SETTINGS', bytes: settings() },
    { name: 'PING', bytes: frame(FRAME.ping, 0, 0, Buffer.alloc(8)) },
    { name: 'GOAWAY', bytes: frame(FRAME.goaway, 0, 0, Buffer.alloc(8)) },
    { name: 'WINDOW_UPDATE', bytes: windowUpdate(0, 1) },
  ].map(
    ({ name, bytes }): WireRule => ({
      section: '6.10',
      name: `${name} inside a block`,
      bytes: Buffer.concat([headers(1, 0, BLOCK.subarray(0, 3)), bytes, continuation(1, HEAD, BLOCK.subarray(3))]),
      expect: PROTOCOL,
    }),
  ),
  {
    section: '6.10',
    name: 'a block in several frames',
    bytes: Buffer.concat([
      headers(1, 0, BLOCK.subarray(0, 3)),
      continuation(1, 0, Buffer.alloc(0)),
      continuation(1, 0, BLOCK.subarray(3, 5)),
      continuation(1, HEAD, BLOCK.subarray(5)),
      WAITING,
    ]),
    expect: NOTHING,
  },
];
