import { lockPrefix } from '@remora/lock';
import type { KvOp, Txn } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, del, put, range, StateBed, show } from '../../test/support/state-bed.ts';
import { EntryRun } from './entry-run.ts';
import { attachedLockRow, leaseKey } from './keys.ts';

const kv = (op: ReturnType<typeof put> | ReturnType<typeof del> | ReturnType<typeof range>) => {
  if (op.type === 'txn') throw new Error('not here');
  return { type: 'kv' as const, op };
};

describe('plain keys', () => {
  test('each change gets the next revision, and a key counts its versions', async () => {
    const bed = new StateBed();
    await bed.ok(kv(put('a', '1')));
    await bed.ok(kv(put('a', '2')));
    await bed.ok(kv(put('b', '3')));
    expect(show(await bed.ok(kv(range('a', 'z'))))).toBe('a=2@3/2/2 b=3@4/4/1');
    expect(bed.state.revision).toBe(4);
  });

  test('a read at an old revision sees what was there then, deletions included', async () => {
    const bed = new StateBed();
    await bed.ok(kv(put('a', '1'))); // 2
    await bed.ok(kv(put('b', '1'))); // 3
    await bed.ok(kv(del('a'))); // 4
    await bed.ok(kv(put('a', '2'))); // 5
    expect(show(await bed.ok(kv(range('a', 'z', { revision: 3 }))))).toBe('a=1@2/2/1 b=1@3/3/1');
    expect(show(await bed.ok(kv(range('a', 'z', { revision: 4 }))))).toBe('b=1@3/3/1');
    expect(show(await bed.ok(kv(range('a', 'z'))))).toBe('a=2@5/5/1 b=1@3/3/1');
  });

  test('keys with zero bytes keep their own history', async () => {
    const bed = new StateBed();
    await bed.ok(kv(put('a\0', '1'))); // 2
    await bed.ok(kv(put('a', '1'))); // 3
    await bed.ok(kv(put('a\0', '2'))); // 4
    await bed.ok(kv(put('a', '2'))); // 5
    expect(show(await bed.ok(kv(range('a', undefined, { revision: 3 }))))).toBe('a=1@3/3/1');
    expect(show(await bed.ok(kv(range('a\0', undefined, { revision: 3 }))))).toBe('a\0=1@2/2/1');
  });

  test('deleting nothing changes nothing, not even the revision', async () => {
    const bed = new StateBed();
    expect(await bed.ok(kv(del('a', 'z')))).toEqual({ type: 'delete', deleted: 0, prev: [] });
    expect(bed.state.revision).toBe(1);
    expect(bed.events).toEqual([]);
  });

  test('a compacted revision and a future one are refused with codes of their own', async () => {
    const bed = new StateBed();
    for (const v of ['1', '2', '3']) await bed.ok(kv(put('a', v)));
    await bed.ok({ type: 'compact', revision: 3 });
    expect(await bed.run(kv(range('a', undefined, { revision: 2 })))).toMatchObject({ ok: false, code: 'COMPACTED' });
    expect(await bed.run(kv(range('a', undefined, { revision: 9 })))).toMatchObject({
      ok: false,
      code: 'FUTURE_REVISION',
    });
    expect(show(await bed.ok(kv(range('a', undefined, { revision: 3 }))))).toBe('a=2@3/2/2');
    expect(await bed.run({ type: 'compact', revision: 3 })).toMatchObject({ ok: false, code: 'COMPACTED' });
    expect(await bed.run({ type: 'compact', revision: 99 })).toMatchObject({ ok: false, code: 'FUTURE_REVISION' });
  });
});

