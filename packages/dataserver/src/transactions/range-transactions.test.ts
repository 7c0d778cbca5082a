import { InvariantError } from '@remora/base';
import { type DeleteOp, kvRoutingKey, type PutOp } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { put, range, StateBed, show } from '../../test/support/state-bed.ts';
import {
  commitAt,
  decide,
  del,
  equals,
  neighbours,
  prepare,
  prepared,
  resolve,
  send,
  txnResult,
} from '../../test/support/txn-bed.ts';

const lease = (id: bigint) => ({ type: 'leaseGrant', id, ttlMs: 60_000, attributes: {} }) as const;

async function write(bed: StateBed, revision: number, op: PutOp | DeleteOp) {
  bed.block = { first: revision, count: 1 };
  const outcome = await bed.run({ type: 'kv', op });
  bed.block = undefined;
  return outcome;
}

async function read(bed: StateBed, key: string, end?: string, revision = 0): Promise<string> {
  return show(await bed.ok({ type: 'kv', op: range(key, end, { revision }) }));
}

describe('a transaction over two ranges', () => {
  test('changes both at one revision, and its records and intents go', async () => {
    const [left, right] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { requestId: 'q' }));
    await prepared(right, prepare('t', 1, [put('x', '1')], { requestId: 'q' }));
    const decided = await txnResult(left, decide('t', commitAt(7)), 'txnDecide');
    expect(decided).toMatchObject({ outcome: { state: 'committed' }, results: [{ number: 0 }] });
    expect(left.state.transactions.prepared).toBe(0);
    expect([...left.state.transactions.records]).toHaveLength(1);
    await txnResult(right, resolve('t', commitAt(7), right), 'txnResolve');
    await txnResult(left, { type: 'txnForget', txnId: 't', primaryKey: Buffer.from([3, 0x61]) }, 'txnForget');
    expect(await read(left, 'a')).toBe('a=1@7/7/1');
    expect(await read(right, 'x')).toBe('x=1@7/7/1');
    expect([left, right].map(({ state }) => state.transactions.size)).toEqual([0, 0]);
    expect([left.events, right.events].map((events) => events.map(({ revision }) => revision))).toEqual([[7], [7]]);
  });

  test('executes the branch that was decided, in the order of its operations, and tells the results by number', async () => {
    const [left] = neighbours();
    await write(left, 3, put('b', 'old'));
    const ops = [
      { number: 0, branch: 0, op: put('a', 'then') },
      { number: 1, branch: 1, op: put('b', 'else', { prevKv: true }) },
      { number: 2, branch: 1, op: range('a', 'c') },
    ];
    const compares = [equals('a', 'x'), equals('b', 'old'), { ...equals('c', ''), end: Buffer.from('d') }];
    const answer = await prepared(left, prepare('t', 0, ops, { compares }));
    expect(answer).toMatchObject({
      answer: 'prepared',
      floor: 3,
      compares: ['fails', 'holds', 'nothing'],
      failures: [],
    });
    const { results } = await txnResult(left, decide('t', commitAt(9, [1])), 'txnDecide');
    expect(results?.map(({ number, result }) => [number, result.type])).toEqual([
      [1, 'put'],
      [2, 'range'],
    ]);
    expect(results?.map(({ result }) => show(result))).toEqual(['put', 'b=else@9/3/2']);
  });

  test('says at prepare which branches would change something; one that does not may commit at the floor', async () => {
    const [left] = neighbours();
    await write(left, 3, put('b', 'old'));
    const ops = [
      { number: 0, branch: 0, op: del('e', 'g') },
      { number: 1, branch: 1, op: del('a', 'c') },
      { number: 2, branch: 2, op: put('d', '1') },
      { number: 3, branch: 3, op: range('a', 'c') },
      { number: 4, branch: 4, op: del('a') },
    ];
    expect(await prepared(left, prepare('t', 0, ops))).toMatchObject({ floor: 3, changing: [1, 2] });
    const { results } = await txnResult(left, decide('t', commitAt(3, [0, 3, 4])), 'txnDecide');
    expect(results?.map(({ result }) => result.type)).toEqual(['delete', 'range', 'delete']);
    expect(left.state.revision).toBe(3);
  });

  test('that changes something does not commit at the floor of a part', async () => {
    const [left] = neighbours();
    await write(left, 3, put('b', 'old'));
    await prepared(left, prepare('t', 0, [del('a', 'c')]));
    expect(await left.run(decide('t', commitAt(3)))).toMatchObject({ ok: false, code: 'INVALID_ARGUMENT' });
  });

  test('that is aborted leaves nothing', async () => {
    const [left, right] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')]));
    await prepared(right, prepare('t', 1, [put('x', '1')]));
    expect(await txnResult(left, decide('t', { type: 'abort' }), 'txnDecide')).toMatchObject({
      outcome: { state: 'aborted' },
    });
    await txnResult(right, resolve('t', { type: 'abort' }, right), 'txnResolve');
    expect([await read(left, 'a'), await read(right, 'x')]).toEqual(['', '']);
    expect([left, right].map(({ state }) => state.transactions.size)).toEqual([0, 0]);
  });

  test('reads at a revision that it names in a range whose changes have come so far, and is refused in one that lags', async () => {
    const [left, right] = neighbours();
    await write(left, 3, put('b', 'old'));
    await write(right, 5, put('x', 'old'));
    const codes: unknown[] = [];
    for (const [i, revision] of [3, 5].entries()) {
      const answer = await prepared(left, prepare(`t${i}`, 0, [range('b', undefined, { revision })]));
      codes.push(answer.answer === 'prepared' ? answer.failures.map(({ code }) => code) : answer);
    }
    await write(left, 6, put('c', 'new'));
    await prepared(left, prepare('later', 0, [range('b', undefined, { revision: 5 }), put('d', '1')]));
    const { results } = await txnResult(left, decide('later', commitAt(7)), 'txnDecide');
    expect([codes, results?.map(({ result }) => show(result))]).toEqual([
      [[], ['FUTURE_REVISION']],
      ['b=old@3/3/1', 'put'],
    ]);
  });

  test('operations that cannot be executed are told at prepare, with what single-range requests would fail with', async () => {
    const [left] = neighbours();
    await left.ok({ type: 'noop' });
    const answer = await prepared(
      left,
      prepare('t', 0, [
        put('a', '1', { lease: 9n }),
        put('b', '', { ignoreValue: true }),
        range('c', undefined, { revision: 99 }),
        put('d', '1'),
        del('c', 'e'),
      ]),
    );
    expect(answer.answer === 'prepared' && answer.failures.map(({ number, code }) => [number, code])).toEqual([
      [0, 'LEASE_NOT_FOUND'],
      [1, 'INVALID_ARGUMENT'],
      [2, 'FUTURE_REVISION'],
      [0, 'DUPLICATE_KEY'], // as of the whole branch
    ]);
  });

  test.each([
    ['the decision', 0, (_: StateBed) => decide('t', commitAt(9, [0, 1]))],
    ['a resolve', 1, (bed: StateBed) => resolve('t', commitAt(9, [0, 1]), bed)],
  ] as const)(
    'PE1: %s that makes the part change a key twice stops the process, and nothing is applied',
    async (...row) => {
      const [_name, part, commit] = row;
      const [left] = neighbours();
      const ops = [
        { number: 0, branch: 0, op: put('a', '1') },
        { number: 1, branch: 1, op: del('a', 'c') },
      ];
      const answer = await prepared(left, prepare('t', part, ops));
      expect(answer).toMatchObject({ answer: 'prepared', failures: [] }); // As these may exclude each other.
      await expect(left.run(commit(left))).rejects.toThrow(InvariantError);
      expect([left.events, left.state.transactions.prepared]).toEqual([[], 1]);
    },
  );

  test('keeps no key for a lease that has ended, though the key is there yet', async () => {
    const [left] = neighbours();
    left.block = { first: 2, count: 5_000 };
    await left.ok(lease(5n));
    const keys = Array.from({ length: 251 }, (_, i) => put(`k${1_000 + i}`, '1', { lease: 5n }));
    await left.batch(keys.map((op) => ({ command: { type: 'kv', op } })));
    await left.ok({ type: 'leaseRevoke', id: 5n, incarnation: 0 }); // It leaves one for the next entry (LC1).
    const op = put('k1250', '2', { ignoreLease: true });
    expect(await left.run({ type: 'kv', op })).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
    const failures = [{ number: 0, code: 'LEASE_NOT_FOUND' }];
    expect(await prepared(left, prepare('t', 0, [op]))).toMatchObject({ answer: 'prepared', failures });
  });
});

