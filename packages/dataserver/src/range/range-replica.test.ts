import { ServiceError } from '@remora/base';
import { TTL_NEVER_MS } from '@remora/lock';
import {
  type Command,
  decodeEntry,
  encodeEntry,
  kvRoutingKey,
  type Query,
  type RangeReply,
  type RangeRequest,
} from '@remora/protocol';
import { expect, test, vi } from 'vitest';
import { boot, replicaOf } from '../../test/support/booted-store.ts';
import { CrashWorld } from '../../test/support/crash-world.ts';
import { NO_OTHER_RANGES } from '../../test/support/no-other-ranges.ts';
import { DESCRIPTOR, put, range, show } from '../../test/support/state-bed.ts';
import { BORDER, commitAt, decide, prepare } from '../../test/support/txn-bed.ts';
import { LOCK_LIMITS } from './locks/lock-limits.ts';
import type { OtherRanges } from './reshape/other-ranges.ts';

const RANGE = {
  ...DESCRIPTOR,
  replicas: [1, 2, 3].map((id) => ({ replicaId: 10 + id, nodeId: id, type: 'voter' as const })),
};
const KEYS = { start: kvRoutingKey(Buffer.from('a')), end: kvRoutingKey(Buffer.from('b')) };

/**
 * A replica of a range that the master numbers, whose group takes down what it would propose as the leader of term 2.
 */
async function bootProposer(given: Parameters<typeof boot>[1] = {}) {
  const { store } = await boot(new CrashWorld(1), given);
  await store.createReplica({ ...RANGE, revisionSource: 'master' }, 11);
  const replica = replicaOf({ store });
  const proposed: Uint8Array[] = [];
  const propose = (data: Uint8Array) => ({ index: proposed.push(data), term: 2 });
  Object.assign(replica.group, { propose, role: 'leader', term: 2 });
  return { store, replica, proposed };
}

test('only a leader that serves tells the time of its range; others answer without one', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const told = (): number => {
    let reply: RangeReply | undefined;
    const body = { kind: 'query', query: { type: 'range', op: range('a'), serializable: true }, notBefore: 0 } as const;
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', authRevision: 0, deadlineMs: 0, body };
    replica.requests.execute(
      request,
      () => {},
      (_error, answer) => {
        reply = answer;
      },
    );
    if (reply === undefined) throw new Error('it is answered at once');
    return reply.rangeTimeMs;
  };
  expect(told()).toBe(0);
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  expect(told()).toBe(0);
  const batch = { rangeTimeMs: 50_000, wallMs: 0, epoch: RANGE.epoch, commands: [] };
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  expect(told()).toBeGreaterThanOrEqual(50_000);
  replica.roleChanged({ role: 'follower', term: 3, leader: 12 });
  expect(told()).toBe(0);
});

// Found by the simulation of whole clusters (110044): elected as its node stopped, it left a timer.
test('a replica that is closed does not serve, though its group is elected yet', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  replica.close();
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const batch = { rangeTimeMs: 50_000, wallMs: 0, epoch: RANGE.epoch, commands: [] };
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  expect([replica.leading, replica.serving]).toEqual([false, false]);
});

