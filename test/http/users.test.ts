/** `/v1/users`, `/v1/roles` and `/v1/can` in front of masters that are one state in this process. */
import type { Principal } from '@remora/auth';
import { beforeEach, describe, expect, test } from 'vitest';
import { SHOP } from '../support/auth-admin.ts';
import { OF_ACCESS, unseenAnswers } from './described.ts';
import { HttpBed, type HttpCall } from './http-bed.ts';

const ROOT: Principal = { name: 'root', method: 'token' };
const ANN: Principal = { name: 'ann', method: 'token' };
const KEYS = { access: 'readwrite', prefix: 'orders/' };
const LOCKS = { verb: 'acquire', namespace: 'default', prefix: 'orders/' };

let bed: HttpBed;

beforeEach(() => {
  bed = new HttpBed();
  bed.auth.make(...SHOP);
});

const get = <Body>(target: string, principal = ROOT): Promise<Body> =>
  bed.done<Body>({ method: 'GET', target, principal });
const change = (method: string, target: string, body?: object): Promise<unknown> =>
  bed.done({ method, target, principal: ROOT, ...(body === undefined ? {} : { body }) });
const user = (name: string) => bed.auth.state.image.users.find((each) => each.name === name);
const role = (name: string) => bed.auth.state.image.roles.find((each) => each.name === name);

interface Row {
  readonly method: string;
  readonly target: string;
  readonly body?: object;
  /** Whether ann, who has the role shop, may do it. */
  readonly ann?: true;
}

/** Each route once. */
const ROWS: readonly Row[] = [
  { method: 'GET', target: '/v1/users' },
  { method: 'GET', target: '/v1/users/root' },
  { method: 'GET', target: '/v1/users/ann', ann: true },
  { method: 'PUT', target: '/v1/users/bob', body: { password: 'b' } },
  { method: 'PUT', target: '/v1/users/ann', body: { password: 'other' } },
  { method: 'PUT', target: '/v1/users/ann', body: {} },
  { method: 'DELETE', target: '/v1/users/ann' },
  { method: 'PUT', target: '/v1/users/ann/roles/root', body: {} },
  { method: 'DELETE', target: '/v1/users/ann/roles/shop' },
  { method: 'GET', target: '/v1/roles' },
  { method: 'GET', target: '/v1/roles/shop', ann: true },
  { method: 'PUT', target: '/v1/roles/ops', body: {} },
  { method: 'PUT', target: '/v1/roles/shop', body: {} },
  { method: 'DELETE', target: '/v1/roles/shop' },
  { method: 'POST', target: '/v1/roles/shop/grant', body: { keys: { access: 'read', key: 'a' } } },
  { method: 'POST', target: '/v1/roles/shop/revoke', body: { keys: KEYS } },
  { method: 'POST', target: '/v1/can', body: { user: 'root', administer: true } },
  { method: 'POST', target: '/v1/can', body: { user: 'ann', keys: { access: 'read', key: 'x' } }, ann: true },
];

describe('who may do it', () => {
  test.each(ROWS)('$method $target $body: root', async ({ ann: _, ...call }) => {
    await expect(bed.done<object>({ ...call, principal: ROOT })).resolves.toBeTypeOf('object');
  });

  test.each(ROWS)('$method $target $body: a user without the role root, and nobody', async ({ ann, ...call }) => {
    const before = JSON.stringify(bed.auth.state.image);
    expect(await bed.refused({ ...call, principal: ANN })).toBe(ann ? '200 ok' : '403 PERMISSION_DENIED');
    expect(await bed.refused(call)).toBe('401 UNAUTHENTICATED');
    expect(JSON.stringify(bed.auth.state.image)).toBe(before);
    const isChange = call.method !== 'GET' && call.target !== '/v1/can';
    const decisions = isChange ? ['denied', 'denied'] : [];
    expect(bed.auth.recorded.map(({ decision }) => decision)).toEqual(decisions);
  });

  test.each(ROWS)('$method $target $body: everybody while authentication is off', async ({ ann: _, ...call }) => {
    bed.auth.make({ type: 'disable' });
    await expect(bed.done<object>(call)).resolves.toBeTypeOf('object');
  });
});

