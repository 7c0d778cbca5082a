import { ServiceError } from '@remora/base';
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { pack } from './pack.ts';
import { unpackVersioned } from './wire.ts';

const reference = new Packr({
  useRecords: false,
  variableMapSize: true,
  moreTypes: false,
  structuredClone: false,
  int64AsType: 'bigint',
});

const leaf = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true }),
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.string({ maxLength: 70 }),
  fc.boolean(),
  fc.constant(null),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('value'), { maxLength: 20 })),
}));

describe('the encoder', () => {
  test('writes what msgpackr writes', () => {
    fc.assert(
      fc.property(value, (given) => {
        const expected = Buffer.concat([Buffer.from([7]), reference.pack(given)]);
        expect(pack(7, given).equals(expected)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  const sizes = [0, 15, 16, 31, 32, 63, 64, 65, 85, 86, 255, 256, 65_535, 65_536, 200_000];
  test.each(sizes)('text, bytes and lists of %i survive', (size) => {
    const given = [
      'x'.repeat(size),
      'é'.repeat(size),
      Buffer.alloc(size, 5),
      new Array(size).fill(1),
      { name: 'x'.repeat(size) },
    ];
    expect(unpackVersioned(1, pack(1, given), 'test')).toEqual(given);
  });

  test('a buffer that grew for a large value is as good as new afterwards', () => {
    const large = Buffer.alloc(6 << 20, 1);
    expect(pack(1, [large]).length).toBe(large.length + 7);
    expect(pack(1, ['x'])).toEqual(Buffer.from([1, 0x91, 0xa1, 0x78]));
  });

  test('refuses what has no place in a message', () => {
    expect(() => pack(1, [() => {}])).toThrow(ServiceError);
  });
});
