/** What a range knows of merges that it has taken part in: replicated state, carried by checkpoints and snapshots. */
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
  /** Ranges whose keys it has taken over, also by way of others. */
  readonly absorbed: readonly number[];
}

/**
 * The same object in every range that has had no part in a merge, whose state is stored as it was before there were
 * any.
 */
export const NEVER_MERGED: Merging = Object.freeze({ seal: undefined, round: 0, absorbed: [] });

/** More ranges than that are not taken over by one. */
export const ABSORBED_MAX = 1_000;

/**
 * What has become of a seal, as a range's state says: `open` as long as its round may still be decided either way.
 * Undefined when this range has nothing to say about it.
 *
 * It says so for good: rounds are decided in the order of the target's log, each once, and `absorbed` never loses an
 * id. Where the target itself was merged away, it decides nothing any more, and who took it over knows what it had
 * decided.
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
