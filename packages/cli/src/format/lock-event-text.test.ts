import { utf8 } from '@remora/base';
import { expect, test } from 'vitest';
import { lockEventText } from './lock-event-text.ts';

test('an event of a lock is one line, and nothing that a terminal acts upon, whatever its owner calls itself', () => {
  const owner = { session: { lease: 10n, incarnation: 1 }, token: 'me\n7  other  released\u001b[2J' };
  const lock = { namespace: 'default', name: utf8('a') };
  const text = lockEventText({ type: 'left', lock, revision: 5, owner, code: 'LOCK_TIMEOUT' });
  expect(text).toBe('5  a  left the queue: me\\x0a7  other  released\\x1b[2J (session a), LOCK_TIMEOUT');
});
