import { type Bytes, EMPTY_BYTES, type Span } from '@remora/base';
import { schema, storedRow } from '@remora/protocol';
import type { LogPosition } from '@remora/raft';

/**
 * The durable marker (design §6 ▸): a staged snapshot is replacing the rows of a replica. A node that finds the marker
 * at its start finishes the work before anything else touches the replica.
 */
export interface InstallMarker {
  readonly rangeId: number;
  readonly replicaId: number;
  /** All keys whose rows are deleted: those that the replica had, and those that the snapshot brings. */
  readonly span: Span;
  /** The applied position of the snapshot. */
  readonly applied: LogPosition;
  /** The staged file, and its length. */
  readonly file: string;
  readonly bytes: number;
}

const { added, bytes, field, flat, struct, text, uint } = schema;
const UNBOUNDED = { since: '0.1.0', absent: EMPTY_BYTES };

/** Version 2 has the bounds of the span; version 1 has none, and means all keys. */
const MARKER_ROW = storedRow(
  'the marker of a snapshot',
  struct('marker of a snapshot', {
    rangeId: field(uint, 'The range.'),
    replicaId: field(uint, 'The replica.'),
    applied: flat(
      struct('position', { index: field(uint, 'The index.'), term: field(uint, 'The term.') }),
      'The position of the snapshot.',
    ),
    file: field(text, 'The staged file.'),
    bytes: field(uint, 'The length of the file.'),
    start: added(field(bytes, 'The first key whose rows go.'), UNBOUNDED),
    end: added(field(bytes, 'The key behind the last; empty: unbounded.'), UNBOUNDED),
  }),
  { 1: 6, 2: 8 },
);

export function encodeMarker({ span, ...marker }: InstallMarker): Buffer {
  return MARKER_ROW.encode({ ...marker, ...span });
}

/** Throws an `InvariantError` for anything else. */
export function decodeMarker(value: Bytes): InstallMarker {
  const { start, end, ...marker } = MARKER_ROW.decode(value);
  return { ...marker, span: { start, end } };
}