describe('T2: intents', () => {
  test.each([
    { name: 'a put of a key that is written', command: put('a', '2') },
    { name: 'a put of a key that is compared', command: put('c', '2') },
    { name: 'a put into a span that is read', command: put('e', '2') },
    { name: 'a delete of a span with such a key', command: del('b', 'd') },
  ])('$name waits, and changes nothing', async ({ command }) => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1'), range('d', 'f')], { compares: [equals('c', '')] }));
    expect(await write(left, 5, command)).toMatchObject({ ok: false, code: 'UNAVAILABLE', details: { heldBy: 't' } });
    await txnResult(left, decide('t', commitAt(4)), 'txnDecide');
    expect(await write(left, 5, command)).toMatchObject({ ok: true });
  });

  test('a put beside all intents does not wait, and neither does a read of what is only read', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1'), range('d', 'f')]));
    expect(await write(left, 5, put('b', '1'))).toMatchObject({ ok: true });
    expect(await read(left, 'd', 'f')).toBe('');
    expect(await left.run({ type: 'kv', op: range('a') })).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
  });

  test('a prepare that meets them fails at once, and says who is in the way', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { requestId: 'q' }));
    const other = prepare('u', 0, [put('b', '1')], { compares: [equals('a', '')] });
    expect(await prepared(left, other)).toMatchObject({
      answer: 'conflict',
      holders: [{ txnId: 't', requestId: 'q' }],
    });
    expect(await write(left, 5, put('b', '1'))).toMatchObject({ ok: true });
  });

  test('two that only read the same keys are prepared side by side', async () => {
    const [left] = neighbours();
    expect(await prepared(left, prepare('t', 0, [range('a', 'c')]))).toMatchObject({ answer: 'prepared' });
    expect(await prepared(left, prepare('u', 0, [range('b')]))).toMatchObject({ answer: 'prepared' });
  });

  test('what either branch may write is held, whichever is executed', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [{ number: 0, branch: 1, op: put('b', '1') }]));
    expect(await write(left, 5, put('b', '2'))).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
  });

  test('the end of a lease waits for writes that belong to it, and then takes them along', async () => {
    const [left] = neighbours();
    left.state.leases.grant({ id: 5n, incarnation: 1, ttlMs: 60_000, attributes: {}, spans: [], change: 0 });
    await prepared(left, prepare('t', 0, [put('a', '1', { lease: 5n })]));
    const revoke = { type: 'leaseRevoke', id: 5n, incarnation: 0 } as const;
    left.block = { first: 20, count: 10 };
    expect(await left.run(revoke)).toMatchObject({ ok: false, code: 'UNAVAILABLE', details: { heldBy: 't' } });
    await txnResult(left, decide('t', commitAt(12)), 'txnDecide');
    expect(await read(left, 'a')).toBe('a=1@12/12/1');
    expect(await left.run(revoke)).toMatchObject({ ok: true });
    expect(await read(left, 'a')).toBe('');
  });

  test('the end of a lease waits for a transaction over a key that belongs to it', async () => {
    const [left] = neighbours();
    left.block = { first: 2, count: 10 };
    await left.ok(lease(5n));
    await left.ok({ type: 'kv', op: put('b', '1', { lease: 5n }) });
    await prepared(left, prepare('t', 0, [range('b')]));
    const revoke = { type: 'leaseRevoke', id: 5n, incarnation: 0 } as const;
    expect(await left.run(revoke)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
  });

  test('a compaction waits for commits that it would be above, and for reads of older revisions', async () => {
    const [left] = neighbours();
    await write(left, 4, put('a', '1'));
    await prepared(left, prepare('t', 0, [range('a', undefined, { revision: 2 })]));
    await prepared(left, prepare('u', 0, [put('b', '1')]));
    await write(left, 9, put('c', '1'));
    expect(await left.run({ type: 'compact', revision: 5 })).toMatchObject({ ok: false, details: { heldBy: 't' } });
    await txnResult(left, decide('t', { type: 'abort' }), 'txnDecide');
    expect(await left.run({ type: 'compact', revision: 5 })).toMatchObject({ ok: false, details: { heldBy: 'u' } });
    expect(await left.run({ type: 'compact', revision: 4 })).toMatchObject({ ok: true });
    await txnResult(left, decide('u', commitAt(7)), 'txnDecide');
    expect(await left.run({ type: 'compact', revision: 8 })).toMatchObject({ ok: true });
  });
});

