import { expect, test } from 'vitest';
import { printable } from './bytes-text.ts';

test.each([
  { name: 'text', bytes: Buffer.from('späte Arbeit'), text: 'späte Arbeit' },
  { name: 'what would move the cursor', bytes: Buffer.from('a\nb\u001b[2J'), text: 'a\\x0ab\\x1b[2J' },
  { name: 'a control of the second set', bytes: Buffer.from('a\u009b2J'), text: 'a\\xc2\\x9b2J' },
  { name: 'what ends a line of Unicode', bytes: Buffer.from('a\u2028b'), text: 'a\\xe2\\x80\\xa8b' },
  { name: 'bytes that are no text', bytes: Buffer.from([0x61, 0xff, 0x00]), text: 'a\\xff\\x00' },
])('$name is shown in one line, byte by byte where it is none', ({ bytes, text }) => {
  expect(printable(bytes)).toBe(text);
});
