// The API for users, roles and permissions, with a state as the masters have it behind it.
import { AuthState, KnownAuth, type Principal } from '@remora/auth';
import { SeededRandom, ServiceError, silentLogger, toServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type AuthChange, masterChangeAuth } from '@remora/protocol';
import type { auth } from '@remora/protocol/remora';
import { describe, expect, test } from 'vitest';
import { ClusterCalls, type MasterCaller } from '../admin/cluster-calls.ts';
import type { Backend } from '../backend.ts';
import { AuthAdmin } from './auth-admin.ts';
import { AuthApi } from './auth-api.ts';

type Change = NonNullable<auth.ChangeRequest['change']>;

const ROOT: Principal = { name: 'root', method: 'password' };
const ANN: Principal = { name: 'ann', method: 'certificate' };

/** An API whose masters are one state. */
class World {
  readonly state = new AuthState();
  readonly api: AuthApi;

  constructor() {
    const [clock, random] = [new ManualClock(), new SeededRandom(1)];
    const known = new KnownAuth({ clock, hurry: () => {} });
    known.learn(this.state.image, 0);
    const master = {
      call: (method: unknown, request: { readonly change: AuthChange }, _options: unknown, done: Done) => {
        try {
          if (method === masterChangeAuth) this.state.apply(request.change);
          known.learn(this.state.image, 0);
          done(undefined, { revision: this.state.image.revision });
        } catch (error) {
          done(toServiceError(error));
        }
        return { cancel() {} };
      },
    } as unknown as MasterCaller;
    const calls = new ClusterCalls({ clock, random, master, dialer: undefined as never });
    const authenticator = { logIn: async () => '', hashOf: async (password: string) => `hash of ${password}` };
    const noRanges: Backend['query'] = (_query, _options, done) => {
      done(new ServiceError('UNAVAILABLE', 'this world has no ranges'), undefined);
      return () => {};
    };
    const deps = { calls, known, authenticator, random, backend: { query: noRanges }, logger: silentLogger };
    this.api = new AuthApi(new AuthAdmin(deps));
  }

  change(change: Change, principal: Principal | undefined = ROOT): Promise<unknown> {
    return this.api.change({ change }, call(principal));
  }
}

type Done = (error: Error | undefined, reply?: unknown) => void;

function call(principal: Principal | undefined) {
  return { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal };
}

const b = (text: string): Buffer => Buffer.from(text);
const keys = (access: string, key: string, rangeEnd = ''): auth.KeyPermission => ({
  ...{ access, span: { key: b(key), rangeEnd: b(rangeEnd) } },
});
const locks = (verb: string, name: string, prefix = false): auth.LockPermission => ({
  ...{ verb, namespace: 'default', name: b(name), prefix },
});

/** Root, and the user ann with the role shop; authentication is on. */
async function shop(): Promise<World> {
  const world = new World();
  const changes: readonly Change[] = [
    { $case: 'addUser', value: { name: 'root', password: 'r' } },
    { $case: 'grantRole', value: { user: 'root', role: 'root' } },
    { $case: 'addUser', value: { name: 'ann' } },
    { $case: 'addRole', value: 'shop' },
    { $case: 'grantRole', value: { user: 'ann', role: 'shop' } },
    { $case: 'grantKeys', value: { role: 'shop', permission: keys('readwrite', 'orders/', 'orders0') } },
    { $case: 'grantLocks', value: { role: 'shop', permission: locks('acquire', 'orders/', true) } },
    { $case: 'enable', value: {} },
  ];
  for (const change of changes) await world.change(change);
  return world;
}

describe('users and roles', () => {
  test('are listed with both kinds of permissions', async () => {
    const { api } = await shop();
    expect(await api.listUsers({}, call(ROOT))).toEqual({
      users: [
        { name: 'ann', roles: ['shop'], hasPassword: false },
        { name: 'root', roles: ['root'], hasPassword: true },
      ],
    });
    const role = {
      name: 'shop',
      keys: [keys('readwrite', 'orders/', 'orders0')],
      locks: [locks('acquire', 'orders/', true)],
    };
    expect((await api.listRoles({}, call(ROOT))).roles).toContainEqual(role);
    expect(await api.getRole({ name: 'shop' }, call(ROOT))).toEqual(role);
    expect(await api.getStatus({}, call(ROOT))).toMatchObject({ enabled: true, users: 2 });
  });

  test('a permission for exactly one lock is another one than for a prefix', async () => {
    const world = await shop();
    const revoke = (permission: auth.LockPermission): Promise<unknown> =>
      world.change({ $case: 'revokeLocks', value: { role: 'shop', permission } });
    await expect(revoke(locks('acquire', 'orders/'))).rejects.toMatchObject({ code: 'AUTH_REFUSED' });
    await revoke(locks('acquire', 'orders/', true));
    expect((await world.api.getRole({ name: 'shop' }, call(ROOT))).locks).toEqual([]);
  });

  test('to revoke a part of the access to keys is refused, and takes nothing', async () => {
    const world = await shop();
    const revoke = (access: string): Promise<unknown> =>
      world.change({
        $case: 'revokeKeys',
        value: { role: 'shop', permission: keys(access, 'orders/', 'orders0') },
      });
    await expect(revoke('read')).rejects.toMatchObject({
      code: 'AUTH_REFUSED',
      message: expect.stringContaining('has readwrite for these keys, not read'),
    });
    expect((await world.api.getRole({ name: 'shop' }, call(ROOT))).keys).toHaveLength(1);
    await revoke('readwrite');
    expect((await world.api.getRole({ name: 'shop' }, call(ROOT))).keys).toEqual([]);
  });
});