test('who is in the queue waits for its turn without a round of reads; who is not there is told so after one (Q5)', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const lock = { namespace: 'n', name: Buffer.from('l') };
  const owner = (token: string) => ({ session: { lease: 7n, incarnation: 2 }, token });
  const commands: readonly Command[] = [
    { type: 'leaseGrant', id: 7n, ttlMs: 60_000, attributes: {} },
    ...['holds', 'waits'].map((token): Command => {
      const times = { waitUntilMs: 0, deadlineMs: 0 };
      const command = {
        type: 'acquire',
        lock,
        owner: owner(token),
        wait: true,
        depthMax: 1,
        data: Buffer.alloc(0),
      } as const;
      return { type: 'lock', command: { ...command, ...times } };
    }),
    { type: 'lock', command: { type: 'release', lock, owner: owner('holds'), all: true, deadlineMs: 0 } },
  ];
  const apply = (index: number, command: Command): void | Promise<void> => {
    const batched = [{ requestId: '', deadlineMs: 0, command }];
    const data = encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: batched });
    return replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  let rounds = 0;
  Object.assign(replica.group, { readIndex: () => rounds++ });
  const told: string[] = [];
  const ask = (token: string): void => {
    const body = { kind: 'query', query: { type: 'lockAwait', lock, owner: owner(token) }, notBefore: 0 } as const;
    replica.requests.execute(
      { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', authRevision: 0, deadlineMs: 0, body },
      () => {},
      (error, reply) => {
        const result = reply?.result.type === 'lockAwait' ? reply.result.result.type : undefined;
        told.push(`${token} ${error?.code ?? result}`);
      },
    );
  };
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  ask('waits');
  expect(rounds).toBe(1); // nothing of this term is applied: it may be behind
  for (const [i, command] of commands.slice(0, 3).entries()) await apply(i + 1, command);
  ask('waits');
  expect(rounds).toBe(1);
  for (const token of ['holds', 'nobody']) ask(token);
  expect(rounds).toBe(3);
  expect(told).toEqual([]);
  await apply(4, commands[3] ?? expect.fail());
  expect(told).toEqual(['waits granted']);
  store.stop();
});

test('a command that waits for a transaction while its range is split is told so, and never proposed (CQ1)', async () => {
  const { store } = await boot(new CrashWorld(1));
  const whole = { ...RANGE, revisionSource: 'master' } as const;
  await store.createReplica(whole, 11);
  const replica = replicaOf({ store });
  const proposed: Uint8Array[] = [];
  const propose = (data: Uint8Array) => ({ index: proposed.push(data), term: 2 });
  Object.assign(replica.group, { propose, role: 'leader', term: 2 });
  const apply = (command: Command): void | Promise<void> => {
    const { epoch } = replica.state.descriptor;
    const commands = [{ requestId: '', deadlineMs: 0, command }];
    const data = encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch, commands });
    const index = replica.state.applied.index + 1;
    return replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  await apply({ type: 'noop' });
  await apply(prepare('t', 0, [put('a', '1')]));
  const told: string[] = [];
  const ask = (attempt: string): void => {
    const body = { kind: 'command', command: { type: 'kv', op: put('a', '2') } } as const;
    const tell = (error?: ServiceError) => void told.push(`${attempt} ${error?.code ?? 'ok'}`);
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: 'r', authRevision: 0, deadlineMs: 50_000 };
    replica.requests.execute({ ...request, body }, () => {}, tell);
  };
  ask('first');
  const replicas = [1, 2, 3].map((nodeId) => ({ nodeId, replicaId: 30 + nodeId }));
  await apply({ type: 'split', at: BORDER, epoch: RANGE.epoch, childId: 9, replicas, keys: 0, bytes: 0 });
  ask('second');
  expect([told, replica.inFlight().transactionWaits]).toEqual([['second STALE_EPOCH'], 1]); // so it never will be (CM3)
  await apply(decide('t', { type: 'abort' }));
  await new Promise((resolve) => setImmediate(resolve));
  expect([told, replica.inFlight().proposals, proposed]).toEqual([['second STALE_EPOCH', 'first STALE_EPOCH'], 0, []]);
  store.stop();
});

