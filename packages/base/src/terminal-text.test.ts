import { expect, test } from 'vitest';
import { escapeHidden } from './terminal-text.ts';

test.each([
  { name: 'an escape sequence', text: '\u001b[2J', shown: '\\u001b[2J' },
  { name: 'a control of the second set', text: '\u009b2J', shown: '\\u009b2J' },
  { name: 'delete', text: '\u007f', shown: '\\u007f' },
  { name: 'a line end', text: 'a\r\nb', shown: 'a\\u000d\\u000ab' },
  { name: 'separators of Unicode', text: '\u2028\u2029', shown: '\\u2028\\u2029' },
  { name: 'an override of the direction', text: '\u202egpj.exe\u202c', shown: '\\u202egpj.exe\\u202c' },
  { name: 'isolates and marks', text: '\u2066\u2069\u200f\u061c', shown: '\\u2066\\u2069\\u200f\\u061c' },
  {
    name: 'characters without width',
    text: 'a\u200b\u200d\u2060\ufeff\u00adb',
    shown: 'a\\u200b\\u200d\\u2060\\ufeff\\u00adb',
  },
  { name: 'a filler', text: '\u3164\u115f', shown: '\\u3164\\u115f' },
  { name: 'tags', text: '\u{e0041}', shown: '\\udb40\\udc41' },
  { name: 'half of a pair', text: '\ud83d!', shown: '\\ud83d!' },
  { name: 'a private character', text: '\ue000', shown: '\\ue000' },
  { name: 'letters, marks and emoji', text: 'Häuser 東京 e\u0301 😀 עברית', shown: 'Häuser 東京 e\u0301 😀 עברית' },
])('$name is shown as it can be', ({ text, shown }) => {
  expect(escapeHidden(text)).toBe(shown);
});

test('JSON stays the same value, and lines stay where they are kept', () => {
  const value = { '\u202e': ['\u0085\u007f\u200b', '\u{e0041}', 'a\nb'] };
  expect(JSON.parse(escapeHidden(JSON.stringify(value)))).toEqual(value);
  expect(escapeHidden('a\n\tb\u001b', '\n\t')).toBe('a\n\tb\\u001b');
});
