import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { CLUSTER } from '../../authorisation/clearance.ts';
import { RangeCalls, type RangeCallsDeps } from './range-calls.ts';

test('work that fails when the request is over ends nothing but itself', async () => {
  const clock = new ManualClock();
  const over = new AbortController();
  const unhandled: unknown[] = [];
  const hear = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', hear);
  try {
    const none: RangeCallsDeps['ask'] = () => () => {};
    const deps = { clock, ask: none, execute: none } as unknown as RangeCallsDeps;
    const calls = new RangeCalls(deps, over.signal, 1_000, CLUSTER);
    over.abort(new ServiceError('CANCELED', 'nobody waits'));
    const work = Promise.reject(new ServiceError('UNAVAILABLE', 'nobody is there'));
    await expect(calls.during(work)).rejects.toMatchObject({ code: 'CANCELED' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', hear);
  }
});