test('a limit refuses no attempt of an acquire of which an earlier one is under way yet (CM5)', async () => {
  const { store } = await boot(new CrashWorld(1), { lockLimits: { ...LOCK_LIMITS, waitersMax: 1 } });
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const proposed: Uint8Array[] = [];
  const propose = (data: Uint8Array) => ({ index: proposed.push(data), term: 2 });
  Object.assign(replica.group, { propose, term: 2 });
  const told: string[] = [];
  const send = async (requestId: string, command: Command): Promise<void> => {
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId, authRevision: 0, deadlineMs: 50_000 };
    replica.requests.execute(
      { ...request, body: { kind: 'command', command } },
      () => {},
      (error, reply) => {
        const result = reply?.result.type === 'lock' ? reply.result.result : undefined;
        told.push(`${requestId} ${error?.code ?? (result?.type === 'refused' ? result.code : result?.type)}`);
      },
    );
    await new Promise((resolve) => setImmediate(resolve)); // then it is proposed
  };
  const acquire = (token: string): Promise<void> => {
    const owner = { session: { lease: 7n, incarnation: 2 }, token };
    const command = { lock: { namespace: 'n', name: Buffer.from('l') }, owner, wait: true, depthMax: 1 } as const;
    const more = { waitUntilMs: 0, deadlineMs: 50_000, data: Buffer.alloc(0) };
    return send(token, { type: 'lock', command: { type: 'acquire', ...command, ...more } });
  };
  const applyNext = (data: Uint8Array): void | Promise<void> => {
    const index = replica.state.applied.index + 1;
    return replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  const applyProposed = (index: number) => applyNext(proposed[index - 1] ?? expect.fail());
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  proposed.push(encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: [] }));
  await applyProposed(1);
  await send('lease', { type: 'leaseGrant', id: 7n, ttlMs: 60_000, attributes: {} });
  await acquire('holds');
  for (const index of [2, 3]) await applyProposed(index);
  for (const token of ['first', 'second']) await acquire(token);
  await applyProposed(4);
  expect(told.splice(0)).toEqual(['lease undefined', 'holds granted', 'first queued']);
  for (const token of ['second', 'third']) await acquire(token);
  expect(told.splice(0)).toEqual(['third RESOURCE_EXHAUSTED']);
  for (const index of [5, 6]) await applyProposed(index);
  expect(told).toEqual(['second queued', 'second queued']);
  store.stop();
});

test('a read that says serializable names no revision at or below which a prepared transaction commits yet, nor is it of one (Q4)', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica({ ...RANGE, revisionSource: 'master' }, 11);
  const replica = replicaOf({ store });
  const apply = (command: Command, revision: number): void | Promise<void> => {
    const commands = [{ requestId: '', deadlineMs: 0, command }];
    const stamps = { rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, block: { first: revision, count: 1 } };
    const index = replica.state.applied.index + 1;
    return replica.apply(
      [{ index, term: 2, type: 'normal', data: encodeEntry({ ...stamps, commands }) }],
      replica.state.conf,
    );
  };
  const asOf: (number | undefined)[] = [];
  const read = (query: Query): Promise<string> =>
    new Promise((resolve) => {
      const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', authRevision: 0, deadlineMs: 0 };
      replica.requests.execute(
        { ...request, body: { kind: 'query', query, notBefore: 0 } },
        () => {},
        (error, reply) => {
          asOf.push(reply?.revision);
          const result = reply?.result.type === 'txn' ? reply.result.results[0] : reply?.result;
          resolve(error?.code ?? (result?.type === 'range' ? show(result) : 'nothing'));
        },
      );
    });
  const reads = (key: string, revision: number): Promise<readonly string[]> => {
    const op = range(key, undefined, { revision });
    const txn = { compare: [], success: [op], failure: [] };
    return Promise.all([
      read({ type: 'range', op, serializable: true }),
      read({ type: 'readTxn', txn, serializable: true }),
    ]);
  };
  await apply({ type: 'kv', op: put('a', '1') }, 3);
  await apply(prepare('t', 0, [put('a', '2')]), 3);
  await apply({ type: 'kv', op: put('b', '1') }, 9);
  expect(await reads('a', 7)).toEqual(['FUTURE_REVISION', 'FUTURE_REVISION']);
  expect(await reads('a', 3)).toEqual(['a=1@3/3/1', 'a=1@3/3/1']);
  asOf.length = 0;
  expect(await reads('a', 0)).toEqual(['a=1@3/3/1', 'a=1@3/3/1']);
  expect(asOf).toEqual([3, 3]); // who watches from 4 on is told of 7
  expect(await reads('b', 0)).toEqual(['b=1@9/9/1', 'b=1@9/9/1']);
  expect(asOf).toEqual([3, 3, 9, 9]);
  expect(await reads('b', 9)).toEqual(['b=1@9/9/1', 'b=1@9/9/1']);
  await apply(decide('t', commitAt(7)), 9);
  expect(await reads('a', 7)).toEqual(['a=2@7/3/2', 'a=2@7/3/2']);
  store.stop();
});

