/** Over HTTP: sharing, upgrades and downgrades, semaphores, and barriers. */
import { beforeEach, describe, expect, test } from 'vitest';
import { OF_CLUSTER, OF_KINDS, unseenAnswers } from './described.ts';
import { type Grant, GUID, HttpBed, LOCKS, lockPath as path, type Shown } from './http-bed.ts';

let bed: HttpBed;
beforeEach(() => {
  bed = new HttpBed();
});

const upgrade = (body: object) => ({ target: path('l', 'upgrade'), body });
const downgrade = (body: object) => ({ target: path('l', 'downgrade'), body });
const release = (body: object) => ({ target: path('l', 'release'), body });
const leave = (body: object) => ({ target: path('l', 'leave'), body });

async function mode(): Promise<readonly string[]> {
  const { holders } = await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/l` });
  return holders.map((holder) => holder.mode);
}

async function passing(): Promise<number> {
  const { passing: count = 0 } = await bed.done<{ readonly passing?: number }>({ method: 'GET', target: `${LOCKS}/l` });
  return count;
}

describe('sharing, and semaphores', () => {
  test('readers share, and a semaphore has permits, as many as it was told', async () => {
    await bed.acquire('config', { shared: true });
    await bed.acquire('config', { shared: true });
    expect(await bed.refused({ target: path('config', 'acquire') })).toBe('423 LOCK_BUSY');
    await bed.acquire('builds', { capacity: 2 });
    const tooMany = { permits: 3, capacity: 2 };
    expect(await bed.refused({ target: path('builds', 'acquire'), body: tooMany })).toBe('409 LOCK_PERMITS_EXCEEDED');
    const set = await bed.done({ method: 'PUT', target: path('builds', 'capacity'), body: { capacity: 4 } });
    expect(set).toEqual({ permits: 1, capacity: 4 });
    await bed.acquire('builds', tooMany);
    const shown = await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/builds` });
    expect(shown).toMatchObject({ kind: 'semaphore', permits: 4, capacity: 4, holderCount: 2 });
    const asLock = { method: 'PUT', target: path('config', 'capacity'), body: { capacity: 1 } };
    expect(await bed.refused(asLock)).toBe('409 LOCK_KIND_MISMATCH');
  });
});

