// Why msgpackr packs rare messages here and never unpacks any (docs/decisions/0008). If one of these cases changes with
// a new version of it, the decision can be looked at again.
import { Packer } from '@remora/base';
import fc from 'fast-check';
import { Packr, Unpackr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { packBody, packRow } from '../src/internal/codec/library-pack.ts';
import { packPlain } from '../src/internal/codec/pack.ts';
import { UnpackError, unpack } from '../src/internal/codec/unpack.ts';
import { codecOf } from '../src/schema/codec.ts';
import { arbitraryOf } from './support/arbitrary.ts';
import { MESSAGES } from './support/messages.ts';

const OFF = { useRecords: false, moreTypes: false, structuredClone: false, int64AsType: 'bigint' } as const;
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

function packed(value: unknown): Buffer {
  const out = new Packer();
  out.begin();
  out.value(value);
  return out.copy();
}

test.each(MESSAGES)('the library writes $name as our packer does (LP1)', ({ kind }) => {
  const { encode } = codecOf(kind, 'open');
  fc.assert(
    fc.property(arbitraryOf(kind), (value) => {
      const body = encode(value);
      expect(packed(packBody(body)).equals(packPlain(body))).toBe(true);
      expect(packRow([3, body]).equals(packPlain([3, body]))).toBe(true);
    }),
    { numRuns: 30 },
  );
});

describe('with records and extensions off, the library decodes what no reader here may take', () => {
  test.each([
    { name: 'a record that defines itself', bytes: '92 d47240 91a16101 40 02' },
    { name: 'a date', bytes: 'd6 ff 00000000' },
    { name: 'a set', bytes: 'd4 73 00 92 01 02' },
    { name: 'an error', bytes: 'd4 65 00 93 a5 4572726f72 a178 c0' },
    { name: 'an array of another type', bytes: 'c7 05 74 06 00000000' },
    { name: 'an undefined of extension 0', bytes: 'd4 00 00' },
    { name: 'the byte that is never used', bytes: 'c1' },
    { name: 'text that is not UTF-8', bytes: 'a2 c0af' },
    { name: 'half of a surrogate pair', bytes: 'a3 eda080' },
    { name: 'a map whose field has no name', bytes: '81 01 01' },
  ])('$name', ({ bytes }) => {
    expect(() => new Unpackr(OFF).unpack(hex(bytes))).not.toThrow();
    expect(() => unpack(hex(bytes), 0)).toThrow(UnpackError);
  });

  test('a field that is called __proto__ gets another name', () => {
    const map = packPlain(JSON.parse('{"__proto__":1}'));
    expect(Object.keys(new Unpackr(OFF).unpack(map))).toEqual(['__proto_']);
    expect(Object.keys(unpack(map, 0) as object)).toEqual(['__proto__']);
  });
});

describe('what the library would write as no reader takes it, our packer writes (LP2)', () => {
  test.each([
    { name: 'half of a surrogate pair', value: ['a\ud800'] },
    { name: 'undefined', value: [undefined] },
    { name: 'half of a surrogate pair in a name', value: [{ 'a\ud800': 1 }] },
  ])('$name', ({ value }) => {
    expect(() => unpack(new Packr({ ...OFF, variableMapSize: true }).pack(value), 0)).toThrow(UnpackError);
    expect(packed(packBody(value))).toEqual(packPlain(value));
    expect(packRow(value)).toEqual(packPlain(value));
    expect(() => unpack(packRow(value), 0)).not.toThrow();
  });
});
