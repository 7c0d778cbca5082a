import { expect, test } from 'vitest';
import { SeededRandom } from '../random.ts';
import { crc32, crc32ByTable } from './crc32.ts';

test('has the same checksum with and without zlib', () => {
  const random = new SeededRandom(5);
  for (let i = 0; i < 50; i++) {
    const [a, b] = [random.bytes(i), random.bytes(3 * i)];
    expect(crc32ByTable(b, crc32ByTable(a))).toBe(crc32(b, crc32(a)));
    expect(crc32ByTable(b, crc32ByTable(a))).toBe(crc32(Buffer.concat([a, b])));
  }
});

test.each([
  ['of its own', Buffer.alloc(0)],
  ['over an empty ArrayBuffer', new Uint8Array(new ArrayBuffer(0))],
  ['within another', Buffer.alloc(5).subarray(5)],
])('a checksum goes on over an empty piece %s', (_, empty) => {
  expect(crc32(empty, 123)).toBe(123);
  expect(crc32ByTable(empty, 123)).toBe(123);
});
