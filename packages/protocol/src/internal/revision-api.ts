/** Revisions that the master gave away together: `first` to `first + count - 1`. */
export interface RevisionBlock {
  readonly first: number;
  readonly count: number;
}

/** What the leader of one range asks for. */
export interface RevisionDraw {
  readonly rangeId: number;
  /** At least 1. */
  readonly count: number;
}

/** All that the ranges of one node need at the moment. Without draws it asks for `newest` alone. */
export interface DrawRevisionsRequest {
  /** The highest revision that the asker knows to be in use: what is given away is above it, and so is all later. */
  readonly floor: number;
  readonly draws: readonly RevisionDraw[];
}

export interface RangeBlock extends RevisionBlock {
  readonly rangeId: number;
}

/**
 * `newest`: at least the floor; no revision above it was given away by the time of the answer, and whoever asks after
 * the answer gets higher ones. `blocks` follow the order of the draws.
 */
export interface DrawRevisionsReply {
  readonly newest: number;
  readonly blocks: readonly RangeBlock[];
}

/** The highest floor that is taken: far above what a cluster can use, and far enough below the end of safe integers. */
export const REVISION_FLOOR_MAX = 2 ** 52;
/** Revisions in one draw, and draws in one request. */
export const DRAW_COUNT_MAX = 65_536;
export const DRAWS_MAX = 20_000;
