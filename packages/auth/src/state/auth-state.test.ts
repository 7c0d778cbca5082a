import { ServiceError } from '@remora/base';
import type { AuthChange, AuthImage, KeyPermission, LockPermission } from '@remora/protocol';
import { expect, test } from 'vitest';
import { AuthState } from './auth-state.ts';

const b = (text: string): Buffer => Buffer.from(text);
const addUser = (user: string): AuthChange => ({ type: 'addUser', user, passwordHash: `hash of ${user}` });
const addRole = (role: string): AuthChange => ({ type: 'addRole', role });
const grantRole = (user: string, role: string): AuthChange => ({ type: 'grantRole', user, role });
const grantKeys = (role: string, permission: KeyPermission): AuthChange => ({ type: 'grantKeys', role, permission });
const locks = (verb: LockPermission['verb'], name: string): LockPermission => ({
  ...{ namespace: 'shop', name: b(name), isPrefix: false, verb },
});
const grantLocks = (permission: LockPermission): AuthChange => ({ type: 'grantLocks', role: 'r', permission });

/** With root, a user and a role; authentication is on. */
const WITH_ROOT = [addUser('root'), grantRole('root', 'root'), addUser('ann'), addRole('reader')];

function after(changes: readonly AuthChange[]): AuthState {
  const state = new AuthState();
  for (const change of changes) state.apply(change);
  return state;
}

function refusal(state: AuthState, change: AuthChange): string {
  try {
    state.apply(change);
  } catch (error) {
    if (error instanceof ServiceError) return String(error.details?.etcd);
    throw error;
  }
  return 'done';
}

const refusals: readonly {
  readonly name: string;
  readonly given: readonly AuthChange[];
  change: AuthChange;
  why: string;
}[] = [
  { name: 'enable without a user root', given: [], change: { type: 'enable' }, why: 'rootUserMissing' },
  {
    name: 'enable while root lacks its role',
    given: [addUser('root')],
    change: { type: 'enable' },
    why: 'rootRoleMissing',
  },
  { name: 'a user without a name', given: [], change: addUser(''), why: 'userEmpty' },
  { name: 'a user that exists', given: [addUser('ann')], change: addUser('ann'), why: 'userExists' },
  { name: 'delete an unknown user', given: [], change: { type: 'deleteUser', user: 'ann' }, why: 'userNotFound' },
  {
    name: 'delete root while authentication is on',
    given: [...WITH_ROOT, { type: 'enable' }],
    change: { type: 'deleteUser', user: 'root' },
    why: 'invalidAuthManagement',
  },
  {
    name: 'a password for an unknown user',
    given: [],
    change: { type: 'changePassword', user: 'ann', passwordHash: 'h' },
    why: 'userNotFound',
  },
  { name: 'a role for an unknown user', given: [addRole('r')], change: grantRole('ann', 'r'), why: 'userNotFound' },
  { name: 'an unknown role', given: [addUser('ann')], change: grantRole('ann', 'r'), why: 'roleNotFound' },
  {
    name: 'revoke a role that the user does not have',
    given: WITH_ROOT,
    change: { type: 'revokeRole', user: 'ann', role: 'reader' },
    why: 'roleNotGranted',
  },
  {
    name: 'revoke the role of root while authentication is on',
    given: [...WITH_ROOT, { type: 'enable' }],
    change: { type: 'revokeRole', user: 'root', role: 'root' },
    why: 'invalidAuthManagement',
  },
  { name: 'a role without a name', given: [], change: addRole(''), why: 'roleEmpty' },
  { name: 'a role that exists', given: [addRole('r')], change: addRole('r'), why: 'roleExists' },
  { name: 'delete an unknown role', given: [], change: { type: 'deleteRole', role: 'r' }, why: 'roleNotFound' },
  {
    name: 'delete the role root while authentication is on',
    given: [...WITH_ROOT, addRole('root'), { type: 'enable' }],
    change: { type: 'deleteRole', role: 'root' },
    why: 'invalidAuthManagement',
  },
  {
    name: 'a permission for an unknown role',
    given: [],
    change: grantKeys('r', { access: 'read', key: b('a') }),
    why: 'roleNotFound',
  },
  {
    name: 'revoke a permission for other keys',
    given: [addRole('r'), grantKeys('r', { access: 'read', key: b('a'), end: b('c') })],
    change: { type: 'revokeKeys', role: 'r', span: { key: b('a') } },
    why: 'permissionNotGranted',
  },
  {
    name: 'revoke a permission for one lock that was granted for a prefix',
    given: [addRole('r'), grantLocks({ ...locks('acquire', 'a'), isPrefix: true })],
    change: { type: 'revokeLocks', role: 'r', permission: locks('acquire', 'a') },
    why: 'permissionNotGranted',
  },
];
test.each(refusals)('refused: $name; nothing changes (A1)', ({ given, change, why }) => {
  const state = after(given);
  const before = state.image;
  expect(refusal(state, change)).toBe(why);
  expect(state.image).toBe(before);
});

