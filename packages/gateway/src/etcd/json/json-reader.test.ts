import { describe, expect, test } from 'vitest';
import { JsonNumber, type JsonValue, readJsonValue, readJsonValues } from './json-reader.ts';

/** As the parser of the language gives it. */
function plain(value: JsonValue | undefined): unknown {
  if (value instanceof JsonNumber) return Number(value.text);
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, field]) => [name, plain(field)]));
  return value;
}

test.each([
  ...['null', 'true', 'false', '0', '-1.5e3', '""', '[]', '{}', ' [ 1 , "a" , { "b" : [ null ] } ] '],
  ...['"\\u00e9\\n\\"\\\\ \\ud83d\\ude00"', '{"a":{"b":{"c":[1,2,{"d":"}"}]}}}'],
])('%s is read as the language reads it', (text) => {
  expect(plain(readJsonValue(text))).toEqual(JSON.parse(text));
});

test('a number keeps all of its digits, and the last field of a name counts (JR1)', () => {
  const value = readJsonValue('{"ID":1,"ID":7587862094123456789}') as ReadonlyMap<string, JsonNumber>;
  expect(value.get('ID')?.text).toBe('7587862094123456789');
});

test('a string of any length is read, and its escapes are those of JSON (JR2)', () => {
  const long = 'a"\\\n'.repeat(3_000_000);
  expect(readJsonValue(JSON.stringify(long)) === long).toBe(true);
  expect(readJsonValues('"\\\\" "\\""')).toEqual(['\\', '"']);
});

test('values follow each other, with space or without', () => {
  expect(readJsonValues('{"a":1}{"a":2} \n 3 "x"').map(plain)).toEqual([{ a: 1 }, { a: 2 }, 3, 'x']);
  expect(readJsonValues('  ')).toEqual([]);
  expect(readJsonValue('{} rest that nobody reads')).toEqual(new Map());
});

describe('what is no JSON is refused with its position', () => {
  test.each([
    ['nojson', 'expected a value at position 0, found "n"'],
    ['{"a":1', 'expected a comma or the end of the object at position 6, found the end'],
    ['{"a" 1}', 'expected a colon at position 5'],
    ['{a:1}', 'expected a name in quotes at position 1'],
    ['[1 2]', 'expected a comma or the end of the list at position 3'],
    ['[1,]', 'expected a value at position 3'],
    ['"abc', 'the string at position 0 has no end'],
    ['"\\x"', 'wrong escape'],
    ['"\u0001"', 'control character'],
    ['0 x', 'expected a value at position 2'],
    ['{"a":', 'found the end'],
  ])('%s', (text, message) => {
    expect(() => readJsonValues(text)).toThrow(SyntaxError);
    expect(() => readJsonValues(text)).toThrow(message);
  });

  test('values without end (JR2)', () => {
    const list = (items: number): string => `[${Array.from({ length: items }, () => '{}')}]`;
    expect(() => readJsonValue(list(99_999))).not.toThrow();
    expect(() => readJsonValue(list(100_000))).toThrow('more than 100000 values');
  });

  test('nesting without end (JR2)', () => {
    expect(() => readJsonValue('['.repeat(64) + ']'.repeat(64))).not.toThrow();
    expect(() => readJsonValue('['.repeat(100_000))).toThrow('nested more than 64 levels');
  });
});
