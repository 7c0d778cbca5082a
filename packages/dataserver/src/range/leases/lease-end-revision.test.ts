import type { RangeDescriptor, RangeReply } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR } from '../../../test/support/state-bed.ts';
import type { NewestDone } from '../../revisions/revision-drawer.ts';
import { LeaseEndRevision } from './lease-end-revision.ts';

const REPLY: RangeReply = { revision: 9, raftTerm: 3, rangeTimeMs: 5, result: { type: 'leaseRevoke' } };

/** A range at revision 20, which others have overtaken: the master has given out revisions up to 30. */
function bed(revisionSource: RangeDescriptor['revisionSource']) {
  const questions: { readonly floor: number; readonly done: NewestDone }[] = [];
  const revisions = new LeaseEndRevision({
    state: { revision: 20, descriptor: { ...DESCRIPTOR, revisionSource } },
    source: { newest: (floor, done) => questions.push({ floor, done }) },
  });
  const told: (RangeReply | string | undefined)[] = [];
  revisions.answer(REPLY, (error, reply) => told.push(error?.code ?? reply));
  return { revisions, questions, told };
}

describe('the answer to the end of a lease that took several entries', () => {
  test('has the last revision of a range that counts by itself, which has written all of them (ER3)', () => {
    const { told, questions } = bed('range');
    expect([told, questions]).toEqual([[{ ...REPLY, revision: 20 }], []]);
  });

  test('has a revision that the master named after the last of them, if the master numbers the range (ER3)', () => {
    const { told, questions } = bed('master');
    expect([told, questions.map(({ floor }) => floor)]).toEqual([[], [20]]);
    questions[0]?.done(undefined, 30);
    expect(told).toEqual([{ ...REPLY, revision: 30 }]);
  });

  test('is unknown while the master does not answer, so that the caller repeats the request', () => {
    const { told, questions } = bed('master');
    questions[0]?.done(undefined, undefined);
    expect(told).toEqual(['UNKNOWN_OUTCOME']);
  });
});

test('an end is known to be whole by the entry that was applied last, of this lease alone (ER2)', () => {
  const { revisions } = bed('master');
  expect(revisions.isWhole(0n, 9)).toBe(false);
  revisions.ended(7n, { revision: 9, isWhole: true });
  expect([revisions.isWhole(7n, 9), revisions.isWhole(7n, 8), revisions.isWhole(8n, 9)]).toEqual([true, false, false]);
  revisions.ended(8n, { revision: 10, isWhole: false });
  expect([revisions.isWhole(7n, 9), revisions.isWhole(8n, 10)]).toEqual([false, false]);
});
