/** What a range records about merges that it took part in: replicated state, carried by checkpoints and snapshots. */
import type { MergeRound } from '@remora/protocol';

/** A source is sealed for one round of a target: from this index of its log on it serves nothing. */
export interface Seal extends MergeRound {
  readonly index: number;
}

export interface Merging {
  /** As a source. */
  readonly seal: Seal | undefined;
  /** As a target: the round to be decided next. */
  readonly round: number;
  /** Ranges whose keys it has taken over, directly or through other ranges. */
  readonly absorbed: readonly number[];
}

/**
 * The same object in every range that never took part in a merge. The state of such a range is stored in the format
 * from before merges existed.
 */
export const NEVER_MERGED: Merging = Object.freeze({ seal: undefined, round: 0, absorbed: [] });

/** One range does not take over more ranges than this. */
export const ABSORBED_MAX = 1_000;

/**
 * Returns the fate of a seal according to a range's state: `open` as long as its round may still be decided either way;
 * undefined if this range does not know.
 *
 * The answer is final: rounds are decided in the order of the target's log, each once, and `absorbed` never loses an
 * id. If the target itself was merged away, it decides nothing any more, and the range that took it over knows its
 * decisions.
 */
export function verdictOn(
  seal: MergeRound,
  sourceId: number,
  by: { readonly rangeId: number; readonly merging: Merging },
): 'open' | 'merged' | 'refused' | undefined {
  const { round, absorbed } = by.merging;
  if (by.rangeId === seal.targetId && round <= seal.round) return 'open';
  if (by.rangeId !== seal.targetId && !absorbed.includes(seal.targetId)) return undefined;
  return absorbed.includes(sourceId) ? 'merged' : 'refused';
}

export function isSameRound(a: MergeRound, b: MergeRound): boolean {
  return a.targetId === b.targetId && a.round === b.round;
}