test('a prepare that is under way is not told that it met somebody who waits: it may be prepared yet (CM5)', async () => {
  const { store, replica, proposed } = await bootProposer();
  const apply = (data: Uint8Array): void | Promise<void> => {
    const index = replica.state.applied.index + 1;
    return replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  const told: string[] = [];
  const send = async (attempt: string, requestId: string, command: Command): Promise<void> => {
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId, authRevision: 0, deadlineMs: 50_000 };
    replica.requests.execute(
      { ...request, body: { kind: 'command', command } },
      () => {},
      (error, reply) => {
        const result = reply?.result;
        told.push(`${attempt} ${error?.code ?? (result?.type === 'txnPrepare' ? result.answer : result?.type)}`);
      },
    );
    await new Promise((resolve) => setImmediate(resolve)); // then it is proposed
  };
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  for (const command of [{ type: 'noop' } as const, prepare('t', 0, [put('a', '1')])]) {
    const commands = [{ requestId: '', deadlineMs: 0, command }];
    proposed.push(encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands }));
    await apply(proposed[proposed.length - 1] ?? expect.fail());
  }
  const later = prepare('u', 0, [put('b', '1')]);
  await send('first', 'u/p0', later);
  await send('waits', 'w', { type: 'txn', txn: { compare: [], success: [put('a', '2'), put('b', '2')], failure: [] } });
  await send('again', 'u/p0', later);
  await send('other', 'v/p0', prepare('v', 0, [put('b', '3')]));
  expect(told.splice(0)).toEqual(['other conflict']);
  for (const data of proposed.slice(2)) await apply(data);
  expect([told, replica.state.transactions.isPrepared('u')]).toEqual([['first prepared', 'again prepared'], true]);
  store.stop();
});

test('a request that was allowed by older users and roles is sent back, unless its outcome is known (RE3, CM6)', async () => {
  const known = { revision: 5 };
  const { store, replica, proposed } = await bootProposer({ authRevision: () => known.revision });
  const told: string[] = [];
  const send = async (requestId: string, authRevision: number, kind: 'command' | 'recall' = 'command') => {
    const body = { kind, command: { type: 'kv', op: put(requestId, '1') } } as const;
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId, authRevision, deadlineMs: 50_000, body };
    replica.requests.execute(
      request,
      () => {},
      (error, reply) => {
        const { mayCommit } = error?.details ?? {};
        told.push(error === undefined ? `${reply?.result.type}` : `${error.code}${mayCommit === true ? '?' : ''}`);
      },
    );
    await new Promise((resolve) => setImmediate(resolve)); // then it is proposed
  };
  const apply = (data: Uint8Array): void | Promise<void> => {
    const index = replica.state.applied.index + 1;
    return replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  proposed.push(encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: [] }));
  await apply(proposed[0] ?? expect.fail());
  Object.assign(replica.state.descriptor, { revisionSource: 'range' });
  await send('new', 4);
  await send('unknown', 6, 'recall');
  expect([told.splice(0), proposed.length]).toEqual([['STALE_AUTH', 'STALE_AUTH'], 1]);
  await send('mine', 5);
  await send('cluster', 0);
  expect([told, proposed.length]).toEqual([[], 3]);
  known.revision = 6;
  await send('mine', 5);
  await send('mine', 0, 'recall');
  expect(told.splice(0)).toEqual(['STALE_AUTH?', 'STALE_AUTH?']);
  for (const data of proposed.slice(1)) await apply(data);
  expect(told.splice(0)).toEqual(['put', 'put']);
  await send('mine', 5);
  await send('mine', 0, 'recall');
  expect([told, proposed.length]).toEqual([['put', 'put'], 3]);
  store.stop();
});

