import { describe, expect, test } from 'vitest';
import { type KeyFormat, readKey } from './key-text.ts';

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
  ])('$text is read as what it says ($format)', ({ text, format, bytes }) => {
    expect(readKey(text, flags(format))).toEqual(bytes);
  });

  test.each<{ text: string; format?: KeyFormat; says: string }>([
    { text: '', says: 'a key has at least one byte' },
    { text: '0x', says: 'a key has at least one byte' },
    { text: '0x1', says: 'pairs of hex digits' },
    { text: '0xzz', says: 'pairs of hex digits' },
    { text: 'orders', format: 'hex', says: '"orders" is not right' },
    { text: 'a_b-', format: 'base64', says: 'expected base64' },
    { text: 'AP9', format: 'base64', says: 'expected base64' },
    { text: 'A', format: 'base64', says: 'expected base64' },
  ])('"$text" ($format) is refused, with what would be right', ({ text, format, says }) => {
    expect(() => readKey(text, flags(format))).toThrow(says);
  });
});