describe('transactions', () => {
  test('take the branch that their comparisons choose, and see their own writes', async () => {
    const bed = new StateBed();
    await bed.ok(kv(put('a', '1')));
    const result = await bed.ok({
      type: 'txn',
      txn: {
        compare: [{ key: Buffer.from('a'), result: 'equal', target: { of: 'value', value: Buffer.from('1') } }],
        success: [put('b', '2'), range('a', 'z'), del('a'), range('a', 'z')],
        failure: [put('never', 'x')],
      },
    });
    if (result.type !== 'txn') throw new Error('a transaction answers as one');
    expect(result.succeeded).toBe(true);
    expect(result.results.map(show)).toEqual(['put', 'a=1@2/2/1 b=2@3/3/1', 'delete', 'b=2@3/3/1']);
  });

  test('compare what was there before them, also in a transaction within', async () => {
    const bed = new StateBed();
    const nested = (key: string, version: number): Txn => ({
      compare: [{ key: Buffer.from(key), result: 'equal', target: { of: 'version', value: version } }],
      success: [put(`${key}-was-${version}`, '1')],
      failure: [],
    });
    await bed.ok(kv(put('b', '1')));
    const success: KvOp[] = [put('a', '1'), del('b')];
    for (const [key, version] of [
      ['a', 0],
      ['a', 1],
      ['b', 0],
      ['b', 1],
    ] as const) {
      success.push({ type: 'txn', txn: nested(key, version) });
    }
    await bed.ok({ type: 'txn', txn: { compare: [], success, failure: [] } });
    expect(show(await bed.ok(kv(range('a-', 'z'))))).toBe('a-was-0=1@3/3/1 b-was-1=1@3/3/1');
  });

  test('all changes share one revision, and come as one group of events', async () => {
    const bed = new StateBed();
    await bed.ok({ type: 'txn', txn: { compare: [], success: [put('a', '1'), put('b', '1')], failure: [] } });
    expect(bed.events.map(({ revision, events }) => [revision, events.length])).toEqual([[2, 2]]);
  });

  test('an operation that fails undoes the whole transaction and leaves its neighbours alone', async () => {
    const bed = new StateBed();
    const outcomes = await bed.batch([
      { command: kv(put('before', '1')) },
      {
        command: {
          type: 'txn',
          txn: { compare: [], success: [put('a', '1'), put('b', '1', { lease: 7n })], failure: [] },
        },
      },
      { command: kv(put('after', '1')) },
    ]);
    expect(outcomes.map((o) => (o.ok ? 'ok' : o.code))).toEqual(['ok', 'LEASE_NOT_FOUND', 'ok']);
    expect(show(await bed.ok(kv(range('a', 'z'))))).toBe('after=1@3/3/1 before=1@2/2/1');
  });

  test('changing one key twice is refused', async () => {
    const bed = new StateBed();
    const txn = { compare: [], success: [put('a', '1'), put('a', '2')], failure: [] };
    expect(await bed.run({ type: 'txn', txn })).toMatchObject({ ok: false, code: 'DUPLICATE_KEY' });
  });

  test('an absent key compares as version 0, and never by value', async () => {
    const bed = new StateBed();
    const compare = (target: { of: 'version'; value: number } | { of: 'value'; value: Buffer }) =>
      bed.ok({
        type: 'txn',
        txn: { compare: [{ key: Buffer.from('x'), result: 'equal', target }], success: [], failure: [] },
      });
    expect(await compare({ of: 'version', value: 0 })).toMatchObject({ succeeded: true });
    expect(await compare({ of: 'value', value: Buffer.alloc(0) })).toMatchObject({ succeeded: false });
  });
});

describe('applied once', () => {
  test('a retried command is answered from memory and not applied again', async () => {
    const bed = new StateBed();
    const request = { requestId: 'r1', deadlineMs: 5_000 };
    const first = await bed.run(kv(put('a', '1', { prevKv: true })), request);
    await bed.ok(kv(put('a', '2')));
    expect(await bed.run(kv(put('a', '1', { prevKv: true })), request)).toEqual(first);
    expect(show(await bed.ok(kv(range('a'))))).toBe('a=2@3/2/2');
  });

  test('the memory survives a crash with its checkpoint', async () => {
    const bed = new StateBed();
    const request = { requestId: 'r1', deadlineMs: 5_000 };
    const first = await bed.run(kv(put('a', '1')), request);
    await bed.checkpoint();
    await bed.run(kv(put('a', '2')), { requestId: 'r2', deadlineMs: 5_000 });
    bed.crash();
    expect(bed.state.applied.index).toBe(1);
    expect(await bed.run(kv(put('a', '1')), request)).toEqual(first);
    expect(show(await bed.ok(kv(range('a'))))).toBe('a=1@2/2/1');
  });

  test('a command past its deadline is refused, remembered or not', async () => {
    const bed = new StateBed();
    const request = { requestId: 'r1', deadlineMs: 5_000 };
    await bed.run(kv(put('a', '1')), request);
    bed.timeMs = 5_001;
    expect(await bed.run(kv(put('a', '2')), request)).toMatchObject({ ok: false, code: 'DEADLINE_EXCEEDED' });
    expect(await bed.run(kv(put('a', '2')), { requestId: 'r2', deadlineMs: 5_000 })).toMatchObject({
      ok: false,
      code: 'DEADLINE_EXCEEDED',
    });
    expect(show(await bed.ok(kv(range('a'))))).toBe('a=1@2/2/1');
  });

  test('memory is given back once every deadline in it has passed', async () => {
    const bed = new StateBed();
    for (let i = 0; i < 3_000; i++)
      await bed.run(kv(put('a', '1')), { requestId: `r${i}`, deadlineMs: bed.timeMs + 10 });
    expect(bed.state.outcomes.count).toBe(3_000);
    bed.timeMs += 11;
    await bed.ok(kv(put('a', '2')));
    expect(bed.state.outcomes.count).toBe(0);
    expect(bed.state.outcomes.bytes).toBe(0);
  });

  test('range time never goes back, whatever a leader stamps', async () => {
    const bed = new StateBed();
    bed.timeMs = 9_000;
    await bed.ok(kv(put('a', '1')));
    bed.timeMs = 10;
    await bed.ok(kv(put('a', '2')));
    expect(bed.state.rangeTimeMs).toBe(9_000);
  });

  test('a large result is not kept, and its retry says so instead of being applied again', async () => {
    const bed = new StateBed();
    await bed.ok(kv(put('a', 'x'.repeat(20_000))));
    const request = { requestId: 'r1', deadlineMs: 5_000 };
    expect(await bed.run(kv(del('a', undefined, true)), request)).toMatchObject({ ok: true });
    expect(await bed.run(kv(del('a', undefined, true)), request)).toMatchObject({
      ok: false,
      code: 'RESULT_LOST',
    });
  });

  test('a command of another epoch is refused', async () => {
    const bed = new StateBed();
    let outcome: unknown;
    const batch = {
      rangeTimeMs: 1,
      wallMs: 0,
      epoch: { confVersion: 1, version: 2 },
      commands: [{ requestId: '', deadlineMs: 0, command: kv(put('a', '1')) }],
    };
    const onOutcome = (_i: number, o: unknown): void => {
      outcome = o;
    };
    await EntryRun.begin(bed.state, { index: 1, term: 1 }, batch, { onOutcome }).apply();
    expect(outcome).toMatchObject({ ok: false, code: 'STALE_EPOCH' });
    expect(bed.state.conf).toEqual(CONF);
  });
});

