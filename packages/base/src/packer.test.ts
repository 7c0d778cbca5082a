import { expect, test } from 'vitest';
import { Packer } from './packer.ts';

const MIB = 1 << 20;

function packed(packer: Packer, bytes: number, expected: number): Buffer {
  packer.begin(0, expected);
  packer.value([Buffer.alloc(bytes, 1), 'end']);
  return packer.take();
}

test.each([
  { name: 'a small message', bytes: 10, expected: 30 },
  { name: 'a large message whose size was known', bytes: 6 * MIB, expected: 6 * MIB + 100 },
  { name: 'a large message whose size was not known', bytes: 6 * MIB, expected: 0 },
  { name: 'a message that is much smaller than expected', bytes: 10, expected: 6 * MIB },
  { name: 'a message that is much larger than expected', bytes: 11 * MIB, expected: 5 * MIB },
])('$name belongs to who takes it, and holds little more memory than its bytes', ({ bytes, expected }) => {
  const plain = new Packer();
  plain.begin();
  plain.value([Buffer.alloc(bytes, 1), 'end']);
  const right = plain.copy();
  const packer = new Packer();
  const first = packed(packer, bytes, expected);
  packed(packer, bytes, expected).fill(0);
  packer.begin();
  packer.value(Buffer.alloc(bytes, 7));
  expect(first.equals(right)).toBe(true);
  if (bytes > MIB) expect(first.buffer.byteLength).toBeLessThan(1.34 * first.length);
});

test('a large message of known size is not copied', () => {
  const packer = new Packer();
  packer.begin(0, 6 * MIB);
  packer.value(Buffer.alloc(6 * MIB - 100));
  const place = packer.view().buffer;
  expect(packer.take().buffer).toBe(place);
});