const alreadySo: readonly { readonly name: string; readonly given: readonly AuthChange[]; change: AuthChange }[] = [
  { name: 'authentication is on', given: [...WITH_ROOT, { type: 'enable' }], change: { type: 'enable' } },
  { name: 'authentication is off', given: [], change: { type: 'disable' } },
  { name: 'the user has the role', given: WITH_ROOT, change: grantRole('root', 'root') },
];
test.each(alreadySo)('already so, and no change: $name (A1)', ({ given, change }) => {
  const state = after(given);
  const before = state.image;
  state.apply(change);
  expect(state.image).toBe(before);
});

test('every change raises the revision by one, from 1', () => {
  const state = new AuthState();
  expect(state.image.revision).toBe(1);
  for (const [i, change] of WITH_ROOT.entries()) {
    state.apply(change);
    expect(state.image.revision).toBe(i + 2);
  }
});

test('an image never changes (A3), and a state continues from one', () => {
  const state = after(WITH_ROOT);
  const image = structuredClone(state.image) as AuthImage;
  const held = state.image;
  const other = new AuthState(held);
  for (const each of [state, other]) each.apply(grantRole('ann', 'reader'));
  expect(held).toEqual(image);
  expect(other.image).toEqual(state.image);
});

test('a deleted role leaves its users; a deleted user that is made again has another version', () => {
  const state = after([...WITH_ROOT, grantRole('ann', 'reader')]);
  const version = () => state.image.users.find(({ name }) => name === 'ann')?.version;
  const first = version();
  state.apply({ type: 'deleteRole', role: 'reader' });
  expect(state.image.users.find(({ name }) => name === 'ann')?.roles).toEqual([]);
  expect(version()).toBe(first);
  state.apply({ type: 'deleteUser', user: 'ann' });
  state.apply(addUser('ann'));
  const second = version();
  expect(second).not.toBe(first);
  state.apply({ type: 'changePassword', user: 'ann', passwordHash: 'another' });
  expect(version()).not.toBe(second);
});

test('permissions of a role are in the order of their keys; another access replaces the one of the same keys', () => {
  const state = after([
    addRole('r'),
    grantKeys('r', { access: 'write', key: b('c') }),
    grantKeys('r', { access: 'read', key: b('a'), end: b('') }),
    grantKeys('r', { access: 'read', key: b('a') }),
    grantKeys('r', { access: 'read', key: b('a'), end: b('b') }),
    grantKeys('r', { access: 'readWrite', key: b('a') }),
  ]);
  expect(state.image.roles[0]?.keys).toEqual([
    { access: 'readWrite', key: b('a') },
    { access: 'read', key: b('a'), end: b('b') },
    { access: 'read', key: b('a'), end: b('') },
    { access: 'write', key: b('c') },
  ]);
  state.apply({ type: 'revokeKeys', role: 'r', span: { key: b('a') } });
  expect(state.image.roles[0]?.keys).toHaveLength(3);
});

test('permissions on locks are granted and revoked one by one', () => {
  const all = { ...locks('acquire', 'orders/'), isPrefix: true };
  const granted = [all, locks('steer', 'orders/'), locks('acquire', 'orders/')].map(grantLocks);
  const state = after([addRole('r'), ...granted]);
  state.apply({ type: 'revokeLocks', role: 'r', permission: locks('steer', 'orders/') });
  expect(state.image.roles[0]?.locks).toEqual([all, locks('acquire', 'orders/')]);
});

test('a permission on locks that the role has already is not a change (A1)', () => {
  const grant = grantLocks(locks('acquire', 'orders/'));
  const state = after([addRole('r'), grant]);
  const before = state.image;
  state.apply(grant);
  expect(state.image).toBe(before);
});
