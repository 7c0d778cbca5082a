import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { decodeCompare, encodeCompare } from '../../../test/support/part-codecs.ts';
import type { Compare } from '../kv-types.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const COMPARE: Compare = { lock: { namespace: 'n', name: Buffer.from([0, 255]) }, version: 2 ** 40 };
const packed = (): Uint8Array => packVersioned(1, encodeCompare(COMPARE));

describe('a comparison of a lock', () => {
  test('is read as it was written', () => {
    expect(decodeCompare(unpackVersioned(1, packed(), 'a comparison'))).toEqual(COMPARE);
  });

  test('is what it was: change it only together with its version', () => {
    expect(Buffer.from(packed()).toString('hex')).toBe('019400a16ec40200ffcb4270000000000000');
  });

  test.each([
    { name: 'no version', raw: [0, 'n', Buffer.from('l')] },
    { name: 'a negative version', raw: [0, 'n', Buffer.from('l'), -1] },
    { name: 'a name that is text', raw: [0, 'n', 'l', 1] },
    { name: 'a namespace that is bytes', raw: [0, Buffer.from('n'), Buffer.from('l'), 1] },
    { name: 'another beginning', raw: [1, 'n', Buffer.from('l'), 1] },
  ])('with $name is INVALID_ARGUMENT', ({ raw }) => {
    expect(() => decodeCompare(raw)).toThrow(ServiceError);
  });
});