describe('T3: the decision', () => {
  test('is made once', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { requestId: 'q' }));
    const first = await txnResult(left, decide('t', commitAt(5), 'q'), 'txnDecide');
    for (const decision of [commitAt(6), { type: 'abort' }, { type: 'push' }] as const) {
      expect(await txnResult(left, decide('t', decision, 'q'), 'txnDecide')).toEqual(first);
    }
    expect(await read(left, 'a')).toBe('a=1@5/5/1');
  });

  test('a push tells how long a transaction may still commit, and aborts it afterwards', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { expiresMs: 1_500 }));
    const push = decide('t', { type: 'push' });
    expect((await txnResult(left, push, 'txnDecide')).outcome).toEqual({ state: 'pending', remainingMs: 500 });
    left.timeMs = 1_500.5;
    expect((await txnResult(left, push, 'txnDecide')).outcome).toEqual({ state: 'aborted' });
    expect((await txnResult(left, decide('t', commitAt(5)), 'txnDecide')).outcome).toEqual({ state: 'aborted' });
    expect(await read(left, 'a')).toBe('');
  });

  test('a transaction that has expired does not commit, though nobody has pushed it', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { expiresMs: 1_500 }));
    left.timeMs = 1_501;
    expect((await txnResult(left, decide('t', commitAt(5)), 'txnDecide')).outcome).toEqual({ state: 'aborted' });
    expect(left.state.transactions.size).toBe(0);
  });
});

