import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ServiceError } from '@remora/base';
import { OPENAPI } from '@remora/gateway';
import { ownerId } from '@remora/lock';
import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeEach, describe, expect, test } from 'vitest';
import { OF_ACCESS, OF_CLUSTER, OF_HISTORY, OF_KEYS, OF_KINDS, OF_LISTS, unseenAnswers } from './described.ts';
import { type Grant, GUID, HttpBed, LOCKS, lockPath as path, type Shown } from './http-bed.ts';
import { REFUSED } from './refusals.ts';

let bed: HttpBed;
beforeEach(() => {
  bed = new HttpBed();
});

describe('a lock with a session of its own', () => {
  test('is acquired, renewed and released by three calls, each taking what the first one answered', async () => {
    const held = await bed.acquire('orders%2F42', { ttl: '30s', data: 'me' });
    expect(held.ttlMs).toBe(30_000);
    expect(held.validMs).toBeLessThanOrEqual(27_000);
    expect(held.validMs).toBeGreaterThan(26_000);
    expect(await bed.refused({ target: path('orders%2F42', 'acquire') })).toBe('423 LOCK_BUSY');
    expect(await bed.done({ target: path('orders%2F42', 'renew'), body: held })).toMatchObject({ ttlMs: 30_000 });
    const shown = await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/orders%2F42` });
    const terms = { ttlMs: 30_000, remainingMs: expect.any(Number) };
    expect(shown).toMatchObject({
      name: 'orders/42',
      holders: [{ ownerId: ownerId(held.token), data: 'me', ...terms }],
    });
    expect(shown.kind).toBe('exclusive');
    expect(await bed.done({ target: path('orders%2F42', 'release'), body: held })).toEqual({ released: true });
    expect(await bed.users('orders%2F42')).toBe('0/0');
    expect(bed.world.backend.sessions).toBe(0);
    expect((await bed.acquire('orders%2F42')).version).toBeGreaterThan(held.version);
  });

  test('is lost when it is not renewed, and releasing it then is no error', async () => {
    const held = await bed.acquire('l', { ttl: 1_000 });
    await bed.world.run(1_100);
    const next = await bed.acquire('l');
    expect(next.version).toBeGreaterThan(held.version);
    expect(await bed.refused({ target: path('l', 'renew'), body: held })).toBe('410 SESSION_EXPIRED');
    const again = await bed.done({ target: path('l', 'release'), body: held });
    expect(again).toEqual({ released: false, code: 'SESSION_EXPIRED' });
    expect(await bed.done({ target: path('l', 'renew'), body: next })).toMatchObject({ session: next.session });
  });

  test('is kept alive while it waits, however long, and answered with a session that was just renewed', async () => {
    const held = await bed.acquire('l');
    const waiting = bed.ask({ target: path('l', 'acquire'), body: { ttl: '2s', wait: '1m' } });
    for (let i = 0; i < 4; i++) {
      await bed.world.run(10_000);
      await bed.done({ target: path('l', 'renew'), body: held });
    }
    expect(await bed.users('l')).toBe('1/1');
    await bed.done({ target: path('l', 'release'), body: held });
    const { body } = await bed.world.until(waiting);
    const { validMs, version } = body as Grant;
    expect(version).toBeGreaterThan(held.version);
    expect(validMs).toBeGreaterThan(1_500);
  });

  test.each([
    { name: 'is given up by whoever hangs up', wait: '1m', hangsUp: true },
    { name: 'is not waited for longer than asked', wait: '2s', hangsUp: false },
    { name: 'is not waited for unless asked', wait: 0, hangsUp: false },
  ])('$name, and leaves nothing', async ({ wait, hangsUp }) => {
    await bed.acquire('l');
    const caller = new AbortController();
    const waiting = bed.ask({ target: path('l', 'acquire'), body: { wait }, signal: caller.signal });
    if (hangsUp) {
      await bed.world.run(1_000);
      expect(await bed.users('l')).toBe('1/1');
      caller.abort();
      await bed.world.until(waiting);
    } else expect((await bed.world.until(waiting)).status).toBe(423);
    await bed.settled();
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['1/0', 1]);
  });

  test('is given back when nobody took the answer', async () => {
    const answer = await bed.world.until(bed.ask({ target: path('l', 'acquire') }));
    expect(await bed.users('l')).toBe('1/0');
    answer.undelivered?.();
    await bed.settled();
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['0/0', 0]);
  });

  test('is not told as taken by others when its place could not be given up', async () => {
    await bed.acquire('l');
    const { backend, clock } = bed.world;
    const command = backend.command.bind(backend);
    const lost = new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost');
    backend.command = (asked, options, done) => {
      if (asked.type === 'lock' && asked.command.type === 'acquire') {
        // As a gateway does: who numbers its acquires keeps its place.
        const giveUp = command(asked, { ...options, waitMs: 0 }, () => {});
        clock.setTimer(options.waitMs ?? 0, () => done(new ServiceError('LOCK_TIMEOUT', 'not in time'), undefined));
        return giveUp;
      }
      if (asked.type === 'leaseGrant') return command(asked, options, done);
      done(lost, undefined);
      return () => {};
    };
    const waiting = bed.ask({ target: path('l', 'acquire'), body: { wait: '2s' } });
    const { status, body } = await bed.world.until(waiting);
    expect([status, await bed.users('l')]).toEqual([504, '1/1']);
    expect(body).toMatchObject({ error: { code: 'UNKNOWN_OUTCOME', retry: 'same' } });
  });

  test('is not acquired for a client that hung up while its session was opened', async () => {
    const caller = new AbortController();
    bed.world.backend.onApplied = ({ type }) => {
      if (type === 'leaseGrant') caller.abort();
    };
    await bed.world.until(bed.ask({ target: path('l', 'acquire'), signal: caller.signal }));
    await bed.settled();
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['0/0', 0]);
  });
});

describe('an acquire with a token of its own', () => {
  const body = { token: GUID, ttl: '10s', wait: '1m' };

  test('finds its grant again when it is repeated, at any node', async () => {
    const held = await bed.acquire('l', body);
    await bed.world.run(5_000);
    const again = await bed.done<Grant>({ target: path('l', 'acquire'), body }, 1);
    expect(again).toMatchObject({ session: held.session, version: held.version });
    expect(again.validMs).toBeGreaterThan(8_000);
    expect(await bed.users('l')).toBe('1/0');
  });

  test('keeps its place in the queue over a lost connection', async () => {
    const first = await bed.acquire('l', { ttl: '1h' });
    const caller = new AbortController();
    const lost = bed.ask({ target: path('l', 'acquire'), body, signal: caller.signal });
    await bed.world.run(100);
    const later = bed.ask({ target: path('l', 'acquire'), body: { wait: '1m' } });
    await bed.world.run(100);
    caller.abort();
    await bed.world.until(lost);
    await bed.settled();
    expect(await bed.users('l')).toBe('1/2');
    const again = bed.ask({ target: path('l', 'acquire'), body }, 1);
    await bed.world.run(100);
    await bed.done({ target: path('l', 'release'), body: first });
    const { body: grant } = await bed.world.until(again);
    expect((grant as Grant).token).toBe(GUID);
    await bed.done({ target: path('l', 'release'), body: grant });
    expect((await bed.world.until(later)).status).toBe(200);
  });

  test('is left by a release that knows no more than the token, and is over then', async () => {
    await bed.acquire('l', body);
    expect(await bed.done({ target: path('l', 'release'), body: { token: GUID } }, 1)).toEqual({ released: true });
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual(['0/0', 0]);
    const again = await bed.done({ target: path('l', 'release'), body: { token: GUID } });
    expect(again).toEqual({ released: false, code: 'SESSION_EXPIRED' });
    // However late it is repeated.
    expect(await bed.refused({ target: path('l', 'acquire'), body })).toBe('410 SESSION_EXPIRED');
  });

  test.each(['waits for the lock', 'was granted it'])(
    'that %s when its call cannot go on is not told that nothing was changed',
    async (how) => {
      const first = await bed.acquire('l');
      const stop = new AbortController();
      const waiting = bed.ask({ target: path('l', 'acquire'), body, signal: stop.signal });
      await bed.world.run(2_000);
      const stopping = new ServiceError('UNAVAILABLE', 'this node is shutting down');
      if (how === 'waits for the lock') stop.abort(stopping);
      else {
        // While it is found out whether the session is alive.
        const { backend } = bed.world;
        const query = backend.query.bind(backend);
        backend.query = (asked, options, done) => {
          if (asked.type !== 'leaseKeepAlive') return query(asked, options, done);
          done(new ServiceError('RESOURCE_EXHAUSTED', 'the gateway is busy'), undefined);
          return () => {};
        };
        await bed.done({ target: path('l', 'release'), body: first });
      }
      const { status, body: told } = await bed.world.until(waiting);
      expect([status, told]).toMatchObject([504, { error: { code: 'UNKNOWN_OUTCOME', retry: 'same' } }]);
      expect(await bed.users('l')).toBe(how === 'waits for the lock' ? '1/1' : '1/0');
    },
  );

  test('that a release has overtaken is not granted', async () => {
    const release = { target: path('l', 'release'), body: { token: GUID } };
    const unknown = { released: false, code: 'SESSION_EXPIRED' };
    expect([await bed.done(release, 1), bed.world.backend.sessions]).toEqual([unknown, 0]);
    expect(await bed.refused({ target: path('l', 'acquire'), body })).toBe('410 SESSION_EXPIRED');
    expect(await bed.users('l')).toBe('0/0');
    expect(await bed.done(release)).toEqual(unknown);
    expect(bed.world.backend.sessions).toBe(0);
  });

  test('leaves the queue by a release', async () => {
    await bed.acquire('l');
    const waiting = bed.ask({ target: path('l', 'acquire'), body });
    await bed.world.run(100);
    const left = await bed.done({ target: path('l', 'release'), body: { token: GUID } });
    expect(left).toEqual({ released: false, code: 'LOCK_NOT_HELD' });
    expect(await bed.users('l')).toBe('1/0');
    // Either by the release, or by the end of the session that follows it.
    expect([409, 410]).toContain((await bed.world.until(waiting)).status);
  });

  test('of one lock says nothing about another', async () => {
    const one = await bed.acquire('one', body);
    const two = await bed.acquire('two', body);
    expect(one.session).not.toBe(two.session);
  });
});

describe('a session of the client', () => {
  test('has several locks, is renewed with any of them, and releases all when it is closed', async () => {
    const opened = await bed.done({ target: '/v1/sessions', body: { ttl: '10s', attributes: { client: 'nightly' } } });
    const { session } = opened;
    const [a] = [
      await bed.acquire('a', { session, token: `${GUID}a` }),
      await bed.acquire('b', { session, token: `${GUID}b`, wait: '1s' }),
    ];
    await bed.done({ target: path('a', 'release'), body: a });
    expect([await bed.users('a'), await bed.users('b')]).toEqual(['0/0', '1/0']);
    await bed.world.run(8_000);
    expect(await bed.done({ target: `/v1/sessions/${session}/renew`, body: opened })).toEqual(opened);
    await bed.world.run(8_000);
    expect(await bed.users('b')).toBe('1/0');
    expect(await bed.done({ method: 'DELETE', target: `/v1/sessions/${session}` })).toEqual({ closed: true });
    expect(await bed.users('b')).toBe('0/0');
    expect(await bed.refused({ target: `/v1/sessions/${session}/renew` })).toBe('410 SESSION_EXPIRED');
    expect(await bed.refused({ target: path('a', 'acquire'), body: { session, token: `${GUID}c` } })).toBe(
      '410 SESSION_EXPIRED',
    );
  });

  test('is shown with what it holds and waits for, and listed with all others', async () => {
    const { session } = await bed.done({ target: '/v1/sessions', body: { ttl: '10s' } });
    const held = await bed.acquire('a', { session, token: `${GUID}h`, capacity: 3 });
    const other = await bed.acquire('b');
    void bed.ask({ target: path('b', 'acquire'), body: { session, token: `${GUID}w`, wait: '1m' } });
    await bed.world.run(100);
    const shown = await bed.done({ method: 'GET', target: `/v1/sessions/${session}` });
    expect(shown).toMatchObject({
      ...{ session, ttlMs: 10_000, more: false },
      locks: [
        {
          namespace: 'default',
          name: 'a',
          ownerId: ownerId(held.token),
          mode: 'permits',
          permits: 1,
          version: held.version,
        },
        { namespace: 'default', name: 'b', ownerId: ownerId(`${GUID}w`), mode: 'exclusive', position: 1 },
      ],
    });
    const page = (query: string) =>
      bed.done<{ readonly sessions: readonly Grant[]; readonly next?: string }>({
        ...{ method: 'GET', target: `/v1/sessions${query}` },
      });
    const first = await page('?limit=1');
    const rest = await page(`?limit=5&after=${first.next}`);
    const listed = [...first.sessions, ...rest.sessions].map((each) => each.session);
    expect([listed.sort(), rest.next]).toEqual([[session, other.session].sort(), undefined]);
    await bed.done({ method: 'DELETE', target: `/v1/sessions/${session}` });
    expect(await bed.refused({ method: 'GET', target: `/v1/sessions/${session}` })).toBe('410 SESSION_EXPIRED');
  });

  test('wants a token with each acquire, so that no grant stays in it that nobody knows of', async () => {
    const { session } = await bed.done({ target: '/v1/sessions', body: {} });
    const { status, body } = await bed.world.until(bed.ask({ target: path('l', 'acquire'), body: { session } }));
    expect([status, JSON.stringify(body)]).toEqual([
      400,
      expect.stringContaining('token is missing: with a session, choose one yourself'),
    ]);
    expect(await bed.users('l')).toBe('0/0');
  });

  test('stays when a client that waits in it hangs up, and so does its place until it is released', async () => {
    await bed.acquire('l');
    const { session } = await bed.done({ target: '/v1/sessions', body: {} });
    const caller = new AbortController();
    const body = { session, token: `${GUID}t`, wait: '1m' };
    const lost = bed.ask({ target: path('l', 'acquire'), body, signal: caller.signal });
    await bed.world.run(100);
    caller.abort();
    await bed.world.until(lost);
    await bed.settled();
    expect(await bed.users('l')).toBe('1/1');
    await bed.done({ target: path('l', 'release'), body: { session, token: `${GUID}t` } });
    expect(await bed.users('l')).toBe('1/0');
    expect(await bed.done({ target: `/v1/sessions/${session}/renew` })).toMatchObject({ session });
  });

  test('refuses a late repetition of what was released', async () => {
    const { session } = await bed.done({ target: '/v1/sessions', body: {} });
    const body = { session, token: `${GUID}t` };
    await bed.done({ target: path('l', 'release'), body: await bed.acquire('l', body) });
    expect(await bed.refused({ target: path('l', 'acquire'), body })).toBe('409 LOCK_CANCELED');
  });
});

describe('entering again', () => {
  const depthOf = (body: object) => ({ method: 'PUT', target: path('l', 'depth'), body });

  test('is a number that the holder says, at any node and as often as it likes; a release is of all levels', async () => {
    const held = await bed.acquire('l');
    const waiting = bed.ask({ target: path('l', 'acquire'), body: { wait: '1m' } });
    const deeper = { ...held, depth: 2 };
    for (const node of [0, 1]) {
      expect(await bed.done(depthOf(deeper), node)).toEqual({ version: held.version, depth: 2 });
    }
    expect(await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/l` })).toMatchObject({ holders: [{ depth: 2 }] });
    for (let i = 0; i < 2; i++) await bed.done(depthOf({ ...held, depth: 1 }));
    expect([await bed.refused(depthOf({ ...held, depth: 0 })), await bed.users('l')]).toEqual([
      '400 INVALID_ARGUMENT',
      '1/1',
    ]);
    await bed.done(depthOf(deeper));
    expect(await bed.done({ target: path('l', 'release'), body: held })).toEqual({ released: true });
    expect((await bed.world.until(waiting)).status).toBe(200);
    expect(await bed.refused(depthOf(deeper))).toBe('410 SESSION_EXPIRED');
  });

  test('is for who holds the lock by that grant, and changes nothing for anybody else', async () => {
    const held = await bed.acquire('l');
    expect(await bed.refused(depthOf({ ...held, version: held.version - 1, depth: 2 }))).toBe('409 LOCK_NOT_HELD');
    expect(await bed.refused(depthOf({ ...held, token: 'other', depth: 2 }))).toBe('409 LOCK_NOT_HELD');
    expect(await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/l` })).toMatchObject({ holders: [{ depth: 1 }] });
  });
});

describe('what is left with a lock', () => {
  test('data are changed by the holder alone, stay for the next one, and are forgotten', async () => {
    const held = await bed.acquire('l', { data: 'one', keepData: true });
    const data = { ...held, data: { base64: 'AP8=' } };
    expect(await bed.done({ method: 'PUT', target: path('l', 'data'), body: data })).toEqual({ version: held.version });
    const late = { method: 'PUT', target: path('l', 'data'), body: { ...data, version: held.version - 1 } };
    expect(await bed.refused(late)).toMatch(/^409 LOCK_/);
    await bed.done({ target: path('l', 'release'), body: held });
    const next = await bed.acquire('l');
    expect(next.keptData).toEqual({ base64: 'AP8=' });
    expect(await bed.done({ target: path('l', 'renew'), body: next })).toMatchObject({ session: next.session });
    await bed.done({ target: path('l', 'release'), body: next });
    expect(await bed.done({ method: 'GET', target: `${LOCKS}/l` })).toMatchObject({ keptData: { base64: 'AP8=' } });
    const forget = { method: 'DELETE', target: path('l', 'data') };
    expect([await bed.done(forget), await bed.done(forget)]).toEqual([{ forgotten: true }, { forgotten: false }]);
    expect(await bed.refused({ method: 'PUT', target: path('l', 'data'), body: data })).toBe('410 SESSION_EXPIRED');
  });

  test('a lock-delay is the one that was asked for', async () => {
    await bed.acquire('l', { lockDelay: '10s' });
    const shown = await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/l` });
    expect(shown.holders).toMatchObject([{ lockDelayMs: 10_000, delayed: false }]);
  });
});

