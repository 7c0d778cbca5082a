import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { packPlain } from './pack.ts';
import { endOfText, UnpackError, unpack, unpackMeasured } from './unpack.ts';

const general = new Packr({ useRecords: false, moreTypes: true, structuredClone: true });

const leaf = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true }).filter((number) => !Object.is(number, -0)),
  fc.string({ unit: 'grapheme', maxLength: 100 }),
  fc.constant('\ufffd'),
  fc.boolean(),
  fc.constant(null),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('value'), { maxLength: 40 }),
    fc.dictionary(fc.string({ maxLength: 12 }), tie('value'), { noNullPrototype: true }),
  ),
}));

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('the decoder', () => {
  test('reads what the encoder and msgpackr write', () => {
    fc.assert(
      fc.property(value, (given) => {
        expect(unpack(packPlain(given), 0)).toEqual(given);
        expect(unpack(general.pack(given), 0)).toEqual(given);
      }),
    );
  });

  test.each([
    { name: 'every unsigned width', bytes: '95 7f ccff cdffff ceffffffff cf8000000000000000' },
    { name: 'every signed width', bytes: '95 ff d080 d18000 d280000000 d38000000000000000' },
    { name: 'both widths of fractions', bytes: '92 ca3fc00000 cb3ff8000000000000' },
    { name: 'every width of text and bytes', bytes: '96 d90141 da000141 db0000000141 c40101 c5000101 c60000000101' },
    { name: 'every width of lists and maps', bytes: '94 dc000101 dd0000000101 de0001a16101 df00000001a16101' },
  ])('reads $name as msgpackr does', ({ bytes }) => {
    expect(unpack(hex(bytes), 0)).toEqual(general.unpack(hex(bytes)));
  });

  test.each([
    { name: 'nothing', bytes: '' },
    { name: 'bytes behind its end', bytes: '01 01' },
    { name: 'a list that announces more than there is', bytes: 'dd ffffffff 01' },
    { name: 'a map that announces more than there is', bytes: 'df ffffffff a161 01' },
    { name: 'lists that each announce what is left', bytes: `${'dd00000300'.repeat(40)} ${'01'.repeat(600)}` },
    { name: 'text that is cut short', bytes: 'db ffffffff 41' },
    { name: 'bytes that are cut short', bytes: 'c6 ffffffff 41' },
    { name: 'a number that is cut short', bytes: 'cb 0000' },
    { name: 'nesting without end', bytes: '91'.repeat(100_000) },
    { name: 'a map whose field has no name', bytes: '81 01 01' },
    { name: 'text that is not UTF-8', bytes: 'a2 c0af' },
    { name: 'half of a surrogate pair', bytes: 'a3 eda080' },
    { name: 'the byte that is never used', bytes: 'c1' },
    { name: 'an undefined of extension 0', bytes: 'd4 00 00' },
    { name: 'a record that defines itself', bytes: '92 d47240 91a16101 40 02' },
    { name: 'a date', bytes: 'd6 ff 00000000' },
    { name: 'a set', bytes: 'd4 73 00 92 01 02' },
    { name: 'a pattern', bytes: 'd4 78 00 92 a2285b a0' },
    { name: 'an error', bytes: 'd4 65 00 93 a5 4572726f72 a178 c0' },
    { name: 'a reference', bytes: 'd6 70 00000000' },
    { name: 'an array of another type', bytes: 'c7 05 74 06 00000000' },
    { name: 'text that lies elsewhere', bytes: 'd6 62 ffffff00 c1 01' },
  ])('refuses $name', ({ bytes }) => {
    expect(() => unpack(hex(bytes), 0)).toThrow(UnpackError);
  });

  test('a field named __proto__ is a field as any other', () => {
    const read = unpack(packPlain(JSON.parse('{"__proto__":1,"b":2}')), 0) as object;
    expect(Object.entries(read)).toEqual([
      ['__proto__', 1],
      ['b', 2],
    ]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });

  test('what one input left behind does not reach the next', () => {
    expect(() => unpack(hex('92 d47240 91a161 01'), 0)).toThrow(UnpackError);
    expect(unpack(hex('91 40'), 0)).toEqual([0x40]);
  });

  test('of a list it is told how many bytes each item takes, and of nothing else, nor when that is not asked for', () => {
    const items = [5, 'text', [1, [2, 3]], Buffer.alloc(300), null];
    const sizes = items.map((item) => packPlain(item).length);
    expect(unpackMeasured(packPlain(items), 0)).toEqual({ value: items, sizes });
    expect(() => unpackMeasured(hex('92 01'), 0)).toThrow(UnpackError);
    expect(unpackMeasured(packPlain({ of: items }), 0).sizes).toEqual([]);
    const { sizes: before } = unpackMeasured(packPlain([1]), 0);
    unpack(packPlain(items), 0);
    expect(before).toEqual([1]);
  });

  test('the end of text is found without reading it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), fc.nat(3), (text, before) => {
        const bytes = Buffer.concat([Buffer.alloc(before), packPlain(text), Buffer.of(1, 2, 3)]);
        expect(endOfText(bytes, before)).toBe(bytes.length - 3);
      }),
    );
    expect(endOfText(packPlain('x'.repeat(70_000)), 0)).toBe(70_005);
    for (const other of [0, -1, null, [], Buffer.of(), true]) {
      expect(() => endOfText(packPlain(other), 0)).toThrow(UnpackError);
    }
    expect(() => endOfText(Buffer.of(), 0)).toThrow(UnpackError);
  });

  test('bytes are slices of the input', () => {
    const input = hex('c403 010203');
    expect((unpack(input, 0) as Buffer).buffer).toBe(input.buffer);
  });

  test('no bytes are no slice of it: whoever keeps them does not keep it', () => {
    const input = hex('92 c400 c402 0102');
    const [none, some] = unpack(input, 0) as [Buffer, Buffer];
    expect([none.length, none.buffer === input.buffer, some.buffer === input.buffer]).toEqual([0, false, true]);
  });
});
