import type { Refusal } from '@remora/raft';
import { expect, test } from 'vitest';
import { refusalError } from './proposals.ts';

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
