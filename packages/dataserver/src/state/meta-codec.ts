import type { Bytes } from '@remora/base';
import {
  asCount,
  asFields,
  asMs,
  decodeConfFields,
  decodeRangeDescriptor,
  decodeStored,
  encodeConfFields,
  encodeRangeDescriptor,
  encodeStored,
  type RangeDescriptor,
  type StoredFormat,
} from '@remora/protocol';
import type { ConfState, LogPosition } from '@remora/raft';

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

const META: StoredFormat = { what: "a range's state", version: 1, fields: 4 };

export function encodeRangeMeta(meta: RangeMeta): Buffer {
  const { applied } = meta;
  return encodeStored(META, [
    [applied.index, applied.term, meta.appliedAhead],
    encodeConfFields(meta.conf),
    encodeRangeDescriptor(meta.descriptor),
    [meta.revision, meta.compactRevision, meta.rangeTimeMs, meta.wallMs, meta.keys, meta.bytes],
  ]);
}

/** Throws an `InvariantError` for anything else. */
export function decodeRangeMeta(bytes: Bytes): RangeMeta {
  return decodeStored(META, bytes, ([position, conf, descriptor, sizes]) => {
    const applied = asFields(position, 3, 'applied');
    const numbers = asFields(sizes, 6, 'numbers');
    return {
      applied: { index: asCount(applied[0], 'applied.index'), term: asCount(applied[1], 'applied.term') },
      appliedAhead: asCount(applied[2], 'appliedAhead'),
      conf: decodeConfFields(conf),
      descriptor: decodeRangeDescriptor(descriptor),
      revision: asCount(numbers[0], 'revision'),
      compactRevision: asCount(numbers[1], 'compactRevision'),
      rangeTimeMs: asMs(numbers[2], 'rangeTimeMs'),
      wallMs: asMs(numbers[3], 'wallMs'),
      keys: asCount(numbers[4], 'keys'),
      bytes: asCount(numbers[5], 'bytes'),
    };
  });
}
