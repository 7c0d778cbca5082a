import { ServiceError } from '@remora/base';
import { openCodec } from '../schema/codec.ts';
import { list } from '../schema/kinds.ts';
import { RangeDescriptor } from './descriptor.ts';

const descriptors = openCodec(list(RangeDescriptor));

/** Most descriptors that go with one refusal: whoever needs more asks the master. */
const DESCRIPTORS_MAX = 8;

/**
 * Refuses a request whose epoch is not the range's, or whose keys are not: the range has been split or merged since the
 * caller looked. `current` are descriptors as they are now, the asked range's first; they travel with the error.
 */
export function staleEpoch(current: readonly RangeDescriptor[]): ServiceError {
  const ranges = descriptors.encode(current.slice(0, DESCRIPTORS_MAX));
  return new ServiceError('STALE_EPOCH', 'the range has been split or merged since', { details: { ranges } });
}

/** The descriptors that a `STALE_EPOCH` brought; none when it brought none that can be read. */
export function currentRanges({ code, details }: ServiceError): readonly RangeDescriptor[] {
  if (code !== 'STALE_EPOCH' || details?.ranges === undefined) return [];
  try {
    return descriptors.decode(details.ranges);
  } catch (error) {
    if (error instanceof ServiceError) return [];
    throw error;
  }
}