describe('what is shown', () => {
  test('users, without anything of their passwords', async () => {
    const users = [
      { name: 'ann', roles: ['shop'], hasPassword: true },
      { name: 'root', roles: ['root'], hasPassword: true },
    ];
    expect(await get('/v1/users')).toEqual({ authentication: true, users });
    expect(await get('/v1/users/ann')).toEqual(users[0]);
  });

  test('pages in the order of the names', async () => {
    expect(await get('/v1/users?limit=1')).toMatchObject({ users: [{ name: 'ann' }], next: 'ann' });
    const second = await get<object>('/v1/users?limit=1&after=ann');
    expect(second).toMatchObject({ users: [{ name: 'root' }] });
    expect(second).not.toHaveProperty('next');
    expect(await get('/v1/users?after=zoe')).toMatchObject({ users: [] });
    expect(await get('/v1/roles?after=shop')).toEqual({ roles: [] });
  });

  test('permissions in a form that a request can have', async () => {
    expect(await get('/v1/roles/shop')).toEqual({ name: 'shop', keys: [KEYS], locks: [LOCKS] });
  });

  test('what allows something, and what would', async () => {
    const can = (what: object) => bed.done<object>({ target: '/v1/can', body: what, principal: ANN });
    expect(await can({ locks: { verb: 'acquire', name: 'orders/42' } })).toMatchObject({
      ...{ user: 'ann', allowed: true, authentication: true, why: '' },
      through: [{ role: 'shop', locks: LOCKS }],
    });
    expect(await can({ keys: { access: 'read', key: 'x' } })).toMatchObject({
      ...{ allowed: false, why: expect.stringContaining('may not read'), through: [] },
      missing: [{ keys: { access: 'read', key: 'x' } }],
    });
    expect(await can({ administer: true })).toMatchObject({ allowed: false, missing: [{ role: 'root' }] });
  });
});

describe('what is changed', () => {
  test('a user is added, gets a password and a role, and is deleted', async () => {
    await change('PUT', '/v1/users/bob', {});
    expect(user('bob')).toMatchObject({ passwordHash: '', roles: [] });
    await change('PUT', '/v1/users/bob', { password: 'b' });
    expect(user('bob')?.passwordHash).toBe('b');
    await change('PUT', '/v1/users/bob', {});
    expect(user('bob')?.passwordHash).toBe('b');
    await change('PUT', '/v1/users/bob/roles/shop', {});
    expect(user('bob')?.roles).toEqual(['shop']);
    await change('DELETE', '/v1/users/bob/roles/shop');
    expect(user('bob')?.roles).toEqual([]);
    await change('DELETE', '/v1/users/bob');
    expect(user('bob')).toBeUndefined();
  });

  test('names are any text, percent-encoded', async () => {
    await change('PUT', '/v1/users/%2Fa%20b%C3%A4', { password: 'p' });
    expect(user('/a bä')?.passwordHash).toBe('p');
    await change('PUT', '/v1/roles/__proto__', {});
    expect(await get('/v1/roles/__proto__')).toEqual({ name: '__proto__', keys: [], locks: [] });
  });

  test.each([
    { keys: { access: 'read', key: 'a' } },
    { keys: { access: 'write', prefix: 'a/' } },
    { keys: { access: 'readwrite', prefix: '' } },
    { keys: { access: 'readwrite', from: 'a' } },
    { keys: { access: 'readwrite', from: 'a', to: 'c' } },
    { keys: { access: 'read', prefix: { base64: '//8=' } } },
    { locks: { verb: 'read', namespace: 'n', name: 'a' } },
    { locks: { verb: 'steer', namespace: '', prefix: '' } },
  ])('%j is granted, shown as it was given, and revoked (PJ1)', async (permission) => {
    await change('PUT', '/v1/roles/ops', {});
    await change('POST', '/v1/roles/ops/grant', permission);
    const { keys = [], locks = [] } = Object.fromEntries(Object.entries(permission).map(([kind, it]) => [kind, [it]]));
    expect(await get('/v1/roles/ops')).toEqual({ name: 'ops', keys, locks });
    await change('POST', '/v1/roles/ops/revoke', permission);
    expect(role('ops')).toMatchObject({ keys: [], locks: [] });
  });
});

