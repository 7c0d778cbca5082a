import { describe, expect, test } from 'vitest';
import {
  byteLength,
  compareBytes,
  fromBytes,
  identityOf,
  isPathSafe,
  percentDecoded,
  percentEncoded,
  toBytes,
} from '../src/logic/bytes.ts';

const BINARY = { base64: 'AAH/' };

describe('bytes', () => {
  test.each(['', 'orders/42', 'ü😀', BINARY, '__proto__', '..', 'a\u0000b'])('%j survives each form', (value) => {
    expect(fromBytes(toBytes(value))).toEqual(value);
    expect(percentDecoded(percentEncoded(value))).toEqual(value);
    expect(byteLength(value)).toBe(toBytes(value).length);
  });

  test('a percent-encoded name has only letters that no path and no query gives a meaning', () => {
    expect(percentEncoded('a/b?c=d&e#f%g h.i')).toBe('a%2Fb%3Fc%3Dd%26e%23f%25g%20h%2Ei');
    expect(percentEncoded(BINARY)).toBe('%00%01%FF');
  });

  test('a text and the base64 with the same letters are not the same', () => {
    expect(identityOf('AAH/')).not.toBe(identityOf(BINARY));
  });

  test.each(['%', '%4', '%zz', 'a%'])('%s is not decodable', (text) => {
    expect(percentDecoded(text)).toBeUndefined();
  });

  test.each([
    { name: '.', safe: false },
    { name: '..', safe: false },
    { name: '', safe: false },
    { name: '...', safe: true },
    { name: '__proto__', safe: true },
  ])('$name as a segment of a path: $safe', ({ name, safe }) => {
    expect(isPathSafe(name)).toBe(safe);
  });

  test('keys are ordered byte by byte', () => {
    const keys = ['b', 'a/b', 'a', { base64: '/w==' }, 'é'];
    expect(keys.toSorted(compareBytes)).toEqual(['a', 'a/b', 'b', 'é', { base64: '/w==' }]);
  });
});