test('a compaction at a revision that nobody was given is refused, and not proposed (CL5)', async () => {
  const { store, replica } = await bootProposer();
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const batch = { rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: [] };
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  const given = vi.spyOn(replica.closing, 'whenGiven');
  given.mockImplementation((revision, done) =>
    done(revision > 60 ? new ServiceError('FUTURE_REVISION', 'to come') : undefined),
  );
  const told: (string | undefined)[] = [];
  const compactAt = async (revision: number): Promise<void> => {
    const request = {
      rangeId: RANGE.rangeId,
      epoch: RANGE.epoch,
      requestId: `r${revision}`,
      authRevision: 0,
      deadlineMs: 50_000,
    };
    const body = { kind: 'command', command: { type: 'compact', revision } } as const;
    replica.requests.execute(
      { ...request, body },
      () => {},
      (error) => told.push(error?.code),
    );
    await new Promise((resolve) => setImmediate(resolve)); // then it is proposed
  };
  await compactAt(61);
  expect([told, replica.inFlight().proposals]).toEqual([['FUTURE_REVISION'], 0]);
  await compactAt(60);
  expect([told, replica.inFlight().proposals]).toEqual([['FUTURE_REVISION'], 1]);
  store.stop();
});

test('a query that a fault of the program keeps from being answered ends no node, which the next leader would follow (Q7)', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  Object.assign(replica.group, { readIndex: (done: () => void) => done() });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const batch = { rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: [] };
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  const ask = (of: object): Promise<string> => {
    const query = { type: 'sessions', after: 0n, limit: 9, attributes: {}, ...of } as Query;
    const body = { kind: 'query', query, notBefore: 0 } as const;
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', authRevision: 0, deadlineMs: 0, body };
    return new Promise((resolve) => {
      replica.requests.execute(
        request,
        () => {},
        (error) => resolve(error?.code ?? 'answered'),
      );
    });
  };
  const faulty = new Proxy({}, { ownKeys: () => 'no list' as never });
  const damaged = new Proxy({}, { ownKeys: () => expect.fail('the data are damaged') });
  expect([await ask({}), await ask({ attributes: faulty })]).toEqual(['answered', 'INTERNAL']);
  await expect(ask({ attributes: damaged })).rejects.toThrow('the data are damaged');
  store.stop();
});

test('leases that end at a time are ended a bounded number of locks after the other, whatever becomes of the leader', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const proposed: Uint8Array[] = [];
  const propose = (data: Uint8Array) => ({ index: proposed.push(data) + 1, term: 2 });
  Object.assign(replica.group, { propose, role: 'leader', term: 2 });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const apply = async (data: Uint8Array): Promise<void> => {
    const index = replica.state.applied.index + 1;
    await replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  const ids = Array.from({ length: 10 }, (_, i) => BigInt(i + 1));
  const puts = ids.flatMap((lease) => Array.from({ length: 225 }, (_, i) => put(`${lease}/${i}`, 'v', { lease })));
  const commands: readonly Command[] = [
    ...ids.map((id): Command => ({ type: 'leaseGrant', id, ttlMs: 60_000, attributes: {} })),
    ...puts.map((op): Command => ({ type: 'kv', op })),
  ];
  const batched = commands.map((command) => ({ requestId: '', deadlineMs: 0, command }));
  await apply(encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: batched }));
  const told: (string | undefined)[] = [];
  for (const id of ids) {
    const body = { kind: 'command', command: { type: 'leaseRevoke', id, incarnation: 0 } } as const;
    const request = {
      rangeId: RANGE.rangeId,
      epoch: RANGE.epoch,
      requestId: `${id}`,
      authRevision: 0,
      deadlineMs: 20_000,
      body,
    };
    replica.requests.execute(
      request,
      () => {},
      (error, reply) => told.push(error?.code ?? reply?.result.type),
    );
  }
  const sizes: number[] = [];
  for (let left = 2; left > 0; left--) {
    await vi.waitFor(() => expect(proposed.length).toBe(sizes.length + 1));
    const [entry] = proposed.slice(-1);
    if (entry === undefined) throw new Error('it is proposed');
    sizes.push(decodeEntry(entry).commands.length);
    await apply(entry);
  }
  expect([sizes, told.length, replica.inFlight().proposals]).toEqual([[3, 3], 6, 4]);
  await vi.waitFor(() => expect(proposed.length).toBe(3));
  Object.assign(replica.group, { propose: () => ({ refused: 'notLeader' }), role: 'follower', term: 3 });
  replica.roleChanged({ role: 'follower', term: 3, leader: 12 });
  await vi.waitFor(() => expect(told.length).toBe(10));
  expect([told.slice(6), replica.inFlight().proposals]).toEqual([
    ['UNKNOWN_OUTCOME', 'UNKNOWN_OUTCOME', 'UNKNOWN_OUTCOME', 'NOT_LEADER'],
    0,
  ]);
  await store.stop();
});