describe('T4 and T5: revisions', () => {
  test('a commit may be older than what was applied to other keys meanwhile, and what follows is above both', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')]));
    await write(left, 9, put('b', '1'));
    await txnResult(left, decide('t', commitAt(7)), 'txnDecide');
    expect(left.state.revision).toBe(9);
    expect(await read(left, 'a', 'c')).toBe('a=1@7/7/1 b=1@9/9/1');
    expect(await read(left, 'a', 'c', 8)).toBe('a=1@7/7/1');
    expect(await write(left, 8, put('c', '1'))).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
  });

  test('a range that was only read writes above the commit from then on', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [range('a')]));
    await txnResult(left, decide('t', commitAt(7)), 'txnDecide');
    expect(left.state.revision).toBe(7);
    expect(await write(left, 6, put('a', '1'))).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
  });

  test('a commit at or below what the range had when it prepared is refused', async () => {
    const [left] = neighbours();
    await write(left, 9, put('b', '1'));
    await prepared(left, prepare('t', 0, [put('a', '1')]));
    expect(await left.run(decide('t', commitAt(9)))).toMatchObject({ ok: false, code: 'INVALID_ARGUMENT' });
    expect(left.state.transactions.record('t')?.commit).toBeUndefined();
  });

  test('the earliest commit is above the floor of every part that may write', async () => {
    const [left] = neighbours();
    const { transactions } = left.state;
    expect(transactions.earliestCommit()).toBe(Number.POSITIVE_INFINITY);
    await prepared(left, prepare('r', 0, [range('h')]));
    await write(left, 3, put('b', '1'));
    await prepared(left, prepare('t', 0, [put('a', '1')]));
    await write(left, 8, put('b', '2'));
    await prepared(left, prepare('u', 0, [put('c', '1')]));
    expect(transactions.earliestCommit()).toBe(4);
    await txnResult(left, decide('t', commitAt(5)), 'txnDecide');
    expect(transactions.earliestCommit()).toBe(9);
  });
});

