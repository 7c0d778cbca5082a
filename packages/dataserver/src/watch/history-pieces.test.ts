import type { KvEvent } from '@remora/protocol';
import { expect, test } from 'vitest';
import { piecesOf } from './history-pieces.ts';

const group = (revision: number, events: number) => ({ revision, events: new Array<KvEvent>(events) });

function shown(groups: Parameters<typeof piecesOf>[0], upTo: number): string[] {
  return piecesOf(groups, { upTo, eventsMax: 4 }).map(
    (piece) => `${piece.groups.map(({ revision }) => revision).join(' ')}: ${piece.count} up to ${piece.upTo}`,
  );
}

test.each([
  { name: 'nothing is one piece', groups: [], expected: [': 0 up to 99'] },
  { name: 'what fits is one piece', groups: [group(3, 2), group(7, 2)], expected: ['3 7: 4 up to 99'] },
  {
    name: 'a piece reaches up to where the next one begins',
    groups: [group(3, 2), group(7, 2), group(20, 1), group(30, 4)],
    expected: ['3 7: 4 up to 19', '20: 1 up to 29', '30: 4 up to 99'],
  },
  {
    name: 'a revision is never divided',
    groups: [group(3, 9), group(4, 1)],
    expected: ['3: 9 up to 3', '4: 1 up to 99'],
  },
])('$name', ({ groups, expected }) => {
  expect(shown(groups, 99)).toEqual(expected);
});