test('who is told that a lease has ended lets go of what it has, though there is no room to remember more', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const proposed: Uint8Array[] = [];
  const propose = (data: Uint8Array) => ({ index: proposed.push(data) + 1, term: 2 });
  Object.assign(replica.group, { propose, role: 'leader', term: 2 });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: new Uint8Array() }], replica.state.conf);
  const outcome = { ok: true, revision: 1, result: { type: 'noop' } } as const;
  replica.state.outcomes.remember({ requestId: 'large', deadlineMs: 60_000, outcome }, 1_000_001);
  const refused: (string | undefined)[] = [];
  const commands: readonly Command[] = [
    { type: 'kv', op: put('a', '1') },
    { type: 'leaseEnd', id: 7n, incarnation: 1, span: { start: Buffer.from([2]), end: Buffer.from([4]) } },
  ];
  for (const command of commands) {
    const body = { kind: 'command', command } as const;
    replica.requests.execute(
      {
        rangeId: RANGE.rangeId,
        epoch: RANGE.epoch,
        requestId: command.type,
        authRevision: 0,
        deadlineMs: 20_000,
        body,
      },
      () => {},
      (error) => refused.push(error?.code),
    );
  }
  await vi.waitFor(() =>
    expect(proposed.flatMap((data) => decodeEntry(data).commands)).toMatchObject([{ command: commands[1] }]),
  );
  expect(refused).toEqual(['RESOURCE_EXHAUSTED']);
  await store.stop();
});

test('a leader asks about a lease from the entry that brings it on, without periodic work (LA4, EM4)', async () => {
  const asked: Query[] = [];
  const others: OtherRanges = {
    ...NO_OTHER_RANGES,
    query: (query) => {
      asked.push(query);
      return () => {};
    },
  };
  const { store } = await boot(new CrashWorld(1), { others, leaseAuditMs: 5 });
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const commands: readonly Command[] = [
    { type: 'noop' },
    { type: 'leaseRefer', id: 7n, incarnation: 5, span: KEYS },
    { type: 'leaseGrant', id: 8n, ttlMs: 60_000, attributes: {} },
    { type: 'leaseChange', id: 8n, incarnation: 2, number: 1, ttlMs: TTL_NEVER_MS },
  ];
  const apply = async (command: Command) => {
    const entry = {
      rangeTimeMs: 1,
      wallMs: 0,
      epoch: RANGE.epoch,
      commands: [{ requestId: '', deadlineMs: 0, command }],
    };
    const index = replica.state.applied.index + 1;
    await replica.apply([{ index, term: 2, type: 'normal', data: encodeEntry(entry) }], replica.state.conf);
  };
  for (const command of commands) await apply(command);
  await vi.waitFor(() => expect(asked.map((query) => 'id' in query && query.id).sort()).toEqual([7n, 8n]));
  await store.stop();
});

