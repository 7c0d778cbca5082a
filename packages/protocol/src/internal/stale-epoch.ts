import { ServiceError } from '@remora/base';
import { openCodec } from '../schema/codec.ts';
import { list } from '../schema/kinds.ts';
import { RangeDescriptor } from './descriptor.ts';

const descriptors = openCodec(list(RangeDescriptor));

/** The most descriptors in one refusal: a caller that needs more asks the master. */
const DESCRIPTORS_MAX = 8;

/**
 * Refuses a request with an old epoch, or with keys outside the range: the range has been split or merged since the
 * caller looked. `current` are the present descriptors, the requested range's first; they are part of the error.
 */
export function staleEpoch(current: readonly RangeDescriptor[]): ServiceError {
  const ranges = descriptors.encode(current.slice(0, DESCRIPTORS_MAX));
  return new ServiceError('STALE_EPOCH', 'the range has been split or merged since', { details: { ranges } });
}

/** The descriptors in a `STALE_EPOCH` error; none if it has none that can be read. */
export function currentRanges({ code, details }: ServiceError): readonly RangeDescriptor[] {
  if (code !== 'STALE_EPOCH' || details?.ranges === undefined) return [];
  try {
    return descriptors.decode(details.ranges);
  } catch (error) {
    if (error instanceof ServiceError) return [];
    throw error;
  }
}
