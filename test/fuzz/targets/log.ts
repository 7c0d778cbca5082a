/** The log: its segments, and the records in them. */
import { crc32, SeededRandom, silentLogger } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { LogDamagedError, LogVersionError, openGroupLog } from '@remora/raft';
import {
  encodeFrameHeader,
  encodeSegmentHeader,
  FRAME_HEADER_BYTES,
  framePadding,
} from '../../../packages/raft/src/multi/log/log-format.ts';
import { FrameWriter, type LogRecord } from '../../../packages/raft/src/multi/log/record-codec.ts';
import { segmentPath } from '../../../packages/raft/src/multi/log/segment-files.ts';
import type { Target } from '../target.ts';

const GENERATION = 1;
const SEGMENT = segmentPath('log', GENERATION);

const RECORDS: readonly LogRecord[] = [
  { groupId: 1, hardState: { term: 3, vote: 2, commit: 0 }, entries: [] },
  {
    groupId: 1,
    entries: [
      { index: 1, term: 3, type: 'normal', data: Buffer.from('first') },
      { index: 2, term: 3, type: 'conf', data: Buffer.alloc(40, 1) },
      { index: 3, term: 4, type: 'normal', data: Buffer.alloc(0) },
    ],
  },
  {
    groupId: 2,
    restartAt: { index: 70, term: 2 },
    entries: [{ index: 71, term: 2, type: 'normal', data: Buffer.of(1) }],
  },
  { groupId: 1, compacted: { index: 2, term: 3 }, entries: [] },
  { groupId: 2, moved: true, entries: [{ index: 71, term: 2, type: 'normal', data: Buffer.of(1) }] },
  { groupId: 2, removed: true, entries: [] },
];

function frame(records: readonly LogRecord[], sequence: number): Buffer {
  const writer = new FrameWriter();
  writer.begin();
  for (const record of records) writer.add(record);
  return Buffer.concat(writer.finish({ generation: GENERATION, sequence }).chunks);
}

/** A frame with any payload and correct checksums. */
function frameOf(payload: Uint8Array): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  const checksum = crc32(payload);
  encodeFrameHeader(header, { generation: GENERATION, sequence: 1 }, { length: payload.length, checksum });
  return Buffer.concat([header, payload, Buffer.alloc(framePadding(payload.length))]);
}

const HEADER = encodeSegmentHeader({ generation: GENERATION, firstSequence: 1 });

/** Opens a log whose only segment has these bytes. */
async function recover(segment: Uint8Array): Promise<void> {
  const disk = new SimDisk({ random: new SeededRandom(1) });
  const file = await disk.open(SEGMENT, { create: true });
  await new Promise<void>((resolve) => file.write(0, [segment], () => resolve()));
  await file.close();
  const log = await openGroupLog({
    disk,
    dir: 'log',
    options: { segmentBytes: 4096 },
    logger: silentLogger,
    onFailure: (error) => {
      throw error;
    },
  });
  await log.close();
}

const isLogError = (error: unknown): boolean => error instanceof LogDamagedError || error instanceof LogVersionError;

const segments: Target = {
  name: 'log-segment',
  memoryFactor: 400,
  corpus: () => [
    HEADER,
    Buffer.concat([HEADER, ...RECORDS.map((record, i) => frame([record], i + 1))]),
    Buffer.concat([HEADER, frame(RECORDS, 1), Buffer.alloc(500)]),
  ],
  decode: recover,
  expected: isLogError,
};

const records: Target = {
  name: 'log-records',
  runs: 120,
  memoryFactor: 400,
  corpus: () => [...RECORDS.map((record) => [record]), RECORDS].map((some) => payloadOf(frame(some, 1))),
  decode: (payload) => (payload.length === 0 ? undefined : recover(Buffer.concat([HEADER, frameOf(payload)]))),
  expected: isLogError,
};

function payloadOf(bytes: Buffer): Buffer {
  return bytes.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + bytes.readUInt32LE(4));
}

export const LOG_TARGETS: readonly Target[] = [segments, records];
