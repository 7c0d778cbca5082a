import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command, Done } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Requester } from '../transport/requester.ts';
import { LeaseEndings } from './lease-endings.ts';

const UNAVAILABLE = new ServiceError('UNAVAILABLE', 'nobody is there');

test('a lease without expiry that only the closing of its client gives up is asked for once, and waited for (E2)', async () => {
  const asked: { readonly type: string; readonly done: Done<unknown> }[] = [];
  const endings = new LeaseEndings(
    {
      ports: { clock: new ManualClock() },
      sendCommand: ({ type }: Command, _options: unknown, done: Done<unknown>) => asked.push({ type, done }),
    } as unknown as Requester,
    undefined,
  );
  await endings.close();
  endings.add({ lease: 5n, incarnation: 1 });
  expect(asked.map(({ type }) => type)).toEqual(['leaseRevoke']);
  let isClosed = false;
  const closed = endings.close().then(() => {
    isClosed = true;
  });
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  expect(isClosed).toBe(false);
  asked[0]?.done(UNAVAILABLE, undefined);
  await closed;
  expect([asked.length, endings.size]).toEqual([1, 0]);
});
