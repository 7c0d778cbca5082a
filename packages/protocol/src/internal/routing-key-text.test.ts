import { lockPrefix } from '@remora/lock';
import { describe, expect, test } from 'vitest';
import { readRoutingKey, routingKeyText } from './routing-key-text.ts';

const lock = (namespace: string, name: string) => lockPrefix({ namespace, name: Buffer.from(name) });

test.each([
  { key: Buffer.of(), text: '-' },
  { key: Buffer.from('\x03orders/ä'), text: 'key:orders/ä' },
  { key: Buffer.of(3), text: 'key:' },
  { key: Buffer.of(3, 0x61, 0x5c, 0xff, 0), text: 'key:a\\x5c\\xff\\x00' },
  { key: Buffer.from('\x03a\u202eb'), text: 'key:a\\xe2\\x80\\xaeb' },
  { key: lock('default', 'orders/'), text: 'lock:orders/' },
  { key: lock('default', 'a:b'), text: 'lock:a:b' },
  { key: lock('jobs', 'orders/42'), text: 'lock@jobs:orders/42' },
  { key: lock('a:b', 'c\0'), text: 'lock@a\\x3ab:c\\x00' },
  { key: lock('', 'x'), text: 'lock@:x' },
  { key: Buffer.of(2), text: 'lock:' },
  { key: Buffer.from('\x02\x04jobs'), text: 'lock@jobs:' },
  { key: Buffer.from('\x02\x04jobsor'), text: 'raw:02046a6f62736f72' },
  { key: Buffer.concat([lock('jobs', 'a'), Buffer.of(1)]), text: 'raw:02046a6f6273' + '61000101' },
  { key: Buffer.of(1, 0xab, 0xcd), text: 'lease:abcd' },
  { key: Buffer.alloc(11, 1), text: 'raw:0101010101010101010101' },
  { key: Buffer.of(9, 1), text: 'raw:0901' },
])('a routing key is shown as $text', ({ key, text }) => {
  expect(routingKeyText(key)).toBe(text);
  expect(readRoutingKey(text)).toMatchObject({ ok: true, key });
});

describe('text that is like a bound, and is none, is refused with what would be right', () => {
  test.each([
    { text: 'lease:5', expected: 'pairs of hex digits' },
    { text: 'lease:112233445566778899', expected: 'up to 8 pairs' },
    { text: 'raw:', expected: 'pairs of hex digits' },
    { text: 'raw:zz', expected: 'pairs of hex digits' },
    { text: 'key:a\\b', expected: 'a backslash itself is' },
    { text: 'lock@\\xff:a', expected: 'a namespace of text' },
    { text: `lock@${'n'.repeat(256)}:a`, expected: 'at most 255 bytes' },
    { text: `lock:${'n'.repeat(1_025)}`, expected: 'at most 1024 bytes' },
  ])('$text', ({ text, expected }) => {
    expect(readRoutingKey(text)).toEqual({ ok: false, expected: expect.stringContaining(expected) });
  });
});