describe('what happens to locks is told', () => {
  test('of one: how it is, and then each event in order', async () => {
    const first = await bed.acquire('l');
    const told = await bed.listen('/v1/events/default/l');
    const waiting = bed.ask({ target: path('l', 'acquire'), body: { wait: '1m', data: 'next' } });
    await bed.world.run(100);
    await bed.done({ target: path('l', 'release'), body: first });
    const { version } = (await bed.world.until(waiting)).body as Grant;
    expect(told.events.map(({ type }) => type).slice(0, 2)).toEqual(['begin', 'state']);
    expect(told.happened()).toEqual(['queued', 'released', 'acquired']);
    expect(told.events.at(-1)?.data).toMatchObject({
      ...{ namespace: 'default', name: 'l' },
      events: expect.arrayContaining([
        expect.objectContaining({ type: 'acquired', waited: true, holder: expect.objectContaining({ version }) }),
      ]),
    });
    told.close();
    await bed.done({ target: path('l', 'force-release') });
    await bed.world.run(100);
    expect(told.happened()).toEqual(['queued', 'released', 'acquired']);
  });

  test('of all with a prefix; who does not read for a while is told again from the beginning', async () => {
    await bed.acquire('a%2F1');
    await bed.acquire('b');
    const told = await bed.listen('/v1/events/default?prefix=a%2F');
    expect(told.events.map(({ type }) => type)).toEqual(['begin', 'state', 'live']);
    told.full = true;
    await bed.acquire('a%2F2', { capacity: 2 });
    await bed.world.run(100);
    expect(told.happened()).toEqual(['capacity', 'acquired']);
    await bed.acquire('a%2F3');
    await bed.world.run(100);
    expect(told.happened()).toEqual(['capacity', 'acquired']);
    told.full = false;
    told.drain();
    await bed.world.run(100);
    const states = told.events.slice(-4).map(({ type, data }) => `${type} ${(data as Shown).name}`);
    expect(states).toEqual(['state a/1', 'state a/2', 'state a/3', 'live undefined']);
    told.drain();
    await bed.world.run(100);
    expect(told.events.filter(({ type }) => type === 'begin').length).toBe(2);
  });
});

