import { utf8 } from '@remora/base';
import { expect, test } from 'vitest';
import { lockEventText } from './lock-event-text.ts';

test('an event of a lock is one line, and nothing that a terminal acts upon, whatever its name', () => {
  const owner = { session: { lease: 10n, incarnation: 1 }, id: 'Zx9' };
  const lock = { namespace: 'default', name: utf8('a\n7  other  released\u001b[2J') };
  const text = lockEventText({ type: 'left', lock, revision: 5, owner, code: 'LOCK_TIMEOUT' });
  expect(text).toBe('5  a\\x0a7  other  released\\x1b[2J  left the queue: Zx9 (session a), LOCK_TIMEOUT');
});
