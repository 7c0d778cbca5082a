import { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { RANGE } from '../../test/support/samples.ts';
import { packVersioned, unpackVersioned } from './codec/wire.ts';
import { currentRanges, staleEpoch } from './stale-epoch.ts';

function overTheWire({ code, message, details }: ServiceError): ServiceError {
  const travelled = unpackVersioned(1, packVersioned(1, details), 'details') as Record<string, unknown>;
  return new ServiceError(code, message, { details: travelled });
}

test('a refusal brings the descriptors of today, and no more than a few', () => {
  const ranges = Array.from({ length: 20 }, (_, i) => ({ ...RANGE, rangeId: i + 2 }));
  const brought = currentRanges(overTheWire(staleEpoch(ranges)));
  expect(brought.map(({ rangeId }) => rangeId)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
  expect(brought[0]?.epoch).toEqual(RANGE.epoch);
});

test.each([
  { name: 'another code', error: new ServiceError('NOT_LEADER', '', { details: { ...staleEpoch([RANGE]).details } }) },
  { name: 'no details', error: new ServiceError('STALE_EPOCH', '') },
  { name: 'details of another kind', error: new ServiceError('STALE_EPOCH', '', { details: { ranges: [[1]] } }) },
])('an error with $name brings none', ({ error }) => {
  expect(currentRanges(error)).toEqual([]);
});