describe('what is refused', () => {
  test.each<HttpCall & { readonly is: string }>([
    { method: 'GET', target: '/v1/users/zoe', is: '404 AUTH_REFUSED' },
    { method: 'DELETE', target: '/v1/users/zoe', is: '404 AUTH_REFUSED' },
    { method: 'PUT', target: '/v1/users/zoe/roles/shop', body: {}, is: '404 AUTH_REFUSED' },
    { method: 'PUT', target: '/v1/users/ann/roles/none', body: {}, is: '404 AUTH_REFUSED' },
    { method: 'DELETE', target: '/v1/users/zoe/roles/shop', is: '404 AUTH_REFUSED' },
    { method: 'DELETE', target: '/v1/users/ann/roles/root', is: '409 AUTH_REFUSED' },
    { method: 'DELETE', target: '/v1/users/root', is: '400 INVALID_ARGUMENT' },
    { target: '/v1/can', body: { user: 'zoe', administer: true }, is: '404 AUTH_REFUSED' },
    { method: 'GET', target: '/v1/roles/none', is: '404 AUTH_REFUSED' },
    { method: 'DELETE', target: '/v1/roles/none', is: '404 AUTH_REFUSED' },
    { target: '/v1/roles/none/grant', body: { keys: KEYS }, is: '404 AUTH_REFUSED' },
    { target: '/v1/roles/none/revoke', body: { locks: LOCKS }, is: '404 AUTH_REFUSED' },
    { target: '/v1/roles/shop/revoke', body: { keys: { access: 'read', prefix: 'orders/' } }, is: '409 AUTH_REFUSED' },
    { method: 'PUT', target: '/v1/users/', body: {}, is: '400 INVALID_ARGUMENT' },
    { method: 'PUT', target: '/v1/users/ann', body: { pasword: 'x' }, is: '400 INVALID_ARGUMENT' },
    { method: 'GET', target: '/v1/users?limit=0', is: '400 INVALID_ARGUMENT' },
    { method: 'GET', target: '/v1/users?x=1', is: '400 INVALID_ARGUMENT' },
    ...[
      {},
      { keys: KEYS, locks: LOCKS },
      { keys: [] },
      { keys: { access: 'read' } },
      { keys: { access: 'own', key: 'a' } },
      { keys: { access: 'constructor', key: 'a' } },
      { keys: { access: 'read', key: '' } },
      { keys: { access: 'read', key: 'a', prefix: 'b' } },
      { keys: { access: 'read', prefix: 'a', to: 'b' } },
      { keys: { access: 'read', from: 'b', to: 'a' } },
      { keys: { access: 'read', from: 'b', to: '' } },
      { locks: { verb: 'read' } },
      { locks: { verb: 'read', name: '' } },
      { locks: { verb: 'read', name: 'a', prefix: 'a' } },
      { locks: { verb: 'read', nam: 'a' } },
    ].map((body) => ({ target: '/v1/roles/shop/grant', body, is: '400 INVALID_ARGUMENT' })),
    { target: '/v1/can', body: { user: 'ann' }, is: '400 INVALID_ARGUMENT' },
    { target: '/v1/can', body: { administer: true, keys: KEYS }, is: '400 INVALID_ARGUMENT' },
  ])('$method $target $body: $is', async ({ is, ...call }) => {
    expect(await bed.refused({ ...call, principal: ROOT })).toBe(is);
  });

  test('what another node has added a moment ago, and this one does not know yet', async () => {
    bed.auth.state.apply({ type: 'addUser', user: 'bob', passwordHash: 'b' });
    const call = { method: 'PUT', body: {}, principal: ROOT };
    expect(await bed.refused({ ...call, target: '/v1/users/bob' })).toBe('409 AUTH_REFUSED');
    bed.auth.state.apply({ type: 'addRole', role: 'more' });
    expect(await bed.refused({ ...call, target: '/v1/roles/more' })).toBe('409 AUTH_REFUSED');
    expect(user('bob')?.passwordHash).toBe('b');
  });

  test.each(ROWS.filter(({ method }) => method !== 'GET'))('$method $target as a GET', async ({ target }) => {
    const before = JSON.stringify(bed.auth.state.image);
    await bed.refused({ method: 'GET', target, principal: ROOT });
    expect(JSON.stringify(bed.auth.state.image)).toBe(before);
  });
});

test('every answer that the document names was seen', () => {
  const others = /log-|whoami|audit/;
  expect(unseenAnswers((answer) => OF_ACCESS.test(answer) && !others.test(answer) && !/ 400$/.test(answer))).toEqual(
    [],
  );
});
