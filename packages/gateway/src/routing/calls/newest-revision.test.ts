import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { type DrawNewest, NewestRevision } from './newest-revision.ts';

function drawer(newest: DrawNewest): NewestRevision {
  return new NewestRevision({ clock: new ManualClock(), random: new SeededRandom(1), newest });
}

test('whoever has no more time is told at once, however long the master takes to answer', async () => {
  const over = new AbortController();
  let answer = (_revision: number): void => {};
  const revisions = drawer((_floor, done) => {
    answer = (revision) => done(undefined, revision);
  });
  const drawn = revisions.draw(0, over.signal);
  const tooLate = new ServiceError('DEADLINE_EXCEEDED', 'too late');
  over.abort(tooLate);
  await expect(drawn).rejects.toBe(tooLate);
  answer(7); // Nobody waits for it.
  await expect(revisions.draw(0, over.signal)).rejects.toBe(tooLate);
});

test('what the master answers in time is the revision', async () => {
  const revisions = drawer((floor, done) => done(undefined, floor + 1));
  expect(await revisions.draw(6, new AbortController().signal)).toBe(7);
  expect([revisions.recent(7), revisions.recent(8)]).toEqual([7, undefined]);
});
