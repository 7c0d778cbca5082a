import { field, list, struct, uint, uintBetween } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';

/** The highest accepted floor: far above what a cluster can use, and far below the end of safe integers. */
export const REVISION_FLOOR_MAX = 2 ** 52;
/** Revisions in one draw, and draws in one request. */
export const DRAW_COUNT_MAX = 65_536;
export const DRAWS_MAX = 20_000;

const DrawCount = uintBetween(1, DRAW_COUNT_MAX);

/** Revisions that the masters gave out together: `first` to `first + count - 1`, all of them safe integers. */
export const RevisionBlock = struct('block of revisions', {
  first: field(uintBetween(1, Number.MAX_SAFE_INTEGER - DRAW_COUNT_MAX), 'The lowest revision of the block.'),
  count: field(DrawCount, 'How many revisions it has.'),
});
export interface RevisionBlock extends Infer<typeof RevisionBlock> {}

/** What the leader of one range asks for. */
export const RevisionDraw = struct('draw of revisions', {
  rangeId: field(uint, 'The range that needs the revisions.'),
  count: field(DrawCount, 'How many it needs.'),
});
export interface RevisionDraw extends Infer<typeof RevisionDraw> {}

/** Everything that the ranges of one node need at the moment. Without draws it asks for `newest` alone. */
export const DrawRevisionsRequest = struct('request for revisions', {
  floor: field(
    uintBetween(0, REVISION_FLOOR_MAX),
    'The highest revision that the caller knows to be in use: every revision allocated from now on is above it.',
  ),
  draws: field(list(RevisionDraw, DRAWS_MAX), 'What each range needs.'),
});
export interface DrawRevisionsRequest extends Infer<typeof DrawRevisionsRequest> {}

export const RangeBlock = struct('block of a range', {
  rangeId: field(uint, 'The range that asked.'),
  first: RevisionBlock.fields.first,
  count: RevisionBlock.fields.count,
});
export interface RangeBlock extends Infer<typeof RangeBlock> {}

export const DrawRevisionsReply = struct('revisions', {
  newest: field(
    uint,
    'At least the floor. No revision above it was allocated before this answer, and callers that ask after the answer get higher ones.',
  ),
  blocks: field(list(RangeBlock), 'In the order of the draws.'),
});
export interface DrawRevisionsReply extends Infer<typeof DrawRevisionsReply> {}
