/** Log-ins of browsers, over real sockets: the cookie, what it needs beside it, and when it ends. */
import { LOG_IN_LIFE_MS, TOKEN_LIFE_MS } from '@remora/auth';
import { nodeClock, SeededRandom, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { API_LIMITS, type RunningHttpServer, startHttpServer } from '@remora/cli';
import { createHttpEndpoint, etcdApi, REQUEST_LIMITS } from '@remora/gateway';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ALONE_NODE } from '../../packages/gateway/test/support/alone-node.ts';
import { adminApi } from '../support/admin-api.ts';
import { PlayedAuth, SHOP } from '../support/auth-admin.ts';
import { SdkBackend } from '../support/sdk-backend.ts';
import { OF_ACCESS, undescribed, unseenAnswers } from './described.ts';

let auth: PlayedAuth;
/** The clock of tokens. */
let clock: ManualClock;
let server: RunningHttpServer;

beforeEach(async () => {
  clock = new ManualClock();
  auth = new PlayedAuth(clock);
  auth.make(...SHOP);
  const ports = { clock: nodeClock(), random: new SeededRandom(1), logger: silentLogger };
  const backend = new SdkBackend(ports.clock);
  const { authenticator: identification, admin } = auth;
  const etcd = etcdApi({ backend, ...ports, scheme: 'http', node: { ...ALONE_NODE, auth: admin } }, () => false);
  const { requestBytesMax } = REQUEST_LIMITS;
  const apis = { admin: adminApi(backend, ports.clock), auth: admin, etcd };
  const endpoint = createHttpEndpoint({ ...ports, ...apis, backend, requestBytesMax, identification });
  server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', limits: API_LIMITS, names: new Set<string>() },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: '' }),
    handlers: [endpoint],
  });
});
afterEach(() => server.stop());

type Headers = Readonly<Record<string, string>>;
const JSON_TYPE = { 'content-type': 'application/json' };
const CSRF = { 'x-remora-csrf': '1' };

async function call(method: string, target: string, headers: Headers = {}, body?: object) {
  const hasBody = method === 'POST' || method === 'PUT';
  const response = await fetch(`http://127.0.0.1:${server.port}${target}`, {
    ...{ method, headers: { ...(hasBody ? JSON_TYPE : {}), ...headers } },
    ...(hasBody ? { body: JSON.stringify(body ?? {}) } : {}),
  });
  const answer = (await response.json()) as Readonly<Record<string, unknown>>;
  const { status } = response;
  if (target.startsWith('/v1/')) {
    expect(undescribed({ method, target, body: body ?? {} }, { status, body: answer })).toBeUndefined();
  }
  return { status, body: answer, setCookie: response.headers.get('set-cookie') ?? '' };
}

const logIn = (user = 'ann', password = user, headers: Headers = {}) =>
  call('POST', '/v1/log-in', headers, { user, password });

/** As a browser sends it. */
function cookieOf(setCookie: string): Headers {
  return { cookie: `theme=dark; ${setCookie.split(';', 1)[0]}` };
}

async function cookie(user = 'ann'): Promise<Headers> {
  return cookieOf((await logIn(user)).setCookie);
}

async function userOf(headers: Headers): Promise<unknown> {
  const { status, body } = await call('GET', '/v1/whoami', headers);
  return status === 200 ? (body.user ?? 'nobody') : status;
}

