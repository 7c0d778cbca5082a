import type { ServiceError } from '@remora/base';
import { type RangeDescriptor, staleEpoch } from '@remora/protocol';
import type { RangeFields } from '../../state/range-fields.ts';

/** The largest number of descriptors sent to callers that ask for keys which have left. */
export const SPLIT_OFF_MAX = 4;

export interface SplitOffRangesDeps {
  readonly state: Pick<RangeFields, 'descriptor'>;
  /** The ranges of this node that have the keys behind a range. */
  readonly following: (range: RangeDescriptor) => readonly RangeDescriptor[];
}

/**
 * The ranges that were lately split off a range: a hint for callers that look for keys which have left. It is not kept
 * over a restart; usually this node has those ranges.
 */
export class SplitOffRanges {
  readonly #deps: SplitOffRangesDeps;
  #known: readonly RangeDescriptor[] | undefined;

  constructor(deps: SplitOffRangesDeps) {
    this.#deps = deps;
  }

  add(child: RangeDescriptor): void {
    this.#known = [child, ...(this.#known ?? [])].slice(0, SPLIT_OFF_MAX);
  }

  /** Returns the error for a request with an old epoch, or with keys that are not the range's. */
  staleEpoch(): ServiceError {
    const { state, following } = this.#deps;
    this.#known ??= following(state.descriptor);
    return staleEpoch([state.descriptor, ...this.#known]);
  }
}
