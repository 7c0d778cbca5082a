import { InvariantError } from '@remora/base';
import type { OtherRanges } from '../../src/range/reshape/other-ranges.ts';

/** Where one range has all keys: it has nobody to talk to. For tests. */
export const NO_OTHER_RANGES: OtherRanges = {
  command({ type }): never {
    throw new InvariantError(`${type}: there is no other range`);
  },
  query({ type }): never {
    throw new InvariantError(`${type}: there is no other range`);
  },
};
