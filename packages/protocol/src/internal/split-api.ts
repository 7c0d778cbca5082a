import { bytes, field, list, optional, struct, uint, words } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { RangeDescriptor } from './descriptor.ts';

const SplitCauseKind = words('cause of a split', ['size', 'load', 'admin']);
/** Why a range is split: `admin` means that an operator asked for it. */
export type SplitCause = Infer<typeof SplitCauseKind>;

/** A replica of the child of a split. */
export const ChildReplica = struct('replica of the child', {
  nodeId: field(uint, 'The node that holds it.'),
  replicaId: field(uint, 'The id of the replica.'),
});

/**
 * The leader of a range asks for the ids of the range that is split off. The answer to the same question for the same
 * epoch is the same, so a later leader may ask again, and no id is used for two ranges.
 */
export const AskSplitRequest = struct('request for split ids', {
  range: field(RangeDescriptor, 'The range as its leader has it. The split must be proposed with its epoch.'),
  at: field(optional(bytes), 'A routing key; absent: the middle, wherever that will be.'),
  cause: field(SplitCauseKind, 'Why the range is split.'),
});
export interface AskSplitRequest extends Infer<typeof AskSplitRequest> {}

/** What the command `split` needs. */
export const AskSplitReply = struct('split ids', {
  childId: field(uint, 'The id of the new range.'),
  replicas: field(list(ChildReplica), 'One for each replica of the range, on the same nodes.'),
});
export interface AskSplitReply extends Infer<typeof AskSplitReply> {}
