import { ManualClock } from '@remora/base';
import type { Group, Refusal } from '@remora/raft';
import { expect, test } from 'vitest';
import { Proposals, refusalError } from './proposals.ts';

test.each<{ refused: Refusal; code: string; retry: string }>([
  { refused: 'notLeader', code: 'NOT_LEADER', retry: 'refreshRoute' },
  { refused: 'queueFull', code: 'RESOURCE_EXHAUSTED', retry: 'later' },
  { refused: 'transferring', code: 'UNAVAILABLE', retry: 'sameRequest' },
  { refused: 'noOwnTermCommit', code: 'UNAVAILABLE', retry: 'sameRequest' },
  { refused: 'confPending', code: 'UNAVAILABLE', retry: 'sameRequest' },
  { refused: 'confInvalid', code: 'INVALID_ARGUMENT', retry: 'no' },
  { refused: 'notVoter', code: 'INVALID_ARGUMENT', retry: 'no' },
])('what Raft refuses as $refused a caller gets as $code', ({ refused, code, retry }) => {
  expect(refusalError(refused)).toMatchObject({ code, retry });
});

test('commands are under way until they are answered, by apply or because leadership is lost', () => {
  const clock = new ManualClock();
  const epoch = { confVersion: 1, version: 1 };
  const proposals = new Proposals(clock, () => ({ rangeTimeMs: 1, wallMs: 1, epoch }));
  let index = 0;
  proposals.attach({ propose: () => ({ index: ++index, term: 1 }) } as unknown as Group);
  const add = (): void =>
    proposals.add({ requestId: '', deadlineMs: 0, command: { type: 'noop' } }, 1, () => undefined);
  add();
  add();
  expect(proposals.underWay).toBe(2);
  clock.advance(0);
  expect(proposals.underWay).toBe(2);
  const taken = proposals.take({ index: 1, term: 1 });
  expect(taken?.done.length).toBe(2);
  expect(proposals.underWay).toBe(0);
  add();
  clock.advance(0);
  proposals.abandon();
  expect(proposals.underWay).toBe(0);
});