test('those who hold a lock are asked to let go of it, and whoever listens hears that', async () => {
  const held = await bed.acquire('l');
  const told = await bed.listen('/v1/events/default/l');
  const asking = { target: path('l', 'revoke'), body: { for: '1m', by: 'me@host', reason: 'maintenance' } };
  expect((await bed.done<Grant>(asking)).version).toBeGreaterThanOrEqual(held.version);
  await bed.world.run(100);
  expect(told.happened()).toEqual(['revoking']);
  expect(await bed.done({ target: path('l', 'renew'), body: held })).toMatchObject({ session: held.session });
  expect(await bed.refused({ target: path('free', 'revoke') })).toBe('409 LOCK_NOT_HELD');
});

describe('what is asked about locks', () => {
  test('names are any bytes, in paths, in queries and in answers', async () => {
    for (const name of ['%00%FF', 'a%2Fb', 'a%2Fc', '%E2%82%AC', '%2E%2E']) await bed.acquire(name);
    const names = async (query: string) => {
      const { locks, nowMs, ...page } = await bed.done<{ readonly locks: readonly Shown[]; readonly nowMs: number }>({
        method: 'GET',
        target: `${LOCKS}${query}`,
      });
      expect(nowMs).toBe(bed.world.clock.wallMs());
      return { ...page, names: locks.map(({ name }) => name) };
    };
    const all = [{ base64: 'AP8=' }, '..', 'a/b', 'a/c', '€'];
    expect(await names('')).toEqual({ more: false, names: all });
    expect(await names('?prefix=a%2F&limit=1')).toEqual({ more: true, next: 'a%2Fb', names: ['a/b'] });
    expect(await names('?prefix=a%2F&after=a%2Fb')).toMatchObject({ names: ['a/c'] });
    expect(await bed.users('%00%FF')).toBe('1/0');
  });

  test('a lock is taken by force once for each request id, however often it is asked', async () => {
    const first = await bed.acquire('l');
    const forced = { target: path('l', 'force-release'), body: { requestId: 'r1' } };
    expect(await bed.done(forced)).toEqual({ version: first.version });
    await bed.acquire('l2', { ttl: '1m' });
    const next = await bed.acquire('l', { ttl: '1m' });
    await bed.world.run(30_000);
    expect(await bed.done(forced)).toEqual({ version: first.version });
    expect(await bed.users('l')).toBe('1/0');
    await bed.done({ target: path('l2', 'force-release'), body: forced.body });
    expect(await bed.users('l2')).toBe('0/0');
    const again = { ...forced, body: { requestId: 'r2' } };
    expect(await bed.done(again)).toEqual({ version: next.version });
  });

  test('versions are checked together; taking a lock by force ends them', async () => {
    const held = await bed.acquire('l');
    const checks = [
      { name: 'l', version: held.version },
      { namespace: 'default', name: { base64: 'bA==' }, version: held.version },
      { name: 'l', version: held.version - 1 },
    ];
    expect(await bed.done({ target: '/v1/check', body: { checks } })).toEqual({ current: [true, true, false] });
    const said = { by: 'me@host', reason: 'it hangs' };
    expect(await bed.done({ target: path('l', 'force-release'), body: said })).toEqual({ version: held.version });
    const shown = await bed.done({ method: 'GET', target: `${LOCKS}/l` });
    expect(shown).toMatchObject({ forced: { ...said, version: held.version } });
    expect(await bed.refused({ target: path('l', 'force-release') })).toBe('409 LOCK_NOT_HELD');
    expect(await bed.refused({ target: path('l', 'renew'), body: held })).toBe('409 LOCK_NOT_HELD');
    await bed.acquire('l');
    const late = await bed.done({ target: path('l', 'release'), body: held });
    expect(late).toEqual({ released: false, code: 'LOCK_WRONG_OWNER' });
  });
});

