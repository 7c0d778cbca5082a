import type { Bytes } from '@remora/base';
import { asCount, asText, decodeStored, encodeStored, type StoredFormat } from '@remora/protocol';
import type { LogPosition } from '@remora/raft';

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

const MARKER: StoredFormat = { what: 'the marker of a snapshot', version: 1, fields: 6 };

export function encodeMarker({ rangeId, replicaId, applied, file, bytes }: InstallMarker): Buffer {
  return encodeStored(MARKER, [rangeId, replicaId, applied.index, applied.term, file, bytes]);
}

/** Throws an `InvariantError` for anything else. */
export function decodeMarker(value: Bytes): InstallMarker {
  return decodeStored(MARKER, value, ([rangeId, replicaId, index, term, file, bytes]) => ({
    rangeId: asCount(rangeId, 'rangeId'),
    replicaId: asCount(replicaId, 'replicaId'),
    applied: { index: asCount(index, 'applied.index'), term: asCount(term, 'applied.term') },
    file: asText(file, 'file'),
    bytes: asCount(bytes, 'bytes'),
  }));
}