test('a leader clears a mark that was left in a lock, once its end has passed', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const proposed: Uint8Array[] = [];
  const propose = (data: Uint8Array) => ({ index: proposed.push(data), term: 2 });
  Object.assign(replica.group, { propose, role: 'leader', term: 2 });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const lock = { namespace: 'n', name: Buffer.from('l') };
  const owner = { session: { lease: 7n, incarnation: 2 }, token: 't' };
  const commands: readonly Command[] = [
    { type: 'leaseGrant', id: 7n, ttlMs: 60_000, attributes: {} },
    { type: 'lock', command: { type: 'cancel', lock, owner, deadlineMs: 2 } },
  ];
  for (const command of commands) {
    const batch = {
      rangeTimeMs: 1,
      wallMs: 0,
      epoch: RANGE.epoch,
      commands: [{ requestId: '', deadlineMs: 0, command }],
    };
    const index = replica.state.applied.index + 1;
    await replica.apply([{ index, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  }
  const ofLocks = () =>
    proposed.flatMap((data) => decodeEntry(data).commands).filter(({ command }) => command.type === 'lock');
  await vi.waitFor(() =>
    expect(ofLocks()).toMatchObject([{ command: { command: { type: 'endDelay', lock, owner } } }]),
  );
  await store.stop();
});

test('a read that may not be before a revision waits until nothing comes at or below it, and carries it (Q6)', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica({ ...RANGE, revisionSource: 'master' }, 11);
  const replica = replicaOf({ store });
  const item = { requestId: '', deadlineMs: 0, command: { type: 'kv', op: put('a', '1') } as const };
  const stamps = { rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, block: { first: 3, count: 1 } };
  const data = encodeEntry({ ...stamps, commands: [item] });
  await replica.apply([{ index: 1, term: 2, type: 'normal', data }], replica.state.conf);
  const usedUp: (() => void)[] = [];
  const whenUsedUp = (_revision: number, done: () => void): (() => void) => {
    usedUp.push(done);
    return () => {};
  };
  Object.assign(replica.group, { readIndex: (done: () => void) => done() });
  Object.assign(replica.closing, { whenUsedUp });
  const told: string[] = [];
  const read = async (notBefore: number, serializable = false): Promise<void> => {
    const body = { kind: 'query', query: { type: 'range', op: range('a'), serializable }, notBefore } as const;
    replica.requests.execute(
      { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', authRevision: 0, deadlineMs: 0, body },
      () => {},
      (error, reply) => {
        const shown = reply?.result.type === 'range' ? show(reply.result) : '';
        told.push(error?.code ?? `${shown} at ${reply?.revision}`);
      },
    );
    await new Promise((resolve) => setImmediate(resolve));
  };
  await read(7, true); // a follower has applied 3, and knows of nothing above it
  await read(3, true);
  expect(told.splice(0)).toEqual(['NOT_LEADER', 'a=1@3/3/1 at 3']);
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  await read(7);
  await read(7, true);
  expect([told, usedUp.length]).toEqual([[], 2]);
  for (const done of usedUp) done();
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual(['a=1@3/3/1 at 7', 'a=1@3/3/1 at 7']);
  store.stop();
});

test('the keys that a replica reads and writes are in the load of its node', async () => {
  const { store, replica } = await bootProposer();
  Object.assign(replica.state.descriptor, { revisionSource: 'range' }); // nobody allocates revisions here
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const batch = { rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: [] };
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  const ask = (requestId: string, body: RangeRequest['body']): void => {
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId, authRevision: 0, deadlineMs: 1_000, body };
    replica.requests.execute(
      request,
      () => {},
      () => {},
    );
  };
  ask('', { kind: 'query', query: { type: 'range', op: range('read'), serializable: true }, notBefore: 0 });
  ask('r1', { kind: 'command', command: { type: 'kv', op: put('written', 'x') } });
  const { borders = [], values = [] } = store.heat.take() ?? {};
  const at = (key: string): readonly number[] => {
    const i = borders.findIndex((border) => Buffer.from(border).equals(kvRoutingKey(Buffer.from(key))));
    return values.slice(i * 4, i * 4 + 4);
  };
  expect(at('read')).toEqual([1, 0, 0, 0]);
  expect(at('written')).toEqual([0, 0, 1, 72]);
  store.stop();
});