describe('T8: applied once', () => {
  test('a later attempt at a request that committed is told what this range had of it', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { requestId: 'q' }));
    await txnResult(left, decide('t', commitAt(7)), 'txnDecide');
    expect(await prepared(left, prepare('u', 0, [put('a', '1')], { requestId: 'q' }))).toMatchObject({
      ...{ answer: 'remembered', revision: 7 },
      result: { type: 'txnPart', txnId: 't', commit: { revision: 7 }, results: [{ number: 0 }] },
    });
    expect(left.state.transactions.prepared).toBe(0);
  });

  test('a request that was applied while one range had all keys is not prepared again', async () => {
    const [left] = neighbours();
    left.block = { first: 5, count: 1 };
    await left.run({ type: 'kv', op: put('a', '1') }, { requestId: 'q', deadlineMs: 20_000 });
    const answer = await prepared(left, prepare('u', 0, [put('a', '1')], { requestId: 'q' }));
    expect(answer).toMatchObject({ answer: 'remembered', revision: 5, result: { type: 'put' } });
  });

  test('a request that failed before fails so again', async () => {
    const [left] = neighbours();
    left.block = { first: 5, count: 1 };
    const bad = put('a', '1', { lease: 9n });
    await left.run({ type: 'kv', op: bad }, { requestId: 'q', deadlineMs: 20_000 });
    expect(await send(left, prepare('u', 0, [bad], { requestId: 'q' }))).toMatchObject({ code: 'LEASE_NOT_FOUND' });
  });

  test('one range alone does not answer for a transaction over several', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { requestId: 'q' }));
    await txnResult(left, decide('t', commitAt(7)), 'txnDecide');
    const again = await left.run({ type: 'kv', op: put('a', '1') }, { requestId: 'q', deadlineMs: 20_000 });
    expect(again).toMatchObject({ ok: false, code: 'RESULT_LOST' });
  });
});

describe('T9: what comes late', () => {
  test('a prepare that comes again is answered as before, and prepares nothing', async () => {
    const [left] = neighbours();
    const first = await prepared(left, prepare('t', 0, [put('a', '1')]));
    await txnResult(left, decide('t', { type: 'abort' }), 'txnDecide');
    expect(await prepared(left, prepare('t', 0, [put('a', '1')]))).toEqual(first);
    expect(left.state.transactions.size).toBe(0);
  });

  test('a prepare that comes first after its abort is refused', async () => {
    const [left, right] = neighbours();
    await txnResult(left, decide('t', { type: 'abort' }), 'txnDecide');
    await txnResult(right, resolve('t', { type: 'abort' }, right), 'txnResolve');
    expect(await prepared(left, prepare('t', 0, [put('a', '1')]))).toMatchObject({ answer: 'aborted' });
    expect(await prepared(right, prepare('t', 1, [put('x', '1')]))).toMatchObject({ answer: 'aborted' });
    expect([left, right].map(({ state }) => state.transactions.size)).toEqual([0, 0]);
  });

  test('a prepare behind its expiry is refused', async () => {
    const [left] = neighbours();
    left.timeMs = 1_600;
    const late = await send(left, prepare('t', 0, [put('a', '1')], { expiresMs: 1_500 }));
    expect(late).toMatchObject({ ok: false, code: 'DEADLINE_EXCEEDED' });
  });

  test('a resolve that comes again tells the results again, and changes nothing', async () => {
    const [, right] = neighbours();
    await prepared(right, prepare('t', 1, [put('x', '1')], { requestId: 'q' }));
    const first = await right.ok(resolve('t', commitAt(7), right, 'q'));
    expect(await right.ok(resolve('t', commitAt(7), right, 'q'))).toEqual(first);
    expect(await read(right, 'x')).toBe('x=1@7/7/1');
  });
});

test('a range that counts by itself prepares nothing', async () => {
  const [left] = neighbours();
  left.state.descriptor = { ...left.state.descriptor, revisionSource: 'range' };
  expect(await send(left, prepare('t', 0, [put('a', '1')]))).toMatchObject({ ok: false, code: 'INVALID_ARGUMENT' });
});

test('what is prepared and decided outlives a crash, as of the last checkpoint and as of the log', async () => {
  const [left] = neighbours();
  const ops = [put('a', '1'), del('b', 'd'), range('e', undefined, { revision: 0 })];
  await prepared(left, prepare('t', 0, ops, { requestId: 'q', compares: [equals('f', '1')] }));
  await prepared(left, prepare('u', 0, [put('g', '1')]));
  await txnResult(left, decide('u', commitAt(5)), 'txnDecide');
  await left.checkpoint();
  const before = { parts: [...left.state.transactions.parts], records: [...left.state.transactions.records] };
  await txnResult(left, decide('t', { type: 'abort' }), 'txnDecide');
  left.crash();
  const { transactions } = left.state;
  expect({ parts: [...transactions.parts], records: [...transactions.records] }).toEqual(before);
  await txnResult(left, decide('t', { type: 'abort' }), 'txnDecide');
  await left.checkpoint();
  left.crash();
  expect(left.state.transactions.prepared).toBe(0);
  expect([...left.state.transactions.records].map(({ txnId }) => txnId)).toEqual(['u']);
});

