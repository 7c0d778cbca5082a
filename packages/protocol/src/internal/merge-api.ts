import { field, struct, uint, union, variant, words } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { Epoch, RangeDescriptor } from './descriptor.ts';

/**
 * A merge of two neighbours: the *source* ends, and the *target* goes on with the keys of both (design §12). How it is
 * done, step by step, and why nothing is lost, is in docs/decisions/0027-merges.md.
 */

/** One attempt at a merge. A target decides on each round once: the merge of one source, or none. */
export const MergeRound = struct('round of a merge', {
  targetId: field(uint, 'The range that stays.'),
  round: field(uint, 'The number of the attempt.'),
});
export interface MergeRound extends Infer<typeof MergeRound> {}

/** A source from its seal on: until the target has decided, nothing of this changes. */
export const SealedRange = struct('sealed range', {
  descriptor: field(RangeDescriptor, 'The range.'),
  index: field(uint, 'The index of the seal in its log.'),
  revision: field(uint, 'The last revision of the source.'),
});
export interface SealedRange extends Infer<typeof SealedRange> {}

/** Internal: the leader of the range proposes them, each in an entry of its own. */
export const MERGE_COMMANDS = {
  /** In the source's log: from here on it serves nothing, for one round of a target. */
  seal: variant(15, {
    epoch: field(Epoch, 'The epoch of the source that the caller knows.'),
    into: field(MergeRound, 'The round that it is sealed for.'),
  }),
  /** In the target's log: decides the round. */
  merge: variant(16, {
    epoch: field(Epoch, 'The epoch of the target when the replicas of both were compared.'),
    round: field(uint, 'The round that it decides.'),
    source: field(SealedRange, 'The range that ends.'),
  }),
  /** In the target's log: decides the round against the merge. */
  refuseMerge: variant(17, { round: field(uint, 'The round that it decides.') }),
  /** In the source's log: the round was decided against it. */
  unseal: variant(18, { from: field(MergeRound, 'The round that it was sealed for.') }),
};
export const MergeCommand = union('command of a merge', 'type', MERGE_COMMANDS);
export type MergeCommand = Infer<typeof MergeCommand>;

export const MERGE_RESULTS = {
  seal: variant(15, { sealed: field(SealedRange, 'The range as it was sealed.') }),
  merge: variant(16, { range: field(RangeDescriptor, 'The target, with the keys of both.') }),
  refuseMerge: variant(17, {}),
  unseal: variant(18, {}),
};
export const MergeCommandResult = union('result of a merge', 'type', MERGE_RESULTS);
export type MergeCommandResult = Infer<typeof MergeCommandResult>;

/** Asks the leader of a source to seal it; answered once that is applied there. Doing it twice is doing it once. */
export const SealRequest = struct('seal request', {
  rangeId: field(uint, 'The source.'),
  epoch: field(Epoch, 'Its epoch, as the caller knows it.'),
  into: field(MergeRound, 'The round that it is sealed for.'),
});
export interface SealRequest extends Infer<typeof SealRequest> {}

/** Asks the leader of a source to unseal it. The caller knows that the round was decided against it. */
export const UnsealRequest = struct('unseal request', {
  rangeId: field(uint, 'The source.'),
  from: field(MergeRound, 'The round that it was sealed for.'),
});
export interface UnsealRequest extends Infer<typeof UnsealRequest> {}

/**
 * Asks a range for the decision on a round that a source is sealed for, whose other drivers are gone: the target's
 * leader, or that of a range that has taken the target over. A round that is open is refused first.
 */
export const DecideMergeRequest = struct('question for the decision on a merge', {
  rangeId: field(uint, 'The range that is asked.'),
  sourceId: field(uint, 'The source.'),
  seal: field(MergeRound, 'The round that it is sealed for.'),
});
export interface DecideMergeRequest extends Infer<typeof DecideMergeRequest> {}

/** The final decision on a round: its source is a part of the target now, or continues as a range of its own. */
export const MergeVerdict = words('verdict on a merge', ['merged', 'refused']);
export type MergeVerdict = Infer<typeof MergeVerdict>;

/** Asks a node whether a replica has applied its log up to `index`, so that no crash takes that back. */
export const SettleRequest = struct('question whether a replica has settled', {
  rangeId: field(uint, 'The range.'),
  replicaId: field(uint, 'The replica of the node.'),
  index: field(uint, 'The index that it must have applied.'),
});
export interface SettleRequest extends Infer<typeof SettleRequest> {}

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
