import { expect, test } from 'vitest';
import { printable, printableText, printableValue } from './bytes-text.ts';

test.each([
  { name: 'text', bytes: Buffer.from('späte Arbeit'), text: 'späte Arbeit' },
  { name: 'what would move the cursor', bytes: Buffer.from('a\nb\u001b[2J'), text: 'a\\x0ab\\x1b[2J' },
  { name: 'a control of the second set', bytes: Buffer.from('a\u009b2J'), text: 'a\\xc2\\x9b2J' },
  { name: 'what ends a line of Unicode', bytes: Buffer.from('a\u2028b'), text: 'a\\xe2\\x80\\xa8b' },
  { name: 'what turns text around', bytes: Buffer.from('a\u202eb'), text: 'a\\xe2\\x80\\xaeb' },
  { name: 'what has no width', bytes: Buffer.from('a\u200bb'), text: 'a\\xe2\\x80\\x8bb' },
  { name: 'bytes that are no text', bytes: Buffer.from([0x61, 0xff, 0x00]), text: 'a\\xff\\x00' },
])('$name is shown in one line, byte by byte where it is none', ({ bytes, text }) => {
  expect(printable(bytes)).toBe(text);
});

test('half of a surrogate pair, which has no bytes, is shown as what stands for it', () => {
  expect(printableText('a\ud800')).toBe('a\ufffd');
});

test('a value keeps its lines, and nothing else that a terminal acts upon', () => {
  expect(printableValue(Buffer.from('a\n\tb\r\u001b[2J\n'))).toBe('a\n\tb\\x0d\\x1b[2J\n');
  expect(printableValue(Buffer.from([0x0a, 0xff]))).toBe('\\x0a\\xff');
});
