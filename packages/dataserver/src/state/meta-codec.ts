import type { Bytes } from '@remora/base';
import {
  asCount,
  asFields,
  asList,
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
import { type Merging, NEVER_MERGED, type Seal } from './reshape/merging.ts';

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
  /** The index of the entry since which `keys` and `bytes` are estimates; 0: both are exact. */
  readonly estimatedSince: number;
  readonly merging: Merging;
}

const META: StoredFormat = { what: "a range's state", version: 1, fields: 4 };
/** With what is known of merges, in ranges that have taken part in one. */
const MERGING_META: StoredFormat = { ...META, version: 2, fields: 5 };
/** With counts that are estimates: for about a second after a split. */
const ESTIMATED_META: StoredFormat = { ...META, version: 3, fields: 6 };

export function encodeRangeMeta(meta: RangeMeta): Buffer {
  const { applied } = meta;
  const fields = [
    [applied.index, applied.term, meta.appliedAhead],
    encodeConfFields(meta.conf),
    encodeRangeDescriptor(meta.descriptor),
    [meta.revision, meta.compactRevision, meta.rangeTimeMs, meta.wallMs, meta.keys, meta.bytes],
  ];
  const merging = meta.merging === NEVER_MERGED ? undefined : encodeMerging(meta.merging);
  if (meta.estimatedSince > 0) return encodeStored(ESTIMATED_META, [...fields, merging ?? null, meta.estimatedSince]);
  if (merging === undefined) return encodeStored(META, fields);
  return encodeStored(MERGING_META, [...fields, merging]);
}

/** Throws an `InvariantError` for anything else. */
export function decodeRangeMeta(bytes: Bytes): RangeMeta {
  return decodeStored(
    [META, MERGING_META, ESTIMATED_META],
    bytes,
    ([position, conf, descriptor, sizes, merging, estimatedSince]) => {
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
        estimatedSince: estimatedSince === undefined ? 0 : asCount(estimatedSince, 'estimatedSince'),
        merging: merging === undefined || merging === null ? NEVER_MERGED : decodeMerging(merging),
      };
    },
  );
}

function encodeMerging({ seal, round, absorbed }: Merging): unknown[] {
  return [seal === undefined ? null : [seal.targetId, seal.round, seal.index], round, absorbed];
}

function decodeMerging(raw: unknown): Merging {
  const f = asFields(raw, 3, 'merging');
  return {
    seal: f[0] === null ? undefined : decodeSeal(f[0]),
    round: asCount(f[1], 'merging.round'),
    absorbed: asList(f[2], 'merging.absorbed', (id) => asCount(id, 'absorbed range')),
  };
}

function decodeSeal(raw: unknown): Seal {
  const f = asFields(raw, 3, 'seal');
  return {
    targetId: asCount(f[0], 'seal.targetId'),
    round: asCount(f[1], 'seal.round'),
    index: asCount(f[2], 'seal.index'),
  };
}
