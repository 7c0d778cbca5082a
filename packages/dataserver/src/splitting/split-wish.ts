import type { Bytes } from '@remora/base';
import type { SplitCause } from '@remora/protocol';

/** Of the plain keys there are now: as `RangeState` counts them. */
export interface LiveKeys {
  readonly keys: number;
  readonly bytes: number;
}

/** A routing key at which a range may be cut, and about what lies behind it. */
export interface SplitPlace {
  readonly at: Bytes;
  readonly live: LiveKeys;
}

/** Why a range is to be split, and where as far as that is known: without a key, in the middle. */
export interface SplitWish extends Partial<SplitPlace> {
  readonly cause: SplitCause;
}
