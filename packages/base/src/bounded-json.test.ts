import { expect, test } from 'vitest';
import { JSON_DEPTH_MAX, parseBoundedJson } from './bounded-json.ts';

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth);

test('nesting is refused one level beyond the bound, of lists and objects alike', () => {
  expect(() => parseBoundedJson(nested(JSON_DEPTH_MAX))).not.toThrow();
  expect(() => parseBoundedJson(nested(JSON_DEPTH_MAX + 1))).toThrow(/nested more than 32 levels/);
  expect(() => parseBoundedJson('{"a":'.repeat(33))).toThrow(/nested more than 32 levels/);
  expect(() => parseBoundedJson('[{"a":[]}]', 2)).toThrow(/nested more than 2 levels/);
});

test('what is closed again counts no more, and brackets in strings do not count', () => {
  const brackets = '[{'.repeat(100);
  const value = [...Array.from({ length: 100 }, () => [[]]), brackets, `\\"${brackets}`, `"${brackets}`];
  expect(parseBoundedJson(JSON.stringify(value), 3)).toEqual(value);
  expect(parseBoundedJson(`{"${brackets}":"\\\\"}`)).toEqual({ [brackets]: '\\' });
});

test('depth beyond the bound is found before what is wrong behind it, and a string without an end is no JSON', () => {
  expect(() => parseBoundedJson('['.repeat(100_000))).toThrow(/nested more than/);
  for (const text of ['"', '"\\', '["a', ']', '{"a":1}]']) expect(() => parseBoundedJson(text)).toThrow(SyntaxError);
});
