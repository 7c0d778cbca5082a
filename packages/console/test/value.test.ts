import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hexLine, hexLines, parseHex } from '../src/logic/hex.ts';
import { comparable, formOf, indented, parsedValue, typedValue } from '../src/logic/value.ts';

describe('values', () => {
  test('indented JSON means the same, whatever is in it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (json) => {
        const shown = indented(json);
        if (shown !== undefined) expect(JSON.parse(shown)).toEqual(JSON.parse(json));
      }),
    );
  });

  test('numbers keep all their digits, and keys such as __proto__ stay', () => {
    expect(indented('{"a":12345678901234567890,"__proto__":[],"b":{"c":"x, {y}: \\"z\\""}}')).toBe(
      '{\n  "a": 12345678901234567890,\n  "__proto__": [],\n  "b": {\n    "c": "x, {y}: \\"z\\""\n  }\n}',
    );
  });

  test.each([
    { value: 'hello', form: 'text' },
    { value: '42', form: 'text' },
    { value: '{"a":1}', form: 'json' },
    { value: '{"a":1', form: 'text' },
    { value: { base64: '/w==' }, form: 'hex' },
  ])('$value is shown as $form', ({ value, form }) => {
    expect(formOf(value)).toBe(form);
  });

  test.each(['text', 'hex'] as const)('a value that is typed again as %s is the same', (form) => {
    const value = 'a\nb 😀';
    expect(parsedValue(form, typedValue(form, value))).toEqual({ value });
  });

  test('what is not of a form is a problem', () => {
    expect(parsedValue('json', '{"a":')).toHaveProperty('problem');
    expect(parsedValue('hex', '0')).toHaveProperty('problem');
    expect(parsedValue('hex', 'xy')).toHaveProperty('problem');
    expect(parsedValue('hex', '00 FF')).toEqual({ value: { base64: 'AP8=' } });
  });

  test('values are compared in the form that shows most', () => {
    expect(comparable('{"b":1}')).toBe('{\n  "b": 1\n}');
    expect(comparable({ base64: '/wE=' })).toBe('ff 01');
  });

  test('a dump has sixteen bytes a line', () => {
    const bytes = Uint8Array.from({ length: 20 }, (_, at) => 0x3c + at);
    expect(hexLines(bytes)).toBe(2);
    expect(hexLine(bytes, 0)).toEqual({
      offset: '00000000',
      hex: '3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b',
      ascii: '<=>?@ABCDEFGHIJK',
    });
    expect(hexLine(bytes, 1).ascii).toBe('LMNO');
    expect(parseHex(hexLine(bytes, 0).hex)).toEqual(bytes.subarray(0, 16));
  });
});
