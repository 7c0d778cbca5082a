import type { Bytes } from '@remora/base';
import type { SplitCause } from '@remora/protocol';

/** Counts of the live plain keys, as `RangeState` counts them. */
export interface LiveKeys {
  readonly keys: number;
  readonly bytes: number;
}

/** A routing key at which a range may be cut, and roughly what lies behind it. */
export interface SplitPlace {
  readonly at: Bytes;
  readonly live: LiveKeys;
}

/** Why a range should be split, and where, if that is known. Without a key the range is split in the middle. */
export interface SplitWish extends Partial<SplitPlace> {
  readonly cause: SplitCause;
}
