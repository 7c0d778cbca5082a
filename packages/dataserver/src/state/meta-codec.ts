import { ConfFields, RangeDescriptor, type Row, schema, storedRow } from '@remora/protocol';
import type { ConfState, LogPosition } from '@remora/raft';
import { type Merging, NEVER_MERGED } from './reshape/merging.ts';

/** What a range's state row holds: everything of a range that is not a row of its own. */
export interface RangeMeta {
  readonly applied: LogPosition;
  /** The number of commands of the entry after `applied` that are applied too (A6 of the range state). */
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

const { added, field, flat, list, mapped, ms, optional, spread, struct, uint } = schema;
const SINCE = '0.1.0';

const MergingKind = struct('merging', {
  seal: field(
    optional(
      struct('seal', {
        targetId: field(uint, 'The range that takes its keys.'),
        round: field(uint, 'The round of the merge.'),
        index: field(uint, 'The index of the seal.'),
      }),
    ),
    'The seal that the range is under.',
  ),
  round: field(uint, 'The last round that it decided.'),
  absorbed: field(list(uint), 'The ranges whose keys it took over.'),
});

/** Version 2 is a range that took part in a merge, version 3 one whose counts are estimates. */
const META_ROW: Row<RangeMeta> = storedRow(
  "a range's state",
  struct('state of a range', {
    position: spread(
      struct('position', {
        applied: flat(
          struct('applied', { index: field(uint, 'The index.'), term: field(uint, 'The term.') }),
          'The last entry that is applied.',
        ),
        appliedAhead: field(uint, 'How many commands of the next entry are applied.'),
      }),
      'Where it stands in its log.',
    ),
    conf: field(ConfFields, 'The configuration of its group.'),
    descriptor: field(RangeDescriptor, 'The range.'),
    numbers: spread(
      struct('numbers', {
        revision: field(uint, 'The last revision.'),
        compactRevision: field(uint, 'The revision of the last compaction.'),
        rangeTimeMs: field(ms, 'The time of the range.'),
        wallMs: field(ms, 'The wall time that its leader stamped last.'),
        keys: field(uint, 'How many plain keys it has.'),
        bytes: field(uint, 'How many bytes they have.'),
      }),
      'What is counted.',
    ),
    merging: added(
      field(
        mapped<schema.Infer<typeof MergingKind> | undefined, Merging>(
          optional(MergingKind),
          (merging) => merging ?? NEVER_MERGED,
          (merging) => (merging === NEVER_MERGED ? undefined : merging),
        ),
        'What is known of merges.',
      ),
      { since: SINCE, absent: NEVER_MERGED },
    ),
    estimatedSince: added(field(uint, 'The entry since which the counts are estimates; 0: they are exact.'), {
      since: SINCE,
      absent: 0,
    }),
  }),
  { 1: 4, 2: 5, 3: 6 },
);

/** Both throw an `InvariantError` for anything else. */
export const { encode: encodeRangeMeta, decode: decodeRangeMeta } = META_ROW;