describe('from shared to alone and back', () => {
  test('each is a new grant, found again by whoever repeats the call, at any node', async () => {
    const shared = await bed.acquire('l', { shared: true });
    const alone = await bed.done(upgrade(shared));
    expect(alone).toMatchObject({ session: shared.session, token: shared.token, ttlMs: shared.ttlMs });
    expect(alone.version).toBeGreaterThan(shared.version);
    expect(await bed.done<Grant>(upgrade(shared), 1)).toMatchObject({ version: alone.version });
    expect(await mode()).toEqual(['exclusive']);
    const again = await bed.done(downgrade(alone));
    expect(again.version).toBeGreaterThan(alone.version);
    expect(await bed.done<Grant>(downgrade(alone), 1)).toMatchObject({ version: again.version });
    expect(await mode()).toEqual(['shared']);
    const once = await bed.done(upgrade(again));
    expect(once.version).toBeGreaterThan(again.version);
    expect(await bed.done(release(once))).toEqual({ released: true });
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['0/0', 0]);
  });

  test('a repetition that comes late undoes nothing', async () => {
    const shared = await bed.acquire('l', { shared: true });
    const alone = await bed.done(upgrade(shared));
    const again = await bed.done(downgrade(alone));
    expect(await bed.refused(upgrade(shared))).toBe('409 LOCK_CANCELED');
    expect(await mode()).toEqual(['shared']);
    const once = await bed.done(upgrade(again));
    expect(await bed.done<Grant>(downgrade(alone))).toMatchObject({ version: once.version });
    expect(await mode()).toEqual(['exclusive']);
  });

  test('an upgrade waits for the others, as long as asked, and is kept alive meanwhile', async () => {
    const other = await bed.acquire('l', { shared: true, ttl: '1h' });
    const shared = await bed.acquire('l', { shared: true, ttl: '2s' });
    expect(await bed.refused(upgrade(shared))).toBe('423 LOCK_BUSY');
    expect(await bed.refused(upgrade({ ...shared, wait: '5s' }))).toBe('423 LOCK_TIMEOUT');
    const waiting = bed.ask(upgrade({ ...shared, wait: '1m' }));
    await bed.world.run(10_000);
    expect(await bed.refused(upgrade({ ...other, wait: '1m' }))).toBe('409 LOCK_UPGRADE_CONFLICT');
    await bed.done(release(other));
    const { body } = await bed.world.until(waiting);
    expect((body as Grant).validMs).toBeGreaterThan(1_500);
    expect(await mode()).toEqual(['exclusive']);
  });

  test('who hangs up still waits to upgrade, until the call is repeated or a downgrade gives it up', async () => {
    const other = await bed.acquire('l', { shared: true });
    const shared = await bed.acquire('l', { shared: true });
    const caller = new AbortController();
    const lost = bed.ask({ ...upgrade({ ...shared, wait: '1m' }), signal: caller.signal });
    await bed.world.run(100);
    caller.abort();
    await bed.world.until(lost);
    await bed.settled();
    expect(await bed.users('l')).toBe('2/1');
    const repeated = bed.ask(upgrade({ ...shared, wait: '1m' }), 1);
    await bed.world.run(100);
    expect(await bed.done<Grant>(downgrade(shared))).toMatchObject({ version: shared.version });
    expect((await bed.world.until(repeated)).body).toMatchObject({ error: { code: 'LOCK_CANCELED' } });
    expect(await bed.users('l')).toBe('2/0');
    await bed.done(release(other));
    expect(await mode()).toEqual(['shared']);
  });

  test('nothing is changed of a lock that is lost, or that has no modes', async () => {
    const lost = await bed.acquire('l', { shared: true });
    await bed.done({ target: path('l', 'force-release') });
    expect(await bed.refused(upgrade(lost))).toBe('409 LOCK_NOT_HELD');
    expect(await bed.refused(downgrade(lost))).toBe('409 LOCK_NOT_HELD');
    await bed.done(release(lost));
    expect(await bed.refused(upgrade(lost))).toBe('410 SESSION_EXPIRED');
    expect(await bed.refused(downgrade(lost))).toBe('410 SESSION_EXPIRED');
    const permit = await bed.acquire('l', { capacity: 2 });
    expect(await bed.refused(downgrade(permit))).toBe('409 LOCK_KIND_MISMATCH');
    expect(await bed.refused(leave(permit))).toBe('409 LOCK_KIND_MISMATCH');
  });
});

