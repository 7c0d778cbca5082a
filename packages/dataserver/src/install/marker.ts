import { assert, type Bytes } from '@remora/base';
import type { LogPosition } from '@remora/raft';
import { Packr } from 'msgpackr';

/**
 * The durable marker (design §6 ▸): the rows of a replica are being replaced by a staged snapshot. Whoever finds it at
 * start finishes the work before anything else touches the replica.
 */
export interface InstallMarker {
  readonly rangeId: number;
  readonly replicaId: number;
  /** The position that the snapshot stands for. */
  readonly applied: LogPosition;
  /** The staged file, and its length. */
  readonly file: string;
  readonly bytes: number;
}

const FORMAT = 1;
const packr = new Packr({ useRecords: false });

export function encodeMarker({ rangeId, replicaId, applied, file, bytes }: InstallMarker): Buffer {
  return packr.pack([FORMAT, rangeId, replicaId, applied.index, applied.term, file, bytes]);
}

export function decodeMarker(value: Bytes): InstallMarker {
  const [format, rangeId, replicaId, index, term, file, bytes] = packr.unpack(value) as [
    ...[number, number, number, number, number],
    string,
    number,
  ];
  assert(format === FORMAT, `the marker of a snapshot has format ${format}; this version reads ${FORMAT}`);
  return { rangeId, replicaId, applied: { index, term }, file, bytes };
}