describe('leases', () => {
  const grant = (bed: StateBed, id: bigint) => bed.ok({ type: 'leaseGrant', id, ttlMs: 10_000, attributes: {} });
  const lock = { namespace: 'default', name: Buffer.from('l') };

  test('their keys go when they are revoked, but not keys that were put again without the lease', async () => {
    const bed = new StateBed();
    await grant(bed, 7n);
    await bed.ok(kv(put('a', '1', { lease: 7n })));
    await bed.ok(kv(put('b', '1', { lease: 7n })));
    await bed.ok(kv(put('b', '2')));
    await bed.ok({ type: 'leaseRevoke', id: 7n, incarnation: 0 });
    expect(show(await bed.ok(kv(range('a', 'z'))))).toBe('b=2@5/4/2');
    expect(bed.engine.scanResident({ start: Buffer.from([1]), end: Buffer.from([2]) })).toEqual([]);
  });

  test('an id that is in use cannot be granted, and a revoked one gets another incarnation', async () => {
    const bed = new StateBed();
    const first = await grant(bed, 7n);
    expect(await bed.run({ type: 'leaseGrant', id: 7n, ttlMs: 1, attributes: {} })).toMatchObject({
      code: 'LEASE_EXISTS',
    });
    await bed.ok({ type: 'leaseRevoke', id: 7n, incarnation: 0 });
    const second = await grant(bed, 7n);
    if (first.type !== 'leaseGrant' || second.type !== 'leaseGrant') throw new Error('a grant answers as one');
    expect(second.incarnation).toBeGreaterThan(first.incarnation);
    expect(await bed.run({ type: 'leaseRevoke', id: 7n, incarnation: first.incarnation })).toMatchObject({
      code: 'LEASE_NOT_FOUND',
    });
  });

  test('an expiry proposed in an earlier term is refused (traps 17, 18)', async () => {
    const bed = new StateBed();
    const granted = await grant(bed, 7n);
    if (granted.type !== 'leaseGrant') throw new Error('a grant answers as one');
    const expire = { type: 'leaseExpire' as const, id: 7n, incarnation: granted.incarnation, term: 1 };
    bed.term = 2;
    expect(await bed.run(expire)).toMatchObject({ ok: false, code: 'NOT_LEADER' });
    expect(bed.state.leases.get(7n)).toBeDefined();
    expect(await bed.run({ ...expire, term: 2 })).toMatchObject({ ok: true });
    expect(bed.state.leases.get(7n)).toBeUndefined();
  });

  test('the end of a session releases its locks and grants them onward in the same entry', async () => {
    const bed = new StateBed();
    const owners = [];
    for (const id of [7n, 8n]) {
      const granted = await grant(bed, id);
      if (granted.type !== 'leaseGrant') throw new Error('a grant answers as one');
      const owner = { session: { lease: id, incarnation: granted.incarnation }, token: `t${id}` };
      owners.push(owner);
      await bed.ok({
        type: 'lock',
        command: {
          type: 'acquire',
          lock,
          owner,
          wait: true,
          waitUntilMs: 0,
          deadlineMs: 9_000,
          depthMax: 8,
          data: Buffer.alloc(0),
        },
      });
    }
    await bed.ok({ type: 'leaseRevoke', id: 7n, incarnation: 0 });
    expect(bed.notices).toMatchObject([{ owner: owners[1], result: { type: 'granted', version: bed.state.revision } }]);
    expect(bed.state.leases.attached.within(8n, bed.state.bounds).locks).toEqual([lock]);
    const other = { namespace: 'default', name: Buffer.from('other\0lock') };
    const row = attachedLockRow(leaseKey(8n), lockPrefix(other));
    bed.engine.put(row, Buffer.from('\x07defaultother\0lock')); // As earlier programs wrote it.
    expect(bed.state.leases.attached.within(8n, bed.state.bounds).locks).toEqual([lock, other]);
  });
});