describe('a barrier', () => {
  const pass = (more: object = {}) => ({ target: path('l', 'acquire'), body: { pass: true, ...more } });

  test('lets all go who wait when it is lifted, and nothing of them stays', async () => {
    const held = await bed.acquire('l', { ttl: '1h' });
    expect(await bed.refused(pass())).toBe('423 LOCK_BUSY');
    expect(await bed.refused(pass({ wait: '2s' }))).toBe('423 LOCK_TIMEOUT');
    await bed.settled();
    const waiting = [0, 1].map((node) => bed.ask(pass({ wait: '10m', ttl: '2s' }), node));
    await bed.world.run(60_000);
    expect(await passing()).toBe(2);
    await bed.done(release(held));
    const passed = await Promise.all(waiting.map((one) => bed.world.until(one)));
    expect(passed.map(({ status }) => status)).toEqual([200, 200]);
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['0/0', 0]);
  });

  test('who has passed is told so again, though it is up again, until it says that it knows', async () => {
    const body = { token: GUID, wait: '10m' };
    const held = await bed.acquire('l');
    const caller = new AbortController();
    const lost = bed.ask({ ...pass(body), signal: caller.signal });
    await bed.world.run(100);
    caller.abort();
    await bed.world.until(lost);
    await bed.done(release(held));
    await bed.acquire('l');
    const passed = await bed.done<Grant>(pass(body), 1);
    expect(passed.version).toBeGreaterThan(held.version);
    expect(await bed.done<Grant>(pass(body))).toMatchObject({ version: passed.version });
    expect(await bed.done(release({ token: GUID }))).toEqual({ released: true });
    expect(await bed.refused(pass(body))).toBe('410 SESSION_EXPIRED');
  });

  test('for parties lets them begin together, and end together', async () => {
    const entering = { parties: 2, wait: '1m' };
    expect(await bed.refused({ target: path('l', 'acquire'), body: { parties: 2 } })).toBe('423 LOCK_TIMEOUT');
    const first = bed.ask({ target: path('l', 'acquire'), body: entering });
    await bed.world.run(100);
    expect(await passing()).toBe(1);
    const two = await bed.acquire('l', entering);
    const one = (await bed.world.until(first)).body as Grant;
    expect(await bed.done({ target: path('l', 'renew'), body: one })).toMatchObject({ session: one.session });
    expect(await bed.refused(leave(one))).toBe('423 LOCK_BUSY');
    expect(await bed.users('l')).toBe('1/0');
    expect(await bed.refused(leave({ ...one, wait: '1s' }))).toBe('423 LOCK_TIMEOUT');
    const leaving = bed.ask(leave({ ...one, wait: '1m' }));
    await bed.world.run(100);
    const left = await bed.done(leave(two));
    expect((await bed.world.until(leaving)).body).toEqual(left);
    await bed.acquire('l');
    expect(await bed.done(leave({ ...one, wait: '1m' }), 1)).toEqual(left);
    await bed.done(release(one));
    expect(await bed.refused(leave(one))).toBe('410 SESSION_EXPIRED');
  });

  test('is left by whoever hangs up while it enters', async () => {
    const caller = new AbortController();
    const body = { parties: 2, wait: '1m' };
    const entering = bed.ask({ target: path('l', 'acquire'), body, signal: caller.signal });
    await bed.world.run(100);
    expect(await bed.users('l')).toBe('1/0');
    caller.abort();
    await bed.world.until(entering);
    await bed.settled();
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['0/0', 0]);
  });

  test('does not count again who has left, however late a repetition of the entry comes', async () => {
    const body = { token: GUID, parties: 1, wait: '1m' };
    const one = await bed.acquire('l', body);
    await bed.acquire('l', { parties: 1 });
    const leaving = bed.ask(leave({ ...one, wait: '1s' }));
    await bed.world.run(100);
    expect(await bed.refused({ target: path('l', 'acquire'), body })).toBe('409 LOCK_CANCELED');
    expect(await bed.users('l')).toBe('1/0');
    expect((await bed.world.until(leaving)).status).toBe(423);
  });

  test('is not waited for any more by whoever releases while it leaves, in a session that goes on', async () => {
    const { session } = await bed.done({ target: '/v1/sessions', body: {} });
    const other = bed.ask({ target: path('l', 'acquire'), body: { parties: 2, wait: '1m' } });
    const one = await bed.acquire('l', { session, token: GUID, parties: 2, wait: '1m' });
    await bed.world.until(other);
    const leaving = bed.ask(leave({ ...one, wait: '1m' }));
    await bed.world.run(100);
    expect(await passing()).toBe(1);
    expect(await bed.done(release(one))).toEqual({ released: false, code: 'LOCK_NOT_HELD' });
    expect((await bed.world.until(leaving)).body).toMatchObject({ error: { code: 'LOCK_CANCELED' } });
    expect(await passing()).toBe(0);
    expect(await bed.refused(leave({ ...one, wait: '1m' }))).toBe('409 LOCK_CANCELED');
  });
});

test('the document names nothing of this that was not seen here', () => {
  expect(unseenAnswers((answer) => OF_KINDS.test(answer) && !OF_CLUSTER.test(answer))).toEqual([]);
});