describe('what is wrong is refused', () => {
  const acquire = path('l', 'acquire');
  test.each(REFUSED)('$#: $method $target $body: $is', async ({ is, ...call }) => {
    expect(await bed.refused({ target: acquire, ...call })).toBe(is);
    await bed.settled();
    expect(bed.world.backend.seen).toEqual([]);
  });

  test('with a message that says what would be right', async () => {
    const { body } = await bed.world.until(bed.ask({ target: acquire, body: { waits: '5s' } }));
    expect(body).toEqual({
      error: {
        code: 'INVALID_ARGUMENT',
        message: 'unknown field waits; did you mean wait?',
        retry: 'no',
      },
    });
  });
});

test('a token is answered to the client that was granted the lock, and shown to nobody', async () => {
  const { session } = await bed.done<Grant>({ target: '/v1/sessions', body: {} });
  const listening = await bed.listen('/v1/events/default?prefix=');
  const own = await bed.acquire('l');
  await bed.acquire('s', { session, token: `${GUID}-shared`, shared: true });
  const waiting = bed.ask({ target: path('l', 'acquire'), body: { session, token: `${GUID}-waiting`, wait: '1s' } });
  await bed.world.run(100);
  const looks = [
    { target: path('l', 'acquire') },
    { target: path('s', 'acquire'), body: { token: `${GUID}-another` } },
    { method: 'GET', target: `${LOCKS}/l` },
    { method: 'GET', target: LOCKS },
    { method: 'GET', target: '/v1/sessions' },
    { method: 'GET', target: `/v1/sessions/${session}` },
    { method: 'GET', target: `/v1/sessions/${own.session}` },
    { target: path('l', 'force-release'), body: { by: 'me' } },
  ];
  const told: unknown[] = [];
  for (const look of looks) told.push((await bed.world.until(bed.ask(look))).body);
  await bed.world.until(waiting);
  await bed.world.run(100);
  const text = JSON.stringify([told, listening.events]);
  expect(text).toContain(ownerId(own.token));
  for (const secret of [own.token, GUID]) expect(text).not.toContain(secret);
  // By what is shown nobody releases, not even with the session that is shown with it.
  const { holders } = await bed.done<Shown>({ method: 'GET', target: `${LOCKS}/s` });
  const stranger = { session, token: holders[0]?.ownerId };
  expect(await bed.done({ target: path('s', 'release'), body: stranger })).toMatchObject({ released: false });
  expect(await bed.users('s')).toBe('1/0');
  listening.close();
});

describe('the document', () => {
  const file = fileURLToPath(new URL('../../docs/reference/openapi.json', import.meta.url));

  test('is OpenAPI, and is what the docs have (REWRITE=1 writes it there)', async () => {
    expect(await bed.done({ method: 'GET', target: '/openapi.json' })).toEqual(OPENAPI);
    const { valid, errors } = await new Validator().validate(structuredClone(OPENAPI));
    expect({ valid, errors }).toMatchObject({ valid: true });
    const written = `${JSON.stringify(OPENAPI, null, 2)}\n`;
    if (process.env.REWRITE === '1') writeFileSync(file, written);
    expect(readFileSync(file, 'utf8')).toBe(written);
  });

  test('names nothing that was not seen in these tests, or in those of kinds', () => {
    const elsewhere = [OF_ACCESS, OF_KINDS, OF_CLUSTER, OF_HISTORY, OF_KEYS, OF_LISTS];
    expect(unseenAnswers((answer) => !elsewhere.some((of) => of.test(answer)))).toEqual([]);
  });
});
