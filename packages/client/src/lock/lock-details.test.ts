import { ServiceError } from '@remora/base';
import type { LockState } from '@remora/lock';
import { expect, test } from 'vitest';
import type { Requester } from '../transport/requester.ts';
import { detailsOf } from './lock-details.ts';

const STATE: LockState = {
  lock: { namespace: 'default', name: Buffer.from('a') },
  version: 7,
  holders: [{ owner: { session: { lease: 5n, incarnation: 1 }, token: 't' }, version: 7, depth: 1 }],
} as unknown as LockState;

function failing(error: Error): Requester {
  const asked = { query: () => Promise.reject(error) };
  return asked as unknown as Requester;
}

test('a lock is shown also while the range of its holder’s session is away', async () => {
  const away = new ServiceError('DEADLINE_EXCEEDED', 'no answer in time');
  expect(await detailsOf(failing(away), STATE, 5_000)).toEqual({
    ...STATE,
    holders: [{ ...STATE.holders[0], terms: undefined }],
  });
});

test('what is no failure of the cluster is thrown on', async () => {
  await expect(detailsOf(failing(new TypeError('a bug')), STATE, 5_000)).rejects.toThrow('a bug');
});
