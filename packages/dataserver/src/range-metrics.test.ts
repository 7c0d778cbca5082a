import { EMPTY_BYTES } from '@remora/base';
import { createMetrics } from '@remora/base/node';
import type { AcquireAs, LockCommand, Owner } from '@remora/lock';
import { expect, test } from 'vitest';
import { StateBed } from '../test/support/state-bed.ts';
import { RangeMetrics } from './range-metrics.ts';

const LOCK = { namespace: 'n', name: Buffer.from('l') };

/** Sessions 1 to 3 of a range, with what is counted. */
async function counted() {
  const metrics = createMetrics();
  const bed = new StateBed({ meter: new RangeMetrics(metrics) });
  bed.wallMs = 1_000_000;
  const owners: Owner[] = [];
  for (const id of [1n, 2n, 3n]) {
    const granted = await bed.ok({ type: 'leaseGrant', id, ttlMs: 5_000, attributes: {} });
    if (granted.type !== 'leaseGrant') throw new Error('a grant');
    owners.push({ session: { lease: id, incarnation: granted.incarnation }, token: 't' });
  }
  const ownerOf = (session: number): Owner => owners[session - 1] as Owner;
  const lock = (command: LockCommand) => bed.ok({ type: 'lock', command });
  const acquire = (session: number, as?: AcquireAs, wait = true) =>
    lock({
      ...{ type: 'acquire', lock: LOCK, owner: ownerOf(session), wait, waitUntilMs: 0, deadlineMs: 0, attempt: 1 },
      ...{ depthMax: 1, data: EMPTY_BYTES, ...(as === undefined ? {} : { as }) },
    });
  const release = (session: number) =>
    lock({ type: 'release', lock: LOCK, owner: ownerOf(session), all: true, deadlineMs: 0, attempt: 9 });
  const shown = async () =>
    (await metrics.render())
      .split('\n')
      .filter((line) => /^remora_[^ ]+ [1-9]/.test(line) && !line.includes('_bucket'))
      .map((line) => line.replace(/^remora_/, ''));
  return { bed, acquire, release, lock, ownerOf, shown };
}

test('grants, waits, holds and what came of them are counted by kind', async () => {
  const { bed, acquire, release, shown } = await counted();
  await acquire(1);
  await acquire(2);
  await acquire(3, undefined, false);
  bed.wallMs += 2_000;
  await release(1);
  bed.wallMs += 500;
  await release(2);
  await release(2);
  expect(await shown()).toEqual([
    'lock_grants_total{kind="exclusive",waited="no"} 1',
    'lock_grants_total{kind="exclusive",waited="yes"} 1',
    'lock_ends_total{kind="exclusive",how="released"} 2',
    'lock_wait_seconds_sum{kind="exclusive"} 2',
    'lock_wait_seconds_count{kind="exclusive"} 1',
    'lock_hold_seconds_sum{kind="exclusive"} 2.5',
    'lock_hold_seconds_count{kind="exclusive"} 2',
    'lock_queue_place_sum{kind="exclusive"} 1',
    'lock_queue_place_count{kind="exclusive"} 1',
    'lock_refused_total{code="LOCK_BUSY"} 1',
    'lock_refused_total{code="LOCK_NOT_HELD"} 1',
    'sessions_total{event="opened"} 3',
  ]);
});

test('what ends otherwise is counted as what it is', async () => {
  const { bed, acquire, lock, ownerOf, shown } = await counted();
  await acquire(1, { type: 'shared' });
  await acquire(2, { type: 'shared' });
  await acquire(3);
  await bed.ok({ type: 'leaseRevoke', id: 3n, incarnation: 0 });
  await bed.ok({ type: 'leaseExpire', id: 1n, incarnation: ownerOf(1).session.incarnation, term: bed.term });
  // Alone by now.
  await lock({
    ...{ type: 'acquire', lock: LOCK, owner: ownerOf(2), wait: true, waitUntilMs: 0, deadlineMs: 0, attempt: 2 },
    ...{ depthMax: 1, data: EMPTY_BYTES, as: { type: 'upgrade' } },
  });
  // Clocks of leaders may differ.
  bed.wallMs -= 10_000;
  await lock({ type: 'forceRelease', lock: LOCK });
  expect((await shown()).filter((line) => !line.startsWith('lock_queue_place'))).toEqual([
    'lock_grants_total{kind="exclusive",waited="no"} 1',
    'lock_grants_total{kind="shared",waited="no"} 2',
    'lock_ends_total{kind="exclusive",how="forced"} 1',
    'lock_ends_total{kind="shared",how="expired"} 1',
    'lock_ends_total{kind="shared",how="converted"} 1',
    'lock_hold_seconds_count{kind="exclusive"} 1',
    'lock_hold_seconds_count{kind="shared"} 2',
    'lock_left_total{code="SESSION_EXPIRED"} 1',
    'sessions_total{event="opened"} 3',
    'sessions_total{event="closed"} 1',
    'sessions_total{event="expired"} 1',
  ]);
});

test('without a meter nothing is counted, and everything happens as it does', async () => {
  const states: string[] = [];
  for (const meter of [undefined, new RangeMetrics(createMetrics())]) {
    const bed = new StateBed(meter === undefined ? {} : { meter });
    await bed.ok({ type: 'leaseGrant', id: 1n, ttlMs: 5_000, attributes: {} });
    const owner = { session: { lease: 1n, incarnation: bed.state.revision }, token: 't' };
    const acquire = { type: 'acquire', lock: LOCK, owner, wait: false, waitUntilMs: 0, deadlineMs: 0 } as const;
    const result = await bed.ok({ type: 'lock', command: { ...acquire, depthMax: 1, data: EMPTY_BYTES } });
    states.push(JSON.stringify([result, bed.state.revision]));
  }
  expect(states[0]).toBe(states[1]);
});

test('what is refused as a limit was reached is counted by limit', async () => {
  const metrics = createMetrics();
  const meter = new RangeMetrics(metrics);
  for (const limit of [
    'sessions',
    'session_locks',
    'session_locks',
    'waiters',
    'waiters',
    'waiters',
    'data',
    'disk',
  ] as const) {
    meter.overLimit(limit);
  }
  const lines = (await metrics.render()).split('\n');
  const counted = lines.filter((line) => /^remora_(lock_limits|disk_refusals)_total[ {]/.test(line));
  expect(counted.sort()).toEqual([
    'remora_disk_refusals_total 1',
    'remora_lock_limits_total{limit="data"} 1',
    'remora_lock_limits_total{limit="session_locks"} 2',
    'remora_lock_limits_total{limit="sessions"} 1',
    'remora_lock_limits_total{limit="waiters"} 3',
  ]);
});
