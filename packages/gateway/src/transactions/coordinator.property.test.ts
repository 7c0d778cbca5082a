import fc from 'fast-check';
import { expect, test } from 'vitest';
import { courses, HistoryWorld } from '../../test/support/coordinator-histories.ts';

test('transactions over ranges are as if each had happened at one moment, whatever is lost and whichever coordinator ends', {}, async () => {
  let ended = 0;
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(courses, async (course) => {
      const world = new HistoryWorld(course);
      await world.run();
      expect(world.check()).toEqual([]);
      ended += world.ended;
      answered += world.seen.filter(({ reply }) => reply !== undefined).length;
    }),
    { numRuns: 150, seed: 11 },
  );
  expect(ended).toBeGreaterThan(50);
  expect(answered).toBeGreaterThan(150);
});