describe('a log-in', () => {
  test('names the user, and puts the token into a cookie that scripts and other sites cannot use (SC1)', async () => {
    const { status, body, setCookie } = await logIn();
    expect([status, body]).toEqual([200, { user: 'ann', isRoot: false, expiresInMs: TOKEN_LIFE_MS }]);
    expect(setCookie).toMatch(/^remora_session=r1\.[\w-]+\.[\w-]+; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(JSON.stringify(body)).not.toContain('r1.');
    expect((await logIn('root')).body).toMatchObject({ user: 'root', isRoot: true });
  });

  test('by a proxy that ends TLS sets a cookie for TLS only', async () => {
    const { setCookie } = await logIn('ann', 'ann', { origin: `https://127.0.0.1:${server.port}` });
    expect(setCookie).toMatch(/; SameSite=Strict; Secure$/);
  });

  test.each([
    { name: 'a wrong password', body: { user: 'ann', password: 'x' } },
    { name: 'a user that does not exist', body: { user: 'zoe', password: 'zoe' } },
  ])('with $name is refused and says no more, and is recorded', async ({ body }) => {
    const answer = await call('POST', '/v1/log-in', {}, body);
    expect([answer.status, answer.setCookie]).toEqual([401, '']);
    expect(JSON.stringify(answer.body)).toContain('the user does not exist, or the password is wrong');
    expect(auth.recorded).toMatchObject([{ action: 'logIn', decision: 'failed', principal: { address: '127.0.0.1' } }]);
  });

  test('by GET, by a form, from another site, or without a password is refused', async () => {
    expect((await call('GET', '/v1/log-in?user=ann&password=ann')).status).toBe(405);
    expect((await logIn('ann', 'ann', { 'content-type': 'application/x-www-form-urlencoded' })).status).toBe(415);
    expect((await logIn('ann', 'ann', { origin: 'http://evil.example' })).status).toBe(403);
    expect((await call('POST', '/v1/log-in', {}, { user: 'ann' })).status).toBe(400);
    expect((await call('POST', '/v1/log-in?user=ann', {}, { password: 'ann' })).status).toBe(400);
    expect(auth.recorded).toEqual([]);
  });

  test('is refused while authentication is off', async () => {
    auth.make({ type: 'disable' });
    expect((await logIn()).status).toBe(409);
  });

  test('works beside a cookie that has expired', async () => {
    const old = await cookie();
    clock.advance(TOKEN_LIFE_MS);
    auth.make({ type: 'addUser', user: 'bob', passwordHash: 'bob' });
    auth.known.learn(undefined, clock.monotonicMs());
    expect((await logIn('bob', 'bob', { ...old, ...CSRF })).status).toBe(200);
  });
});

describe('the cookie', () => {
  test('says who asks, and the header Authorization counts before it (SC2)', async () => {
    const ann = await cookie();
    expect(await userOf(ann)).toBe('ann');
    expect((await call('GET', '/v1/whoami', ann)).body).toMatchObject({ how: 'token', roles: ['shop'], exists: true });
    const root = { authorization: `Bearer ${await auth.token('root')}` };
    expect(await userOf({ ...ann, ...root })).toBe('root');
    expect(await userOf({ ...ann, authorization: 'Bearer none' })).toBe(401);
    // A program that sends the header needs no other one.
    const put = { ...ann, ...root };
    expect((await call('PUT', '/v1/users/bob', put, { password: 'b' })).status).toBe(200);
  });

  test.each([
    { method: 'PUT', target: '/v1/users/bob', body: { password: 'b' } },
    { method: 'POST', target: '/v1/roles/shop/grant', body: { keys: { access: 'read', key: 'a' } } },
    { method: 'DELETE', target: '/v1/users/ann' },
    { method: 'POST', target: '/v1/log-out' },
    { method: 'POST', target: '/v1/log-in', body: { user: 'ann', password: 'ann' } },
  ])('needs the header against requests of other sites: $method $target (SC3)', async ({ method, target, body }) => {
    const root = await cookie('root');
    const before = auth.state.image;
    for (const wrong of [{}, { 'x-remora-csrf': '0' }, { 'x-remora-csrf': '' }]) {
      const { status, body: refusal } = await call(method, target, { ...root, ...wrong }, body);
      expect([status, JSON.stringify(refusal)]).toEqual([403, expect.stringContaining('x-remora-csrf: 1')]);
    }
    expect(auth.state.image).toEqual(before);
    expect((await call(method, target, { ...root, ...CSRF }, body)).status).toBe(200);
  });

  test('needs it also while authentication is off', async () => {
    const root = await cookie('root');
    auth.make({ type: 'disable' });
    expect((await call('PUT', '/v1/users/bob', root, {})).status).toBe(403);
    expect((await call('PUT', '/v1/users/bob', {}, {})).status).toBe(200);
  });

  test('does not count for the API of etcd (SC2)', async () => {
    const { status, body } = await call('POST', '/v3/auth/user/list', { ...(await cookie('root')), ...CSRF });
    expect([status, body.message]).toEqual([400, 'etcdserver: user name is empty']);
    const token = { authorization: await auth.token('root') };
    expect((await call('POST', '/v3/auth/user/list', token)).status).toBe(200);
  });

  test('that is not valid is refused and cleared; one that is there twice is refused', async () => {
    const bad = await call('GET', '/v1/whoami', { cookie: 'remora_session=r1.x.y' });
    expect([bad.status, bad.setCookie]).toEqual([401, expect.stringContaining('remora_session=; ')]);
    expect(bad.setCookie).toContain('Max-Age=0');
    const { cookie: twice = '' } = await cookie('root');
    expect(await userOf({ cookie: `remora_session=r1.x.y; ${twice}` })).toBe(401);
    expect(await userOf({ cookie: `${twice}; remora_session=r1.x.y` })).toBe(401);
    expect(await userOf({ cookie: 'remora_sessionx=r1.x.y; remora_session=' })).toBe('nobody');
  });

  test('is no longer there after the log-out', async () => {
    const ann = await cookie();
    const { status, body, setCookie } = await call('POST', '/v1/log-out', { ...ann, ...CSRF });
    expect([status, body]).toEqual([200, { loggedOut: true }]);
    expect(setCookie).toMatch(/^remora_session=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0$/);
    expect(await userOf(cookieOf(setCookie))).toBe('nobody');
  });
});

describe('the end of a log-in', () => {
  const later = (ms: number): void => {
    clock.advance(ms);
    auth.known.learn(undefined, clock.monotonicMs());
  };

  test('comes after five minutes without a request', async () => {
    const ann = await cookie();
    later(TOKEN_LIFE_MS);
    expect(await userOf(ann)).toBe(401);
  });

  test('is put off by each request, until twelve hours after the log-in', async () => {
    let ann = await cookie();
    expect((await call('GET', '/v1/whoami', ann)).setCookie).toBe('');
    const steps = LOG_IN_LIFE_MS / (TOKEN_LIFE_MS / 2);
    for (let step = 1; step < steps; step++) {
      later(TOKEN_LIFE_MS / 2);
      const { status, setCookie } = await call('GET', '/v1/whoami', ann);
      expect([step, status]).toEqual([step, 200]);
      if (setCookie !== '') ann = cookieOf(setCookie);
    }
    later(TOKEN_LIFE_MS / 2);
    expect(await userOf(ann)).toBe(401);
  });

  test('comes with another password, and with the deletion of the user', async () => {
    const [ann, root] = [await cookie(), await cookie('root')];
    auth.make({ type: 'changePassword', user: 'root', passwordHash: 'new' }, { type: 'deleteUser', user: 'ann' });
    expect([await userOf(ann), await userOf(root)]).toEqual([401, 401]);
  });
});

describe('whoami', () => {
  test('shows nobody, and everybody what it may do', async () => {
    const nothing = { permissions: { keys: [], locks: [] }, roles: [] };
    const nobody = { authentication: true, exists: false, isRoot: false, how: 'none', ...nothing };
    expect((await call('GET', '/v1/whoami')).body).toEqual(nobody);
    expect((await call('GET', '/v1/whoami', await cookie())).body).toEqual({
      ...{ authentication: true, user: 'ann', exists: true, isRoot: false, how: 'token', roles: ['shop'] },
      permissions: {
        keys: [{ access: 'readwrite', prefix: 'orders/' }],
        locks: [{ verb: 'acquire', namespace: 'default', prefix: 'orders/' }],
      },
    });
    expect((await call('GET', '/v1/whoami', await cookie('root'))).body).toMatchObject({ isRoot: true });
    auth.make({ type: 'disable' });
    expect((await call('GET', '/v1/whoami')).body).toEqual({ ...nobody, authentication: false });
  });

  test('answers from what the node knew last while the masters are lost', async () => {
    const root = await cookie('root');
    clock.advance(60_000);
    expect(await userOf(root)).toBe('root');
    expect((await call('GET', '/v1/users', root)).status).toBe(503);
  });
});

test('every answer that the document names was seen', () => {
  const own = /log-|whoami/;
  expect(
    unseenAnswers((answer) => OF_ACCESS.test(answer) && own.test(answer) && !/(GET|log-out) .*400$/.test(answer)),
  ).toEqual([]);
});
