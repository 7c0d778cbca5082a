import { expect, test } from 'vitest';
import { advicePieces } from '../src/logic/advice.ts';

const about = { node: 'n3', range: '7' };

test.each([
  { name: 'plain text', advice: 'Wait.', pieces: [['Wait.', false]] },
  {
    name: 'a command with the node',
    advice: 'Run `remora admin nodes undrain NODE`.',
    pieces: [
      ['Run ', false],
      ['remora admin nodes undrain n3', true],
      ['.', false],
    ],
  },
  { name: 'a command with the range', advice: '`remora admin why RANGE`', pieces: [['remora admin why 7', true]] },
  { name: 'code that is no command of remora', advice: '`ping NODE`', pieces: [['ping NODE', true]] },
])('the advice has pieces: $name', ({ advice, pieces }) => {
  expect(advicePieces(advice, about).map(({ text, isCode }) => [text, isCode])).toEqual(pieces);
});

test('without a node or a range, the placeholders stay', () => {
  const pieces = advicePieces('`remora admin why RANGE`', { node: undefined, range: undefined });
  expect(pieces).toEqual([{ text: 'remora admin why RANGE', isCode: true }]);
});
