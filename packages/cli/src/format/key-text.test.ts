import { kvRoutingKey, routingKeyText } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { type KeyFormat, readBound, readKey, readPrefix } from './key-text.ts';

const flags = (keyFormat: KeyFormat | undefined) => (keyFormat === undefined ? {} : { keyFormat });

describe('a key on the command line', () => {
  test.each<{ text: string; format?: KeyFormat; bytes: Buffer }>([
    { text: 'orders/ä', bytes: Buffer.from('orders/ä') },
    { text: '0x00fF', bytes: Buffer.of(0, 255) },
    { text: '0x00', format: 'text', bytes: Buffer.from('0x00') },
    { text: '00ff', format: 'hex', bytes: Buffer.of(0, 255) },
    { text: '00ff', bytes: Buffer.from('00ff') },
    { text: 'AP8=', format: 'base64', bytes: Buffer.of(0, 255) },
    { text: 'AP8', format: 'base64', bytes: Buffer.of(0, 255) },
    { text: 'key:orders/ä', bytes: Buffer.from('orders/ä') },
    { text: 'key:lock:orders/', bytes: Buffer.from('lock:orders/') },
    { text: 'lock:orders/', format: 'text', bytes: Buffer.from('lock:orders/') },
    { text: 'locks:orders/', bytes: Buffer.from('locks:orders/') },
    { text: 'key:-', bytes: Buffer.from('-') },
  ])('$text is read as what it says ($format)', ({ text, format, bytes }) => {
    expect(readKey(text, flags(format))).toEqual(kvRoutingKey(bytes));
  });

  test.each<{ text: string; format?: KeyFormat; says: string }>([
    { text: '', says: 'a key must have at least one byte' },
    { text: '0x', says: 'a key must have at least one byte' },
    { text: '0x1', says: 'pairs of hex digits' },
    { text: '0xzz', says: 'pairs of hex digits' },
    { text: 'orders', format: 'hex', says: 'invalid key "orders": expected pairs of hex digits' },
    { text: 'a_b-', format: 'base64', says: 'expected base64' },
    { text: 'AP9', format: 'base64', says: 'expected base64' },
    { text: 'A', format: 'base64', says: 'expected base64' },
    { text: '-', says: 'for the plain key "-", write key:-' },
    { text: 'lease:5', says: 'pairs of hex digits, as in lease:5f3a; for a plain key, write key:lease:5' },
    { text: 'lock:a\\b', says: 'a backslash itself is' },
  ])('"$text" ($format) is refused, with what would be right', ({ text, format, says }) => {
    expect(() => readKey(text, flags(format))).toThrow(says);
  });
});

test('what "ranges ls" prints is read as that bound, and not as the plain key of that name', () => {
  const text = 'lock:orders/';
  expect(routingKeyText(readKey(text, {}))).toBe(text);
  expect(readKey(text, {})[0]).toBe(2);
});

test('a prefix of locks covers the locks whose names begin so', () => {
  const { start, end } = readPrefix('lock@jobs:a', {});
  const lock = (name: string) => readKey(`lock@jobs:${name}`, {});
  for (const name of ['a', 'a/1', 'azz']) {
    expect([start, lock(name), end].sort(Buffer.compare)).toEqual([start, lock(name), end]);
  }
  expect(Buffer.compare(lock('b'), end)).toBeGreaterThanOrEqual(0);
});

test('no bound is read where there may be none', () => {
  expect([readBound('-', {}), readBound(undefined, {})]).toEqual([Buffer.of(), Buffer.of()]);
});
