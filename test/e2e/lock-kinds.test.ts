import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { connect, type HeldLock, LockStates, type RemoraClient } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { plain } from '../support/plain.ts';
import { RemoraCommand } from './command.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import { askLock, runDocumentedScript, toldOf } from './http-locks.ts';

const WAITERS_MAX = 20;
let cluster: Cluster;
let client: RemoraClient;
let other: RemoraClient;

beforeAll(async () => {
  cluster = await Cluster.start({ flags: { 'lock-waiters-max': String(WAITERS_MAX) } });
  client = await connect({ endpoints: cluster.endpoints });
  other = await connect({ endpoints: [...cluster.endpoints].reverse() });
});
afterAll(async () => {
  await Promise.all([client?.close(), other?.close()]);
  await cluster?.stop();
});

const unique = (name: string) => `${name}/${randomUUID()}`;
const code = (expected: string) => expect.objectContaining({ code: expected });
const waiters = (name: string, count: number) =>
  eventually(`${count} wait for ${name}`, async () => (await client.locks.show(name))?.waiterCount === count);

const passing = (name: string, count: number) =>
  eventually(`${count} wait to pass ${name}`, async () => (await client.locks.show(name))?.passing === count);

/** Kills the leader's process, whose gateway clients use, and waits until it is back. */
async function changeLeader(): Promise<void> {
  const leader = await cluster.leader();
  await cluster.node(leader).end('SIGKILL');
  await cluster.restart(leader);
}

/** Listens to locks, and makes their states of what it is told. */
function watching(names: readonly string[]) {
  const states = new LockStates();
  const [only = ''] = names;
  const events = names.length === 1 ? client.lock(only).events() : client.locks.events();
  const over = (async () => {
    for await (const event of events) states.apply(event);
  })();
  return {
    /** It knows what the locks show. */
    untilTold: () =>
      eventually('all is told', async () => {
        const shown = await Promise.all(names.map((name) => client.locks.show(name)));
        const told = names.map((name) => states.get({ namespace: 'default', name: Buffer.from(name) }));
        return isDeepStrictEqual(plain(told), plain(shown));
      }),
    stop: async () => {
      events.close();
      await over;
    },
  };
}

