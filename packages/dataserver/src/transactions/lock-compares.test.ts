import { EMPTY_BYTES } from '@remora/base';
import { type AcquireAs, type LockCommand, lockSpan, type Owner } from '@remora/lock';
import type { Command, LockCompare } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { put, range, StateBed, show } from '../../test/support/state-bed.ts';
import {
  commitAt,
  decide,
  lockOf,
  neighbours,
  prepare,
  prepared,
  resolve,
  send,
  txnResult,
} from '../../test/support/txn-bed.ts';

/** Transactions that compare the version by which a lock is held (I3 of the intents). */
const LOCK = lockOf('l');
const HOLDER = { lease: 5n, incarnation: 2 };
const OTHER = { lease: 6n, incarnation: 3 };

const ownerOf = (session: Owner['session']): Owner => ({ session, token: 't' });
const lease = (id: bigint) => ({ type: 'leaseGrant', id, ttlMs: 60_000, attributes: {} }) as const;
const lock = (command: LockCommand): Command => ({ type: 'lock', command });
const held = (version: number, name = 'l'): LockCompare => ({ lock: lockOf(name), version });

function acquire(session: Owner['session'], as?: AcquireAs, name = 'l'): Command {
  const times = { wait: true, waitUntilMs: 0, deadlineMs: 0, depthMax: 9 };
  const acquired = {
    type: 'acquire',
    lock: lockOf(name),
    owner: ownerOf(session),
    data: EMPTY_BYTES,
    ...times,
  } as const;
  return lock(as === undefined ? acquired : { ...acquired, as });
}

function release(session: Owner['session']): Command {
  return lock({ type: 'release', lock: LOCK, owner: ownerOf(session), all: true, deadlineMs: 0 });
}

/** Two sessions, the first of which has the lock, by version 4. */
async function withHolder<Bed extends StateBed>(bed: Bed, as?: AcquireAs): Promise<Bed> {
  if (bed.state.numbered) bed.block = { first: 2, count: 100 };
  await bed.ok(lease(HOLDER.lease));
  await bed.ok(lease(OTHER.lease));
  expect(await bed.ok(acquire(HOLDER, as))).toMatchObject({ result: { type: 'granted', version: 4 } });
  return bed;
}

/** Of part 1: the lock lies in the range, and the key that is written in another one. */
function comparing(txnId: string, version = 4) {
  return prepare(txnId, 1, [], { compares: [held(version)] });
}