describe('a split', () => {
  async function split(bed: StateBed): Promise<StateBed> {
    const at = kvRoutingKey(Buffer.from('d'));
    const { epoch } = bed.state.descriptor;
    const replicas = [{ nodeId: 1, replicaId: 31 }];
    await bed.ok({ type: 'split', at, epoch, childId: 9, replicas, keys: 0, bytes: 0 });
    const [start] = bed.children;
    if (start === undefined) throw new Error('a split makes a child');
    return new StateBed({ engine: bed.engine, start });
  }

  test('parts intents and operations by their keys, and each side resolves what it has', async () => {
    const [left] = neighbours();
    for (const [i, key] of ['b', 'e'].entries()) await write(left, 3 + i, put(key, 'old'));
    const ops = [put('a', '1'), del('b', 'f', true), range('c', 'g'), put('h', '1')];
    await prepared(left, prepare('t', 1, ops, { requestId: 'q', compares: [equals('i', '')] }));
    const right = await split(left);
    expect(await write(left, 9, put('b', '2'))).toMatchObject({ details: { heldBy: 't' } });
    for (const key of ['e', 'f', 'h', 'i']) {
      expect(await write(right, 9, put(key, '2'))).toMatchObject({ details: { heldBy: 't' } });
    }
    const results = [];
    for (const bed of [left, right]) {
      results.push(...((await txnResult(bed, resolve('t', commitAt(8), bed, 'q'), 'txnResolve')).results ?? []));
    }
    const told = results.map(({ number, key, result }) => [number, `${key}`, 'deleted' in result && result.deleted]);
    expect(told).toEqual([
      [10, 'a', false],
      [11, 'b', 1],
      [12, 'c', false],
      [11, 'd', 1],
      [12, 'd', false],
      [13, 'h', false],
    ]);
    expect([await read(left, 'a', 'd'), await read(right, 'd', 'm')]).toEqual(['a=1@8/8/1', 'h=1@8/8/1']);
    expect([left, right].map(({ state }) => state.transactions.size)).toEqual([0, 0]);
  });

  test('takes the record to the side of its key, and the child keeps what it was handed through a crash', async () => {
    const [left] = neighbours();
    const primaryKey = kvRoutingKey(Buffer.from('h'));
    await prepared(left, prepare('t', 0, [put('h', '1')], { primaryKey }));
    const right = await split(left);
    expect([left, right].map(({ state }) => state.transactions.record('t') !== undefined)).toEqual([false, true]);
    await left.checkpoint();
    await right.checkpoint();
    right.crash();
    expect(right.state.transactions.prepared).toBe(1);
    const decided = await txnResult(right, { ...decide('t', commitAt(7)), primaryKey }, 'txnDecide');
    expect(decided.results).toMatchObject([{ number: 0 }]);
  });

  test('that parts a lease from a staged write leaves the child with a reference, and its home with the span', async () => {
    const [left] = neighbours();
    left.state.leases.grant({ id: 5n, incarnation: 1, ttlMs: 60_000, attributes: {}, spans: [], change: 0 });
    await prepared(left, prepare('t', 1, [put('h', '1', { lease: 5n })]));
    const right = await split(left);
    const [span] = left.state.leases.get(5n)?.spans ?? [];
    if (span === undefined) throw new Error('the home knows where more of the lease may be');
    expect(right.state.references.get(5n)).toMatchObject({ incarnation: 1, spans: [span] });
    right.block = { first: 20, count: 10 };
    const end = { type: 'leaseEnd', id: 5n, incarnation: 1, span } as const;
    expect(await right.run(end)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    await right.ok({ type: 'txnResolve', txnId: 't', part: 1, requestId: '', span, resolution: commitAt(9) });
    expect(right.state.keys).toBe(1);
    expect(await right.ok(end)).toMatchObject({ more: false });
    expect([right.state.keys, right.state.references.size]).toEqual([0, 0]);
  });
});

describe('ranges that both had a part of a transaction, merged before all is told', () => {
  const AT_ONCE = { ownMs: 1_000, otherMs: 1_000 };

  async function committed(): Promise<readonly [StateBed, StateBed]> {
    const [left, right] = neighbours();
    await prepared(left, prepare('t', 1, [put('a', '1')], { requestId: 'q' }));
    await prepared(right, prepare('t', 2, [put('x', '1')], { requestId: 'q' }));
    await txnResult(right, resolve('t', commitAt(7), right, 'q'), 'txnResolve');
    return [left, right];
  }

  test('tell the results of both, whichever part is asked for again', async () => {
    const [left, right] = await committed();
    await txnResult(left, resolve('t', commitAt(7), left, 'q'), 'txnResolve');
    left.state.outcomes.unite(right.state.outcomes, AT_ONCE);
    const { results } = await txnResult(left, resolve('t', commitAt(7), left, 'q'), 'txnResolve');
    expect(results?.map(({ number }) => number)).toEqual([10, 20]);
    left.timeMs = 30_001;
    await left.ok({ type: 'noop' });
    expect(left.state.outcomes.count).toBe(0);
    expect(left.state.outcomes.recall('q')).toBeUndefined();
  });

  test('tell those of the one that was resolved before the merge with those of the other', async () => {
    const [left, right] = await committed();
    left.state.outcomes.unite(right.state.outcomes, AT_ONCE);
    const { results } = await txnResult(left, resolve('t', commitAt(7), left, 'q'), 'txnResolve');
    expect(results?.map(({ number }) => number)).toEqual([10, 20]);
  });

  test('do not pretend to know all results when one of them has lost its own', async () => {
    const [left, right] = neighbours();
    await write(right, 3, put('x', 'v'.repeat(20_000)));
    await prepared(left, prepare('t', 1, [put('a', '1')], { requestId: 'q' }));
    await prepared(right, prepare('t', 2, [range('x')], { requestId: 'q' }));
    for (const bed of [left, right]) await txnResult(bed, resolve('t', commitAt(7), bed, 'q'), 'txnResolve');
    left.state.outcomes.unite(right.state.outcomes, AT_ONCE);
    expect(await txnResult(left, resolve('t', commitAt(7), left, 'q'), 'txnResolve')).toMatchObject({
      results: undefined,
    });
  });
});

describe('what a range does with its parts is the same on a node that has started again', () => {
  /** The same in both, one of which starts again once all is prepared. */
  async function twice(act: (bed: StateBed) => Promise<void>): Promise<readonly [StateBed, StateBed]> {
    const [[steady], [restarted]] = [neighbours(), neighbours()];
    for (const bed of [steady, restarted]) await act(bed);
    await restarted.checkpoint();
    restarted.crash();
    return [steady, restarted];
  }
  const remembered = (bed: StateBed) => [...bed.state.outcomes.askable(0)];

  test('although they came in another order, and one operation is in two of them: the pieces of a range that was parted', async () => {
    const piece = (key: string) => ({ number: 3, branch: 0, op: del(key, undefined, true) });
    const beds = await twice(async (bed) => {
      for (const key of ['b', 'c']) await write(bed, key === 'b' ? 2 : 3, put(key, '1'));
      await prepared(bed, prepare('t', 2, [piece('c')], { requestId: 'q' }));
      await send(bed, prepare('t', 1, [piece('b')], { requestId: 'q' }), 19_000);
    });
    const answers = [];
    for (const bed of beds) answers.push(await txnResult(bed, resolve('t', commitAt(7), bed, 'q'), 'txnResolve'));
    expect(answers[0]?.results).toHaveLength(2);
    expect(answers[1]).toEqual(answers[0]);
    expect(remembered(beds[1])).toEqual(remembered(beds[0]));
  });

  test('who was in the way of a transaction is told and remembered alike', async () => {
    const beds = await twice(async (bed) => {
      for (const [txnId, key] of [
        ['u', 'b'],
        ['s', 'a'],
        ['t', 'aa'],
      ] as const) {
        await prepared(bed, prepare(txnId, 1, [put(key, '1')]));
      }
    });
    const conflicts = [];
    for (const bed of beds) conflicts.push(await prepared(bed, prepare('v', 1, [del('a', 'c'), put('b', '2')])));
    expect(conflicts[0]).toMatchObject({
      answer: 'conflict',
      holders: [{ txnId: 's' }, { txnId: 't' }, { txnId: 'u' }],
    });
    expect(conflicts[1]).toEqual(conflicts[0]);
    expect(remembered(beds[1])).toEqual(remembered(beds[0]));
  });
});
