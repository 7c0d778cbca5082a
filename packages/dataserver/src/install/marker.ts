import { type Bytes, EMPTY_BYTES, type Span } from '@remora/base';
import { asBytes, asCount, asText, decodeStored, encodeStored, type StoredFormat } from '@remora/protocol';
import type { LogPosition } from '@remora/raft';

/**
 * The durable marker (design §6 ▸): the rows of a replica are being replaced by a staged snapshot. Whoever finds it at
 * start finishes the work before anything else touches the replica.
 */
export interface InstallMarker {
  readonly rangeId: number;
  readonly replicaId: number;
  /** All keys whose rows go: those that the replica had, and those that the snapshot brings. */
  readonly span: Span;
  /** The position that the snapshot stands for. */
  readonly applied: LogPosition;
  /** The staged file, and its length. */
  readonly file: string;
  readonly bytes: number;
}

const MARKER: StoredFormat = { what: 'the marker of a snapshot', version: 1, fields: 6 };
/** With the bounds of the span, which the first format lacks: there the span is all keys. */
const BOUNDED: StoredFormat = { ...MARKER, version: 2, fields: 8 };

export function encodeMarker({ rangeId, replicaId, applied, file, bytes, span }: InstallMarker): Buffer {
  const fields = [rangeId, replicaId, applied.index, applied.term, file, bytes];
  if (span.start.length === 0 && span.end.length === 0) return encodeStored(MARKER, fields);
  return encodeStored(BOUNDED, [...fields, span.start, span.end]);
}

/** Throws an `InvariantError` for anything else. */
export function decodeMarker(value: Bytes): InstallMarker {
  return decodeStored([MARKER, BOUNDED], value, ([rangeId, replicaId, index, term, file, bytes, ...bounds]) => {
    const [start = EMPTY_BYTES, end = EMPTY_BYTES] = bounds;
    return {
      rangeId: asCount(rangeId, 'rangeId'),
      replicaId: asCount(replicaId, 'replicaId'),
      applied: { index: asCount(index, 'applied.index'), term: asCount(term, 'applied.term') },
      file: asText(file, 'file'),
      bytes: asCount(bytes, 'bytes'),
      span: { start: asBytes(start, 'start'), end: asBytes(end, 'end') },
    };
  });
}
