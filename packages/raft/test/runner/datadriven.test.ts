import { describe, expect, test } from 'vitest';
import { type Args, answered } from './datadriven.ts';

const echo = (args: Args): string => {
  if (args.command === 'fail') throw new Error('no');
  return [args.words().join('+'), args.text('text'), args.numbers('list')?.join('/')].filter(Boolean).join('\n');
};

describe('a datadriven file', () => {
  test('is the same file, byte for byte, when all answers are as expected', () => {
    const text = '# header\n\necho a b text="x y" list=(1, 2)\n----\na+b\nx y\n1/2\n\n# between\necho\n----\nok\n';
    expect(answered(text, echo)).toBe(text);
  });

  test('has its answers replaced, and nothing else', () => {
    const text = '# header\n\necho a\n----\nstale\nlines\n\n# between\n\necho b\n----\n';
    expect(answered(text, echo)).toBe('# header\n\necho a\n----\na\n\n# between\n\necho b\n----\nb\n');
  });

  test.each([
    { name: 'an argument that the command does not take', text: 'echo other=1\n----\n', says: 'echo takes no other' },
    { name: 'a number that is none', text: 'echo list=(1,x)\n----\n', says: "'x' is not a number" },
    { name: 'a command that fails', text: 'fail\n----\n', says: "line 1: 'fail': no" },
    { name: 'a command without its line of dashes', text: 'echo a\n\necho b\n----\n', says: 'not followed by' },
  ])('is refused: $name', ({ text, says }) => {
    expect(() => answered(text, echo)).toThrow(says);
  });
});
