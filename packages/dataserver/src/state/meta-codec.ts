import { assert, type Bytes } from '@remora/base';
import { decodeRangeDescriptor, encodeRangeDescriptor, type RangeDescriptor } from '@remora/protocol';
import type { ConfState, LogPosition } from '@remora/raft';
import { Packr } from 'msgpackr';

/** What a range's state row holds: everything of a range that is not a row of its own. */
export interface RangeMeta {
  readonly applied: LogPosition;
  /** Commands of the entry after `applied` that are applied too (A6 of the range state). */
  readonly appliedAhead: number;
  readonly conf: ConfState;
  readonly descriptor: RangeDescriptor;
  readonly revision: number;
  readonly compactRevision: number;
  readonly rangeTimeMs: number;
  readonly wallMs: number;
  readonly keys: number;
  readonly bytes: number;
}

const FORMAT = 1;
const packr = new Packr({ useRecords: false });

export function encodeRangeMeta(meta: RangeMeta): Buffer {
  const { applied, conf } = meta;
  return packr.pack([
    FORMAT,
    [applied.index, applied.term, meta.appliedAhead],
    [conf.voters, conf.votersOutgoing, conf.learners, conf.learnersNext, conf.autoLeave],
    encodeRangeDescriptor(meta.descriptor),
    [meta.revision, meta.compactRevision, meta.rangeTimeMs, meta.wallMs, meta.keys, meta.bytes],
  ]);
}

export function decodeRangeMeta(bytes: Bytes): RangeMeta {
  const [format, applied, conf, descriptor, numbers] = packr.unpack(bytes) as [
    number,
    [number, number, number],
    [number[], number[], number[], number[], boolean],
    unknown,
    [number, number, number, number, number, number],
  ];
  assert(format === FORMAT, `a range's state has format ${format}; this version reads ${FORMAT}`);
  const [voters, votersOutgoing, learners, learnersNext, autoLeave] = conf;
  const [revision, compactRevision, rangeTimeMs, wallMs, keys, size] = numbers;
  return {
    applied: { index: applied[0], term: applied[1] },
    appliedAhead: applied[2],
    conf: { voters, votersOutgoing, learners, learnersNext, autoLeave },
    descriptor: decodeRangeDescriptor(descriptor),
    revision,
    compactRevision,
    rangeTimeMs,
    wallMs,
    keys,
    bytes: size,
  };
}
