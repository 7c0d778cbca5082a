import type { Epoch, RangeDescriptor } from './descriptor.ts';

/**
 * A merge of two neighbours: the *source* ends, and the *target* goes on with the keys of both (design §12). How it is
 * done, step by step, and why nothing is lost, is in docs/decisions/0027-merges.md.
 */

/** One attempt at a merge. A target decides on each round once: the merge of one source, or none. */
export interface MergeRound {
  readonly targetId: number;
  readonly round: number;
}

/** A source from its seal on: until the target has decided, nothing of this changes. */
export interface SealedRange {
  readonly descriptor: RangeDescriptor;
  /** Of the seal in its log. */
  readonly index: number;
  /** The last of the source. */
  readonly revision: number;
}

/**
 * Internal: the leader of the range proposes them, each in an entry of its own.
 *
 * `seal`, in the source's log: from here on it serves nothing, for one round of a target. `merge` and `refuseMerge`, in
 * the target's: they decide the round. `unseal`, in the source's: the round was decided against it.
 */
export type MergeCommand =
  /** `epoch`: of the source, as whoever asks for it knows it. */
  | { readonly type: 'seal'; readonly epoch: Epoch; readonly into: MergeRound }
  /** `epoch`: of the target, as it was when the replicas of both were compared. */
  | { readonly type: 'merge'; readonly epoch: Epoch; readonly round: number; readonly source: SealedRange }
  | { readonly type: 'refuseMerge'; readonly round: number }
  | { readonly type: 'unseal'; readonly from: MergeRound };

export type MergeCommandResult =
  | { readonly type: 'seal'; readonly sealed: SealedRange }
  /** `range`: the target, with the keys of both. */
  | { readonly type: 'merge'; readonly range: RangeDescriptor }
  | { readonly type: 'refuseMerge' }
  | { readonly type: 'unseal' };

/** Asks the leader of a source to seal it; answered once that is applied there. Doing it twice is doing it once. */
export interface SealRequest {
  readonly rangeId: number;
  readonly epoch: Epoch;
  readonly into: MergeRound;
}

/** Asks the leader of a source to unseal it. The caller knows that the round was decided against it. */
export interface UnsealRequest {
  readonly rangeId: number;
  readonly from: MergeRound;
}

/**
 * Asks a range for the word on a round that a source is sealed for, whose other drivers are gone: the target's leader, or
 * that of a range that has taken the target over. A round that is open is refused first.
 */
export interface DecideMergeRequest {
  readonly rangeId: number;
  readonly sourceId: number;
  readonly seal: MergeRound;
}

/** What has become of a round, for good: its source is a part of the target now, or goes on by itself. */
export type MergeVerdict = 'merged' | 'refused';

/** Asks a node whether a replica has applied its log up to `index`, so that no crash takes that back. */
export interface SettleRequest {
  readonly rangeId: number;
  readonly replicaId: number;
  readonly index: number;
}

export function isMergeCommand(command: { readonly type: string }): command is MergeCommand {
  switch (command.type) {
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
      return true;
    default:
      return false;
  }
}
