import type { Bytes } from '@remora/base';
import type { RangeDescriptor } from './descriptor.ts';

/** Why a range is to be split: `admin` is what people asked for. */
export type SplitCause = 'size' | 'load' | 'admin';

/**
 * The leader of a range asks for the ids of the range that is to be split off. Asked again for the same range at the same
 * epoch, the answer is the same: so whoever leads later may ask again, and no id is used for two things.
 */
export interface AskSplitRequest {
  /** As the leader has it: with its epoch the split has to be proposed. */
  readonly range: RangeDescriptor;
  /** A routing key; undefined: in the middle, wherever that will be. */
  readonly at: Bytes | undefined;
  readonly cause: SplitCause;
}

/** What the command `split` needs. */
export interface AskSplitReply {
  readonly childId: number;
  /** One for each replica of the range, on the same nodes. */
  readonly replicas: readonly { readonly nodeId: number; readonly replicaId: number }[];
}