describe('shared locks', () => {
  test('readers share, a writer has it alone, and who comes later waits behind who came before', async () => {
    const name = unique('rw');
    const readers = await Promise.all([client.rwLock(name).read(), other.rwLock(name).read()]);
    expect(readers.map(({ mode }) => mode)).toEqual(['shared', 'shared']);
    expect(await client.rwLock(name).tryWrite()).toBeUndefined();
    // The same lock, by its other name.
    expect(await client.lock(name).tryAcquire()).toBeUndefined();
    const writing = other.rwLock(name).write();
    await waiters(name, 1);
    expect(await client.rwLock(name).tryRead()).toBeUndefined();
    const reading = client.rwLock(name).read();
    await waiters(name, 2);
    for (const reader of readers) await reader.release();
    const writer = await writing;
    expect(writer.mode).toBe('exclusive');
    expect(writer.version).toBeGreaterThan(Math.max(...readers.map(({ version }) => version)));
    await writer.release();
    await (await reading).release();
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('the signal of a reader is not aborted as another one comes, and is when all are forced out', async () => {
    const name = unique('signal');
    const first = await client.rwLock(name).read();
    const { signal } = first;
    const second = await other.rwLock(name).read();
    expect([await first.check(), signal.aborted]).toEqual([true, false]);
    await client.locks.forceRelease(name);
    await eventually('it is told', () => signal.aborted);
    expect(await second.check()).toBe(false);
  });

  test('an upgrade waits for the other readers, and a downgrade lets readers in; versions grow', async () => {
    const name = unique('upgrade');
    const [held, reader] = await Promise.all([client.rwLock(name).read(), other.rwLock(name).read()]);
    const versions = [held.version];
    await expect(held.upgrade({ wait: 0 })).rejects.toThrow(code('LOCK_BUSY'));
    const upgrading = held.upgrade();
    await waiters(name, 1);
    await expect(reader.upgrade()).rejects.toThrow(code('LOCK_UPGRADE_CONFLICT'));
    const waiting = other.rwLock(name).read();
    await waiters(name, 2);
    await reader.release();
    await upgrading;
    expect(held.mode).toBe('exclusive');
    versions.push(held.version);
    await held.downgrade();
    versions.push(held.version);
    const next = await waiting;
    expect(next.version).toBe(held.version);
    expect([...versions].sort((a, b) => a - b)).toEqual(versions);
    expect(await held.check()).toBe(true);
    await Promise.all([held.release(), next.release()]);
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('an upgrade that is given up leaves the lock shared, and nothing behind', async () => {
    const name = unique('given-up');
    const [held, reader] = await Promise.all([client.rwLock(name).read(), other.rwLock(name).read()]);
    await expect(held.upgrade({ wait: 200 })).rejects.toThrow(code('LOCK_TIMEOUT'));
    const controller = new AbortController();
    const upgrading = held.upgrade({ signal: controller.signal });
    const gaveUp = expect(upgrading).rejects.toThrow(code('CANCELED'));
    await waiters(name, 1);
    controller.abort();
    await gaveUp;
    expect(await client.locks.show(name)).toMatchObject({ kind: 'shared', holderCount: 2, waiterCount: 0 });
    expect([held.state, await held.check()]).toEqual(['active', true]);
    await reader.release();
    await held.upgrade({ wait: 0 });
    expect(await held.check()).toBe(true);
    await held.release();
  });

  test('a reader enters again while a writer waits; how deep has a limit, or none is allowed', async () => {
    const name = unique('reentry');
    const held = await client.rwLock(name).read({ token: 'me', depthMax: 2 });
    const writing = other.rwLock(name).write();
    await waiters(name, 1);
    await held.acquire({ depthMax: 2 });
    await expect(held.acquire({ depthMax: 2 })).rejects.toThrow(code('LOCK_DEPTH_EXCEEDED'));
    await expect(client.rwLock(name).read({ token: 'me', depthMax: 1 })).rejects.toThrow(code('LOCK_DEPTH_EXCEEDED'));
    await held.release();
    await held.release();
    await (await writing).release();
  });
});

describe('semaphores', () => {
  test('permits are never more than there are, wait in order, and come back with the session', async () => {
    const name = unique('semaphore');
    const semaphore = client.semaphore(name, { permits: 3 });
    const session = await other.session();
    const two = await session.semaphore(name, { permits: 3 }).acquire({ permits: 2 });
    const one = await semaphore.acquire();
    expect(one.mode).toBe('permits');
    expect(await semaphore.tryAcquire()).toBeUndefined();
    const waiting = semaphore.acquire({ permits: 2 });
    await waiters(name, 1);
    await one.release();
    // There is one, and nobody overtakes who wants two.
    expect(await semaphore.tryAcquire()).toBeUndefined();
    await session.close();
    expect(two.state).toBe('lost');
    const granted = await waiting;
    expect(await client.locks.show(name)).toMatchObject({ kind: 'semaphore', permits: 2, capacity: 3 });
    await granted.release();
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('the number of permits is changed while it is in use, and stays', async () => {
    const name = unique('capacity');
    const semaphore = client.semaphore(name, { permits: 1 });
    const first = await semaphore.acquire();
    const waiting = other.semaphore(name, { permits: 1 }).acquire();
    await waiters(name, 1);
    await semaphore.setPermits(2);
    const second = await waiting;
    await semaphore.setPermits(1);
    expect(await client.locks.show(name)).toMatchObject({ permits: 2, capacity: 1 });
    await first.release();
    expect(await semaphore.tryAcquire()).toBeUndefined();
    await second.release();
    await expect(other.semaphore(name, { permits: 9 }).acquire({ permits: 2 })).rejects.toThrow(
      code('LOCK_PERMITS_EXCEEDED'),
    );
    await semaphore.resetPermits();
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('a waiter that wants more permits than are left in all fails at once, though others hold them', async () => {
    const name = unique('lowered');
    const semaphore = client.semaphore(name, { permits: 4 });
    const all = await semaphore.acquire({ permits: 4 });
    const tooMuch = other.semaphore(name, { permits: 4 }).acquire({ permits: 4 });
    const refused = expect(tooMuch).rejects.toThrow(code('LOCK_PERMITS_EXCEEDED'));
    await waiters(name, 1);
    await semaphore.setPermits(3);
    await refused;
    expect(await client.locks.show(name)).toMatchObject({ permits: 4, capacity: 3, waiterCount: 0 });
    await all.release();
    await semaphore.resetPermits();
  });

  test.each([0, -1, 1.5])('%d permits are refused', async (permits) => {
    const refused = client.semaphore(unique('bad'), { permits: 3 }).acquire({ permits });
    await expect(refused).rejects.toThrow(code('INVALID_ARGUMENT'));
  });

  test('more permits than there are, and a semaphore without any, are refused', async () => {
    const name = unique('bad');
    await expect(client.semaphore(name, { permits: 3 }).acquire({ permits: 4 })).rejects.toThrow(
      code('LOCK_PERMITS_EXCEEDED'),
    );
    expect(() => client.semaphore(name, { permits: 0 })).toThrow(code('INVALID_ARGUMENT'));
    await expect(client.semaphore(name, { permits: 3 }).setPermits(0)).rejects.toThrow(code('INVALID_ARGUMENT'));
    expect(await client.locks.show(name)).toBeUndefined();
  });
});

describe('locks with a lease of their own', () => {
  test('are freed by their own ttl, when their holder is gone without a word', async () => {
    const [name, kept] = [unique('own'), unique('kept')];
    const [short, fixed] = await Promise.all([
      other.lock(name).acquire({ ttl: '1s' }),
      other.lock(kept).acquire({ ttl: '2s', renew: false }),
    ]);
    await short.orphan();
    const next = client.lock(name).acquire({ wait: '60s' });
    await fixed.extend('1m');
    expect((await next).version).toBeGreaterThan(short.version);
    expect([await fixed.check(), fixed.remainingMs > 45_000]).toEqual([true, true]);
    await Promise.all([(await next).release(), fixed.release()]);
    await eventually('nothing is left', async () => (await client.locks.show(kept)) === undefined);
  });
});

describe('data of a lock', () => {
  test('are changed by their holder alone, while it holds the lock, and go with it', async () => {
    const name = unique('data');
    const held = await client.lock(name).acquire({ data: 'at first' });
    await held.setData('later');
    expect(await other.locks.show(name)).toMatchObject({ holders: [{ data: Buffer.from('later') }] });
    await expect(held.setData('x'.repeat(4_097))).rejects.toThrow(code('INVALID_ARGUMENT'));
    await other.locks.forceRelease(name, { by: 'ops', reason: 'its host is gone' });
    const next = await other.lock(name).acquire({ data: 'of another' });
    const { forced } = (await client.locks.show(name)) ?? {};
    expect(forced).toMatchObject({ by: 'ops', reason: 'its host is gone', version: held.version });
    expect(await client.locks.forget(name)).toBe(true);
    await expect(held.setData('too late')).rejects.toThrow(code('LOCK_NOT_HELD'));
    expect(held.state).toBe('lost');
    expect(await client.locks.show(name)).toMatchObject({ holders: [{ data: Buffer.from('of another') }] });
    expect(next.previousData).toBeUndefined();
    await next.release();
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('stay for the next holder when that was asked for, over a crash too, until they are forgotten', async () => {
    const name = unique('kept');
    const session = await other.session();
    const first = await session.lock(name).acquire({ keepData: true });
    await first.setData('line 7');
    const waiting = client.lock(name).acquire({ keepData: true });
    await waiters(name, 1);
    await session.close();
    const second = await waiting;
    expect(second.previousData).toEqual(Buffer.from('line 7'));
    await second.release();
    // Whoever does not ask for it leaves nothing, and is told of what there is.
    const third = await client.lock(name).acquire({ data: 'of no interest' });
    expect(third.previousData).toEqual(Buffer.from('line 7'));
    await third.release();
    expect(await client.locks.show(name)).toMatchObject({ holderCount: 0, keptData: Buffer.from('line 7') });
    expect([await client.locks.forget(name), await client.locks.forget(name)]).toEqual([true, false]);
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('of readers and of permits are those of each', async () => {
    const name = unique('data-of-each');
    const readers = [
      await client.rwLock(name).read({ data: 'a' }),
      await other.rwLock(name).read({ data: 'b' }),
    ] as const;
    await readers[1].setData('c');
    const shown = await client.locks.show(name);
    expect(shown?.holders.map(({ data }) => Buffer.from(data).toString())).toEqual(['a', 'c']);
    await Promise.all(readers.map((each) => each.release()));
  });
});

describe('barriers', () => {
  test('hold up all who wait at them, and let all go at once when they are lifted, by whom ever', async () => {
    const name = unique('barrier');
    const barrier = client.barrier(name);
    await barrier.wait();
    const held = await barrier.hold();
    await expect(other.barrier(name).hold()).rejects.toThrow(code('LOCK_BUSY'));
    await expect(other.barrier(name).wait({ wait: 100 })).rejects.toThrow(code('LOCK_TIMEOUT'));
    const waiting = [client, client, other].map((each) => each.barrier(name).wait());
    const next = other.lock(name).acquire();
    await waiters(name, 1);
    await passing(name, 3);
    await held.release();
    await Promise.all(waiting);
    const again = await next;
    const once = client.barrier(name).wait();
    await passing(name, 1);
    expect([await barrier.lift({ by: 'ops' }), await barrier.lift()]).toEqual([true, false]);
    await once;
    expect(await again.check()).toBe(false);
    await client.locks.forget(name);
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('let parties begin together and end together, round after round', async () => {
    const name = unique('rounds');
    const log: string[] = [];
    const party = async (each: RemoraClient) => {
      for (let round = 0; round < 3; round++) {
        const stay = await each.doubleBarrier(name, { parties: 3 }).enter();
        log.push(`in ${round}`);
        await stay.leave();
        log.push(`out ${round}`);
      }
    };
    await Promise.all([party(client), party(client), party(other)]);
    const rounds = [0, 1, 2].map((round) => log.filter((line) => line.endsWith(String(round))).map((line) => line[0]));
    for (const round of rounds) expect(round.join('')).toBe('iiiooo');
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('count nobody who gave up, and whose session has ended; and are no locks meanwhile', async () => {
    const name = unique('parties');
    const barrier = client.doubleBarrier(name, { parties: 2 });
    await expect(barrier.enter({ wait: 100 })).rejects.toThrow(code('LOCK_TIMEOUT'));
    await eventually('it is not counted', async () => (await client.locks.show(name)) === undefined);
    const first = barrier.enter();
    await passing(name, 1);
    const stays = [await other.doubleBarrier(name, { parties: 2 }).enter(), await first] as const;
    await expect(stays[0].leave({ wait: 100 })).rejects.toThrow(code('LOCK_TIMEOUT'));
    expect(stays[0].state).toBe('released');
    await stays[1].leave();
    expect(await client.locks.show(name)).toBeUndefined();
    const lock = await client.lock(name).acquire();
    await expect(barrier.enter()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
    await lock.release();
    expect(() => client.doubleBarrier(name, { parties: 0 })).toThrow(code('INVALID_ARGUMENT'));
  });
});

describe('lock-delay', () => {
  test('keeps others off for a while after the session of the holder has ended, and who waits keeps its place', async () => {
    const name = unique('delay');
    const session = await other.session();
    const held = await session.lock(name).acquire({ lockDelay: '1s' });
    const waiting = client.lock(name).acquire();
    await waiters(name, 1);
    const endedMs = performance.now();
    await client.lease.revoke(session.lease);
    expect(await client.locks.show(name)).toMatchObject({
      holders: [{ delayed: true, delayMs: 1_000 }],
      waiterCount: 1,
    });
    expect(await client.locks.check([{ name, version: held.version }])).toEqual([false]);
    expect(await client.lock(name).tryAcquire()).toBeUndefined();
    const next = await waiting;
    // Timers may be early by a millisecond.
    expect(performance.now() - endedMs).toBeGreaterThan(995);
    await next.release();
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('is over at once by a release, by the close of the session, and by force', async () => {
    const name = unique('no-delay');
    const options = { wait: 0, lockDelay: '1m' } as const;
    await (await client.lock(name).acquire(options)).release();
    const session = await other.session();
    await session.lock(name).acquire(options);
    await session.close();
    const revoked = await other.session();
    await revoked.lock(name).acquire(options);
    await client.lease.revoke(revoked.lease);
    await client.locks.forceRelease(name);
    await (await client.lock(name).acquire({ wait: 0 })).release();
    await expect(client.lock(name).acquire({ lockDelay: '61s' })).rejects.toThrow(code('INVALID_ARGUMENT'));
  });
});

describe('sessions', () => {
  test('are listed by their attributes, shown with their locks, and closed by whoever may', async () => {
    const [name, group] = [unique('seen'), unique('group')];
    const session = await other.session({ ttl: '30s', attributes: { group } });
    const [held, taken] = await Promise.all([session.lock(name).acquire(), client.lock(`${name}/2`).acquire()]);
    const waiting = session
      .lock(`${name}/2`)
      .acquire()
      .catch((error) => error);
    await waiters(`${name}/2`, 1);
    const { items, cursor } = await client.sessions.list({ attributes: { group } }).page();
    expect([items.map(({ id }) => id), cursor]).toEqual([[session.lease], undefined]);
    const shown = await client.sessions.show(session.lease);
    expect(shown).toMatchObject({ ttlMs: 30_000, attributes: { group, host: expect.any(String) }, more: false });
    expect(shown?.locks).toMatchObject([
      { mode: 'exclusive', version: held.version, position: 0 },
      { mode: 'exclusive', version: 0, position: 1 },
    ]);
    await client.sessions.close(session.lease);
    expect(await waiting).toMatchObject({ code: 'SESSION_EXPIRED' });
    expect([await client.sessions.show(session.lease), await client.locks.show(name)]).toEqual([undefined, undefined]);
    await expect(client.sessions.close(session.lease)).rejects.toThrow(code('LEASE_NOT_FOUND'));
    await taken.release();
  });
});

test('a queue that is full refuses one more at once, though it would wait, and goes on when there is room', async () => {
  const name = unique('full');
  const held = await client.lock(name).acquire();
  const giveUp = new AbortController();
  const waiting = Array.from({ length: WAITERS_MAX }, () => {
    return client
      .lock(name)
      .acquire({ signal: giveUp.signal })
      .catch(() => {});
  });
  await waiters(name, WAITERS_MAX);
  await expect(other.lock(name).acquire()).rejects.toThrow(code('RESOURCE_EXHAUSTED'));
  giveUp.abort();
  expect(await total('remora_lock_limits_total{limit="waiters"}')).toBeGreaterThan(0);
  await Promise.all(waiting);
  await waiters(name, 0);
  const last = other.lock(name).acquire();
  await waiters(name, 1);
  await held.release();
  await (await last).release();
});

test('a name in use as one kind is refused as another, and is free again afterwards', async () => {
  const name = unique('kind');
  const lock = await client.lock(name).acquire();
  await expect(other.semaphore(name, { permits: 2 }).tryAcquire()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
  await expect(other.semaphore(name, { permits: 2 }).setPermits(2)).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
  await lock.release();
  const permit = await other.semaphore(name, { permits: 2 }).acquire();
  await expect(client.lock(name).acquire()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
  await expect(client.rwLock(name).tryRead()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
  await expect(permit.downgrade()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
  await permit.release();
});

test('readers are asked to let go by the command line, and it waits until all of them have', async () => {
  const name = unique('revoke');
  const command = new RemoraCommand(() => cluster.endpoints);
  const readers = await Promise.all([client.rwLock(name).read(), other.rwLock(name).read()]);
  const asked = readers.map((reader) => new Promise((resolve) => reader.onRevoke(resolve)));
  const revoking = command.begin(['lock', 'revoke', '--wait', '30s', '--reason', 'maintenance', name]);
  expect(await Promise.all(asked)).toEqual([1, 2].map(() => expect.objectContaining({ reason: 'maintenance' })));
  expect((await client.locks.show(name))?.revocation).toMatchObject({ reason: 'maintenance' });
  const [first, second] = readers;
  await first?.release();
  // One that comes meanwhile is not asked.
  const late = await client.rwLock(name).read();
  expect(revoking.alive).toBe(true);
  await second?.release();
  expect(await revoking.ended).toMatchObject({ code: 0, out: `${name} was released\n` });
  expect((await client.locks.show(name))?.revocation).toBeUndefined();
  expect(await command.run('lock', 'revoke', '--wait', '2s', name)).toMatchObject({ code: 75 });
  await late.release();
  const running = command.begin(['lock', 'run', '--stop-on-revoke', name, '--', 'sleep', '60']);
  await eventually('it runs', async () => (await client.locks.show(name))?.holderCount === 1);
  expect(await client.locks.revoke(name, { by: 'ops', reason: 'mine' })).toBe('released');
  expect(await running.ended).toEqual({
    code: 143,
    out: '',
    err: `remora: release of ${name} requested by ops: mine; stopping the command\n`,
  });
});

test('the command line stands in an election and observes it; the leader can be followed by the SDK as well', async () => {
  const name = unique('election');
  const command = new RemoraCommand(() => cluster.endpoints);
  try {
    const observing = command.begin(['election', 'observe', name]);
    await eventually('nobody leads', async () => observing.out === 'no leader\n');
    const leading = command.begin(['election', 'run', '--value', 'host-7', name, '--', 'sleep', '60']);
    await eventually('it leads', async () => observing.out.includes('host-7'));
    const election = client.election(name);
    expect(String((await election.leader())?.value)).toBe('host-7');
    const standing = election.campaign({ value: 'sdk' });
    await waiters(name, 1);
    leading.child.kill('SIGTERM');
    const leadership = await standing;
    await leadership.proclaim('sdk, at work');
    await eventually('all is told', async () => observing.out.includes('sdk, at work'));
    expect(observing.out.split('\n').map((line) => line.split(/ {2}/).at(-1))).toEqual([
      ...['no leader', 'host-7', 'sdk', 'sdk, at work', ''],
    ]);
    await leadership.release();
  } finally {
    await command.endAll();
  }
});

describe('over a change of leader', () => {
  test('what is held stays held, in the way it is held, and who waits keeps its place', async () => {
    const [rw, sem, up, own1, own2] = ['rw', 'sem', 'up', 'own', 'lasting'].map(unique) as [
      string,
      string,
      string,
      string,
      string,
    ];
    const held: HeldLock[] = [
      await client.rwLock(rw).read(),
      await other.rwLock(rw).read(),
      await client.semaphore(sem, { permits: 2 }).acquire({ permits: 2 }),
      await client.rwLock(up).read(),
    ];
    const upgrader = await other.rwLock(up).read();
    const kept = unique('kept');
    await (await client.lock(kept).acquire({ data: 'stays', keepData: true })).release();
    const writing = client.rwLock(rw).write();
    await waiters(rw, 1);
    const reading = other.rwLock(rw).read();
    await waiters(rw, 2);
    const forOne = other.semaphore(sem, { permits: 2 }).acquire();
    await waiters(sem, 1);
    const upgrading = upgrader.upgrade();
    await waiters(up, 1);
    const own = await client.lock(own1).acquire({ ttl: '5s' });
    const lasting = await other.lock(own2).acquire({ ttl: 'never' });
    const watched = [watching([rw]), watching([rw, sem, up])];
    await held[3]?.setData('said before');
    const delayed = unique('delayed');
    const session = await other.session();
    await session.lock(delayed).acquire({ lockDelay: '2s' });
    const [gate, start] = [unique('gate'), unique('start')];
    const closed = await client.barrier(gate).hold();
    const throughGate = other.barrier(gate).wait();
    const entering = client.doubleBarrier(start, { parties: 2 }).enter();
    await Promise.all([passing(gate, 1), passing(start, 1)]);
    const afterDelay = client.lock(delayed).acquire();
    await waiters(delayed, 1);
    await client.lease.revoke(session.lease);
    const endedMs = performance.now();
    const signals = [...held, own, lasting].map(({ signal }) => signal);
    await changeLeader();
    held.push(own, lasting);
    // The gateway is gone too over which heartbeats went: they go on over another one.
    const since = own.remainingMs;
    await eventually('a heartbeat is answered', () => own.remainingMs > since);
    expect(signals.map(({ aborted }) => aborted)).toEqual(signals.map(() => false));
    await own.setCondition({ heartbeat: 300, serverMisses: 10 });
    expect(await Promise.all(held.map((each) => each.check()))).toEqual([true, true, true, true, true, true]);
    expect(await client.locks.show(up)).toMatchObject({ holders: [{ data: Buffer.from('said before') }, {}] });
    const granted = afterDelay.then(async (next) => {
      await next.release();
      return performance.now() - endedMs;
    });
    expect(await client.locks.show(kept)).toMatchObject({ keptData: Buffer.from('stays') });
    await client.locks.forget(kept);
    await Promise.all([waiters(rw, 2), waiters(sem, 1), waiters(up, 1)]);
    expect(await client.rwLock(rw).tryRead()).toBeUndefined();
    await Promise.all(held.map((each) => each.release()));
    const writer = await writing;
    expect(await client.locks.show(rw)).toMatchObject({ kind: 'exclusive', waiterCount: 1 });
    await writer.release();
    await (await reading).release();
    await (await forOne).release();
    await upgrading;
    expect(upgrader.mode).toBe('exclusive');
    for (const each of watched) await each.untilTold();
    await upgrader.release();
    expect(await granted).toBeGreaterThan(1_995);
    const stay = await other.doubleBarrier(start, { parties: 2 }).enter();
    await Promise.all([stay.leave(), entering.then((each) => each.leave())]);
    await Promise.all([closed.release(), throughGate]);
    expect(await Promise.all([rw, sem, up].map((name) => client.locks.show(name)))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    for (const each of watched) {
      await each.untilTold();
      await each.stop();
    }
  });
});

/** Of one metric, over all nodes. */
async function total(metric: string): Promise<number> {
  const texts = await Promise.all(
    cluster.nodes.map(async ({ http }) => (await fetch(`http://${http}/metrics`)).text()),
  );
  const lines = texts.flatMap((text) => text.split('\n').filter((line) => line.startsWith(`${metric} `)));
  return lines.reduce((sum, line) => sum + Number(line.slice(metric.length)), 0);
}

describe('over HTTP', () => {
  test('a lock stays held, and a call that waits keeps its place, over a change of leader', async () => {
    const name = unique('http');
    const leader = await cluster.leader();
    const [holder, waiter] = cluster.nodes.filter((node) => node !== cluster.node(leader));
    if (holder === undefined || waiter === undefined) throw new Error('the cluster has three nodes');
    const held = await askLock(holder, name, 'acquire', { ttl: '30s' });
    expect(held.status).toBe(200);
    const waiting = askLock(waiter, name, 'acquire', { ttl: '30s', wait: '1m' });
    await waiters(name, 1);
    const told = await toldOf(waiter, name);
    await changeLeader();
    expect((await askLock(waiter, name, 'renew', held.body)).status).toBe(200);
    expect((await askLock(holder, name, 'release', held.body)).body).toEqual({ released: true });
    const next = await waiting;
    expect(next.body.version).toBeGreaterThan(held.body.version);
    await told.until(`"version":${next.body.version}`);
    const shown = await fetch(`http://${holder.http}/v1/sessions/${next.body.session}`);
    expect(await shown.json()).toMatchObject({ locks: [{ name, version: next.body.version }], more: false });
    // To others it is a lock as any.
    expect(await client.lock(name).tryAcquire()).toBeUndefined();
    expect((await askLock(cluster.node(leader), name, 'release', next.body)).body).toEqual({ released: true });
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('a lock is upgraded and downgraded, and parties meet, together with clients of the SDK', async () => {
    const [name, start] = [unique('http-upgrade'), unique('http-round')];
    const [node, last] = [cluster.node(1), cluster.node(3)];
    const reader = await client.rwLock(name).read();
    const shared = await askLock(node, name, 'acquire', { shared: true });
    expect((await askLock(last, name, 'upgrade', shared.body)).status).toBe(423);
    const upgrading = askLock(last, name, 'upgrade', { ...shared.body, wait: '1m' });
    await waiters(name, 1);
    await reader.release();
    const alone = await upgrading;
    expect(alone.body.version).toBeGreaterThan(shared.body.version);
    // As when its answer was lost.
    expect((await askLock(node, name, 'upgrade', shared.body)).body.version).toBe(alone.body.version);
    await expect(client.rwLock(name).read({ wait: 0 })).rejects.toThrow(code('LOCK_BUSY'));
    const again = await askLock(node, name, 'downgrade', alone.body);
    await (await client.rwLock(name).read()).release();
    expect((await askLock(last, name, 'release', again.body)).body).toEqual({ released: true });

    const entering = askLock(node, start, 'acquire', { parties: 2, wait: '1m' });
    await passing(start, 1);
    const stay = await client.doubleBarrier(start, { parties: 2 }).enter();
    const inside = await entering;
    const gone = askLock(last, start, 'acquire', { pass: true, wait: '1m' });
    const leaving = stay.leave();
    await passing(start, 2);
    expect((await askLock(last, start, 'leave', { ...inside.body, wait: '1m' })).status).toBe(200);
    await leaving;
    expect((await gone).status).toBe(200);
    expect((await askLock(node, start, 'release', inside.body)).body).toEqual({ released: true });
    expect(await client.locks.show(start)).toBeUndefined();
  });

  test('the script of the documentation runs a command under a lock, and stops it when the lock is lost', async () => {
    const name = unique('script');
    const held = await client.lock(name).acquire();
    const printing = runDocumentedScript(cluster.node(1), name, [
      'sh',
      '-c',
      'echo "fence $REMORA_LOCK_VERSION"; exit 3',
    ]);
    await waiters(name, 1);
    await held.release();
    expect(await printing.ended).toEqual({ code: 3, err: '' });
    expect(Number(/^fence (\d+)\n$/.exec(printing.out())?.[1])).toBeGreaterThan(held.version);
    expect(await client.locks.show(name)).toBeUndefined();
    expect(await total('remora_lock_wait_seconds_count{kind="exclusive"}')).toBeGreaterThan(0);
    expect(await total('remora_sessions')).toBeGreaterThan(0);
    const sleeping = runDocumentedScript(cluster.node(2), name, ['sleep', '60']);
    await eventually('it runs', async () => (await client.locks.show(name))?.holderCount === 1);
    await client.locks.forceRelease(name);
    const { code: exit, err } = await sleeping.ended;
    expect([exit, err]).toEqual([143, expect.stringContaining('409')]);
  });

  test.each(['ends by itself', 'is told to end'])('nothing is left of that script when it %s', async (how) => {
    const name = unique('script');
    const command = how === 'ends by itself' ? ['sleep', '1'] : ['sleep', '60'];
    const run = runDocumentedScript(cluster.node(1), name, command);
    await eventually('it runs', async () => (await client.locks.show(name))?.holderCount === 1);
    await new Promise((resolve) => setTimeout(resolve, 500)); // by when it waits for its next renewal
    if (how === 'is told to end') run.terminate();
    const { code: exit, err } = await run.ended;
    expect([exit, run.isLeft()]).toEqual([how === 'ends by itself' ? 0 : 143, false]);
    expect(err).not.toContain('curl'); // as of a renewal after its release
    expect(await client.locks.show(name)).toBeUndefined();
  });
});
