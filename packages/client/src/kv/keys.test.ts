import { describe, expect, test } from 'vitest';
import { type KeySelector, keyRange } from './keys.ts';

describe('keyRange', () => {
  const SELECTED: readonly { readonly selector: KeySelector; readonly key: string; readonly end?: string }[] = [
    { selector: 'a', key: 'a' },
    { selector: { prefix: 'a' }, key: 'a', end: 'b' },
    { selector: { prefix: '' }, key: '\0', end: '' },
    { selector: { start: '' }, key: '\0', end: '' },
    { selector: { start: 'a' }, key: 'a', end: '' },
    { selector: { start: 'a', end: 'c' }, key: 'a', end: 'c' },
  ];
  test.each(SELECTED)('$selector', ({ selector, ...expected }) => {
    const { key, end } = keyRange(selector);
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
    expect({ key: text(key), ...(end === undefined ? {} : { end: text(end) }) }).toEqual(expected);
  });

  test.each(['', new Uint8Array()])('an end that is empty does not mean all that follows', (end) => {
    const refused = expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('omit'),
    });
    expect(() => keyRange({ start: 'a', end })).toThrow(refused);
  });

  test.each(['', new Uint8Array()])('an empty key is none, and does not stand for all keys', (selector) => {
    const refused = expect.objectContaining({ code: 'EMPTY_KEY', message: expect.stringContaining("{ prefix: '' }") });
    expect(() => keyRange(selector)).toThrow(refused);
  });
});