describe('a user without the role root', () => {
  test('sees itself and its roles, and what it may do', async () => {
    const { api } = await shop();
    expect(await api.whoAmI({}, call(ANN))).toMatchObject({
      ...{ enabled: true, user: 'ann', method: 'certificate', exists: true },
      roles: [{ name: 'shop' }],
    });
    expect((await api.getUser({ name: 'ann' }, call(ANN))).roles).toEqual(['shop']);
    expect((await api.getRole({ name: 'shop' }, call(ANN))).name).toBe('shop');
    const what = { $case: 'locks', value: locks('acquire', 'orders/42') } as const;
    expect(await api.explain({ user: '', what }, call(ANN))).toMatchObject({
      ...{ allowed: true, user: 'ann', enabled: true },
      through: [{ role: 'shop', permission: { $case: 'locks', value: locks('acquire', 'orders/', true) } }],
    });
  });

  const others: Record<string, (api: AuthApi, principal: Principal | undefined) => Promise<unknown>> = {
    getStatus: (api, principal) => api.getStatus({}, call(principal)),
    listUsers: (api, principal) => api.listUsers({}, call(principal)),
    listRoles: (api, principal) => api.listRoles({}, call(principal)),
    'getUser of another': (api, principal) => api.getUser({ name: 'root' }, call(principal)),
    'getRole of another': (api, principal) => api.getRole({ name: 'root' }, call(principal)),
    'explain another': (api, principal) =>
      api.explain({ user: 'root', what: { $case: 'administer', value: {} } }, call(principal)),
    change: (api, principal) => api.change({ change: { $case: 'addRole', value: 'r' } }, call(principal)),
    'change a password': (api, principal) =>
      api.change({ change: { $case: 'setPassword', value: { name: 'root', password: 'x' } } }, call(principal)),
    'add a user': (api, principal) =>
      api.change({ change: { $case: 'addUser', value: { name: 'eve' } } }, call(principal)),
  };
  test.each(Object.entries(others))('is refused: %s', async (_name, ask) => {
    const world = await shop();
    const before = world.state.image;
    await expect(ask(world.api, ANN)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    await expect(ask(world.api, undefined)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(world.state.image).toBe(before);
  });
});

test('root sees its role, which exists without being added', async () => {
  const world = new World();
  await world.change({ $case: 'addUser', value: { name: 'root', password: 'secret' } });
  await world.change({ $case: 'grantRole', value: { user: 'root', role: 'root' } });
  expect(world.state.image.roles).toEqual([]);
  expect(await world.api.whoAmI({}, call(ROOT))).toMatchObject({ user: 'root', roles: [{ name: 'root' }] });
});

test('a caller without a user, and one with a certificate of nobody, learn that', async () => {
  const { api } = await shop();
  expect(await api.whoAmI({}, call(undefined))).toEqual({
    ...{ enabled: true, user: '', method: '', exists: false, roles: [] },
  });
  expect(await api.whoAmI({}, call({ name: 'eve', method: 'certificate' }))).toMatchObject({ exists: false });
});

describe('refused as invalid', () => {
  const rows: Record<string, Change | undefined> = {
    'a change without what': undefined,
    'a user without a name': { $case: 'addUser', value: { name: '' } },
    'a role without a name': { $case: 'addRole', value: '' },
    'keys without an access': { $case: 'grantKeys', value: { role: 'shop', permission: keys('', 'a') } },
    'an unknown access': { $case: 'grantKeys', value: { role: 'shop', permission: keys('constructor', 'a') } },
    'keys without a span': {
      $case: 'grantKeys',
      value: { role: 'shop', permission: { span: undefined, access: 'read' } },
    },
    'no keys': { $case: 'grantKeys', value: { role: 'shop', permission: keys('read', 'b', 'a') } },
    'an unknown verb': { $case: 'grantLocks', value: { role: 'shop', permission: locks('write', 'a') } },
    'one lock without a name': { $case: 'grantLocks', value: { role: 'shop', permission: locks('read', '') } },
    'a lock with too long a name': {
      $case: 'grantLocks',
      value: { role: 'shop', permission: locks('read', 'x'.repeat(1_025)) },
    },
    'no locks': { $case: 'revokeLocks', value: { role: 'shop', permission: undefined } },
  };
  test.each(Object.entries(rows))('%s', async (_name, change) => {
    const world = await shop();
    const before = world.state.image;
    await expect(world.api.change({ change }, call(ROOT))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(world.state.image).toBe(before);
  });
});
