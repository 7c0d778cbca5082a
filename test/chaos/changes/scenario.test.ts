import { describe, expect, test } from 'vitest';
import { MOMENTS } from '../gateways/coordinator-kills.ts';
import { type Overlap, SUBJECTS } from '../judges/overlaps.ts';
import { CHANGES } from './range-desk.ts';
import { type Changed, nameOf, tooLittle } from './scenario.ts';

const ENOUGH: Changed = {
  done: { split: 50, merge: 51, move: 50, transfer: 90 },
  failed: { 'move: not now': 3 },
  kills: Object.fromEntries(MOMENTS.map((moment) => [nameOf(moment), 1])),
};
const OVERLAPS: readonly Overlap[] = CHANGES.flatMap((change) =>
  SUBJECTS.map((subject) => ({ change, subject, met: change === 'transfer' ? 0 : 1, through: 0 })),
);

describe('a run in which everything changes', () => {
  test('has done enough', () => expect(tooLittle(ENOUGH, OVERLAPS, 2)).toEqual([]));

  test.each([
    {
      name: 'too few changes',
      changed: { ...ENOUGH, done: { ...ENOUGH.done, move: 49 } },
      says: /49 of at least 50: move/,
    },
    {
      name: 'a moment at which no gateway was killed',
      changed: { ...ENOUGH, kills: { ...ENOUGH.kills, 'behind commit': 0 } },
      says: /no gateway was killed behind commit/,
    },
    {
      name: 'nothing that overlapped',
      overlaps: OVERLAPS.map((each) =>
        each.change === 'merge' && each.subject === 'lease' ? { ...each, met: 0 } : each,
      ),
      says: /no lease was under way during a merge/,
    },
  ])('has done too little: $name', ({ changed = ENOUGH, overlaps = OVERLAPS, says }) => {
    expect(tooLittle(changed, overlaps, 2)).toMatchObject([
      { result: 'violation', detail: expect.stringMatching(says) },
    ]);
  });

  test('needs not have seen everything when it was short', () => {
    expect(tooLittle({ done: { split: 1, merge: 0, move: 0, transfer: 1 }, failed: {}, kills: {} }, [], 0.2)).toEqual(
      [],
    );
  });
});