describe('a transaction in one range that compares a lock', () => {
  async function branch(bed: StateBed, compare: LockCompare): Promise<boolean> {
    const txn = { compare: [compare], success: [put('k', '1')], failure: [] };
    const result = await bed.ok({ type: 'txn', txn });
    return result.type === 'txn' && result.succeeded;
  }

  test('writes while the grant holds it, and not before or afterwards', async () => {
    const bed = await withHolder(new StateBed());
    expect([await branch(bed, held(3)), await branch(bed, held(4)), await branch(bed, held(4, 'm'))]).toEqual([
      false,
      true,
      false,
    ]);
    await bed.ok(acquire(OTHER));
    expect(await branch(bed, held(4))).toBe(true);
    await bed.ok(release(HOLDER));
    expect(await branch(bed, held(4))).toBe(false);
    expect(bed.notices).toMatchObject([{ owner: ownerOf(OTHER), result: { type: 'granted', version: 8 } }]);
    expect(await branch(bed, held(8))).toBe(true);
    await bed.ok({ type: 'leaseRevoke', id: OTHER.lease, incarnation: 0 });
    expect(await branch(bed, held(8))).toBe(false);
  });

  test.each([
    { name: 'a reader', as: { type: 'shared' } },
    { name: 'a holder of permits', as: { type: 'permits', permits: 2, capacity: 3 } },
  ] as const)('knows the version of $name', async ({ as }) => {
    const bed = await withHolder(new StateBed(), as);
    await bed.ok(acquire(OTHER, as.type === 'shared' ? as : { ...as, permits: 1 }));
    expect([await branch(bed, held(4)), await branch(bed, held(5)), await branch(bed, held(6))]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('decides which branch is executed together with comparisons of keys', async () => {
    const bed = await withHolder(new StateBed());
    const absent = { key: Buffer.from('k'), result: 'equal', target: { of: 'version', value: 0 } } as const;
    const txn = { compare: [held(4), absent], success: [put('k', '1')], failure: [put('k', '2')] };
    await bed.ok({ type: 'txn', txn });
    await bed.ok({ type: 'txn', txn });
    expect(show(await bed.ok({ type: 'kv', op: range('k') }))).toBe('k=2@6/5/2');
  });
});

describe('a prepared part that compares a lock', () => {
  const commands: readonly { readonly name: string; readonly command: Command }[] = [
    { name: 'its release', command: release(HOLDER) },
    { name: 'one that takes it away', command: lock({ type: 'forceRelease', lock: LOCK }) },
    { name: 'a further acquire', command: acquire(OTHER) },
    { name: 'the end of the session that has it', command: { type: 'leaseRevoke', id: 5n, incarnation: 0 } },
    { name: 'the expiry of that session', command: { type: 'leaseExpire', id: 5n, incarnation: 2, term: 1 } },
  ];

  test.each(commands)('keeps it as it is: $name waits until the part is resolved', async ({ command }) => {
    const [left] = neighbours();
    await withHolder(left);
    expect(await prepared(left, comparing('t'))).toMatchObject({ answer: 'prepared', compares: ['holds'] });
    expect(await left.run(command)).toMatchObject({ ok: false, code: 'UNAVAILABLE', details: { heldBy: 't' } });
    expect(left.state.revision).toBe(4);
    await txnResult(left, resolve('t', commitAt(50), left), 'txnResolve');
    left.block = { first: 51, count: 10 };
    expect(await left.run(command)).toMatchObject({ ok: true });
  });

  test('is told that a version is not the one by which the lock is held', async () => {
    const [left] = neighbours();
    await withHolder(left);
    expect(await prepared(left, comparing('t', 3))).toMatchObject({ answer: 'prepared', compares: ['fails'] });
  });

  test('commits below the next grant, whose version is drawn before', async () => {
    const [left] = neighbours();
    await withHolder(left);
    await prepared(left, comparing('t'));
    await txnResult(left, resolve('t', commitAt(50), left), 'txnResolve');
    left.block = { first: 20, count: 40 };
    await left.ok(release(HOLDER));
    expect(await left.ok(acquire(OTHER))).toMatchObject({ result: { type: 'granted', version: 52 } });
  });

  test('leaves other locks, who only looks, and others that compare the lock alone', async () => {
    const [left] = neighbours();
    await withHolder(left);
    await prepared(left, comparing('t'));
    expect(await left.run(acquire(OTHER, undefined, 'm'))).toMatchObject({ ok: true });
    expect(await prepared(left, comparing('u'))).toMatchObject({ answer: 'prepared' });
    const txn = { compare: [held(4)], success: [put('k', '1')], failure: [] };
    expect(await left.ok({ type: 'txn', txn })).toMatchObject({ succeeded: true });
    await txnResult(left, resolve('t', { type: 'abort' }, left), 'txnResolve');
    expect(await left.run(release(HOLDER))).toMatchObject({ ok: false, details: { heldBy: 'u' } });
  });

  test('keeps the session that has the lock in another range than its own', async () => {
    const [left] = neighbours();
    await withHolder(left);
    const span = { start: Buffer.from([2]), end: Buffer.from([4]) };
    left.state.references.add(9n, 1, span);
    await left.ok(acquire({ lease: 9n, incarnation: 1 }, undefined, 'm'));
    await prepared(left, prepare('t', 1, [], { compares: [held(5, 'm')] }));
    const end = { type: 'leaseEnd', id: 9n, incarnation: 1, span } as const;
    expect(await left.run(end)).toMatchObject({ ok: false, details: { heldBy: 't' } });
    await txnResult(left, resolve('t', { type: 'abort' }, left), 'txnResolve');
    expect(await left.run(end)).toMatchObject({ ok: true });
  });

  test('goes with its lock when the range is split, and outlives a crash', async () => {
    const [left] = neighbours();
    await withHolder(left);
    await left.ok(acquire(HOLDER, undefined, 'z'));
    const compares = [held(4), held(5, 'z')];
    await prepared(left, prepare('t', 0, [put('a', '1')], { compares }));
    await left.ok({
      ...{ type: 'split', at: lockSpan(lockOf('m')).start, epoch: left.state.descriptor.epoch, childId: 9 },
      ...{ replicas: [{ nodeId: 1, replicaId: 31 }], keys: 0, bytes: 0 },
    });
    const [start] = left.children;
    if (start === undefined) throw new Error('a split makes a child');
    const right = new StateBed({ engine: left.engine, start });
    right.block = { first: 60, count: 10 };
    for (const bed of [left, right]) await bed.checkpoint();
    for (const bed of [left, right]) bed.crash();
    const force = (name: string) => lock({ type: 'forceRelease', lock: lockOf(name) });
    for (const [bed, name] of [
      [left, 'l'],
      [right, 'z'],
    ] as const) {
      expect(await bed.run(force(name))).toMatchObject({ ok: false, details: { heldBy: 't' } });
    }
    await txnResult(right, decide('t', commitAt(50)), 'txnDecide');
    await txnResult(left, resolve('t', commitAt(50), left), 'txnResolve');
    expect(await left.run(force('l'))).toMatchObject({ ok: true });
    expect(await right.run(force('z'))).toMatchObject({ ok: true });
  });

  test('is refused where its lock is not', async () => {
    const [, right] = neighbours();
    expect(await send(right, comparing('t'))).toMatchObject({ ok: false, code: 'STALE_EPOCH' });
  });
});
