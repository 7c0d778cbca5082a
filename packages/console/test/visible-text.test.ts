import { describe, expect, test } from 'vitest';
import { piecesOf, visibleText } from '../src/logic/visible-text.ts';

describe('text of unknown origin', () => {
  test.each([
    { given: 'orders/42', shown: 'orders/42' },
    { given: '<script>alert(1)</script>', shown: '<script>alert(1)</script>' },
    { given: 'a\u001b[31mb', shown: 'a\\e[31mb' },
    { given: 'a\u202egpj.exe', shown: 'a\\u{202e}gpj.exe' },
    { given: 'zero\u200bwidth', shown: 'zero\\u{200b}width' },
    { given: 'a\nb\tc\u0000', shown: 'a\\nb\\tc\\0' },
    { given: 'no\u00a0break\u0085', shown: 'no\\xa0break\\x85' },
    { given: 'lone \ud800 surrogate', shown: 'lone \\u{d800} surrogate' },
    { given: 'tag \u{e0041}', shown: 'tag \\u{e0041}' },
    { given: 'מזל 😀 é', shown: 'מזל 😀 é' },
  ])('$shown', ({ given, shown }) => {
    expect(visibleText(given)).toBe(shown);
  });

  test('what is marked says what it is', () => {
    expect(piecesOf('a\u202eb\u2066')).toEqual([
      { kind: 'plain', text: 'a' },
      { kind: 'mark', text: '\\u{202e}', meaning: 'right-to-left override (U+202E)' },
      { kind: 'plain', text: 'b' },
      { kind: 'mark', text: '\\u{2066}', meaning: 'left-to-right isolate (U+2066)' },
    ]);
  });

  test('a block keeps its lines, and marks everything else', () => {
    expect(piecesOf('a\n\tb\r', { keepLines: true })).toEqual([
      { kind: 'plain', text: 'a\n\tb' },
      { kind: 'mark', text: '\\r', meaning: 'carriage return (U+000D)' },
    ]);
  });
});
