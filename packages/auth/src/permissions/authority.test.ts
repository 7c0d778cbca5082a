import { ServiceError } from '@remora/base';
import { type AuthImage, NO_OWNER } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { PlainNeed } from '../needs/need.ts';
import { Authority } from './authority.ts';

const b = (text: string): Buffer => Buffer.from(text);

const IMAGE: AuthImage = {
  enabled: true,
  revision: 7,
  tokenKey: b('key'),
  users: [
    { name: 'ann', passwordHash: '', roles: ['orders', 'stock'], version: 1 },
    { name: 'bob', passwordHash: '', roles: [], version: 1 },
    { name: 'root', passwordHash: '', roles: ['root'], version: 1 },
  ],
  roles: [
    {
      name: 'orders',
      keys: [{ access: 'readWrite', key: b('orders/'), end: b('orders0') }],
      locks: [
        { namespace: 'shop', name: b('orders/'), isPrefix: true, verb: 'acquire' },
        { namespace: 'shop', name: b('report'), isPrefix: false, verb: 'acquire' },
      ],
    },
    {
      name: 'stock',
      keys: [
        { access: 'read', key: b('stock') },
        { access: 'write', key: b('log/'), end: b('log0') },
      ],
      locks: [{ namespace: '', name: b('batch'), isPrefix: true, verb: 'steer' }],
    },
  ],
};

const keys = (access: 'read' | 'write', key: string, end?: string): PlainNeed => ({
  type: 'keys',
  access,
  key: b(key),
  ...(end !== undefined && { end: b(end) }),
});
const lock = (verb: 'read' | 'acquire' | 'steer', name: string, namespace = 'shop'): PlainNeed => ({
  type: 'lock',
  verb,
  namespace,
  name: b(name),
});

const owned = (owner: string | undefined, orSteer = false): PlainNeed => ({
  ...{ type: 'owner', lease: 0x7fn, owner, what: 'end', orSteer },
});

const ofAnn: readonly { readonly need: PlainNeed; readonly allowed: boolean }[] = [
  { need: keys('read', 'orders/1'), allowed: true },
  { need: keys('write', 'orders/', 'orders0'), allowed: true },
  { need: keys('write', 'orders/', ''), allowed: false },
  { need: keys('read', 'orders', 'orders0'), allowed: false },
  { need: keys('read', 'stock'), allowed: true },
  { need: keys('write', 'stock'), allowed: false },
  { need: keys('read', 'stock1'), allowed: false },
  { need: keys('write', 'log/x'), allowed: true },
  { need: keys('read', 'log/x'), allowed: false },
  { need: lock('acquire', 'orders/42'), allowed: true },
  { need: lock('read', 'orders/42'), allowed: true },
  { need: lock('steer', 'orders/42'), allowed: false },
  { need: lock('acquire', 'order'), allowed: false },
  { need: lock('acquire', 'orders/42', 'default'), allowed: false },
  { need: lock('steer', 'batch-7', 'default'), allowed: true },
  { need: lock('read', 'batch-7', 'default'), allowed: true },
  { need: lock('acquire', 'batch-7', 'default'), allowed: false },
  { need: { type: 'locks', verb: 'read', namespace: 'shop', prefix: b('orders/1') }, allowed: true },
  { need: { type: 'locks', verb: 'read', namespace: 'shop', prefix: b('') }, allowed: false },
  { need: { type: 'locks', verb: 'read', namespace: '', prefix: b('batch') }, allowed: true },
  { need: { type: 'locks', verb: 'read', namespace: '', prefix: b('orders/') }, allowed: false },
  { need: lock('acquire', 'report'), allowed: true },
  { need: lock('read', 'report'), allowed: true },
  { need: lock('acquire', 'reports'), allowed: false },
  { need: lock('acquire', 'repor'), allowed: false },
  { need: { type: 'locks', verb: 'read', namespace: 'shop', prefix: b('report') }, allowed: false },
  { need: { type: 'root', what: 'compact' }, allowed: false },
  { need: { type: 'anyUser' }, allowed: true },
  { need: owned('ann'), allowed: true },
  { need: owned('bob'), allowed: false },
  { need: owned('bob', true), allowed: false },
  { need: owned(NO_OWNER), allowed: false },
  { need: owned(undefined, true), allowed: false },
  { need: { type: 'sessions', owner: 'ann' }, allowed: true },
  { need: { type: 'sessions', owner: 'bob' }, allowed: false },
  { need: { type: 'sessions', owner: undefined }, allowed: false },
];
test.each(ofAnn)('ann: $need', ({ need, allowed }) => {
  expect(new Authority(IMAGE).decide('ann', [need]).allowed).toBe(allowed);
});

const ANY: readonly PlainNeed[] = [
  keys('read', 'x'),
  lock('steer', 'x'),
  { type: 'root', what: 'compact' },
  { type: 'anyUser' },
];

test('root may do everything; nobody without a user, nor a user that does not exist (D2, D3)', () => {
  const authority = new Authority(IMAGE);
  const allowed = (user: string | undefined) => ANY.map((need) => authority.decide(user, [need]).allowed);
  expect(allowed('root')).toEqual([true, true, true, true]);
  expect(allowed('bob')).toEqual([false, false, false, true]);
  expect(allowed('eve')).toEqual([false, false, false, false]);
  expect(allowed(undefined)).toEqual([false, false, false, false]);
});

test('a request that needs nothing still needs a user (D2)', () => {
  const authority = new Authority(IMAGE);
  const allowed = ['root', 'bob', 'eve', undefined].map((user) => authority.decide(user, []).allowed);
  expect(allowed).toEqual([true, true, false, false]);
});

test('while authentication is off, everybody may do everything (D3)', () => {
  const authority = new Authority({ ...IMAGE, enabled: false });
  for (const user of ['eve', undefined]) expect(authority.decide(user, ANY).allowed).toBe(true);
});

test('one need that is not granted refuses the request, and is named', () => {
  const authority = new Authority(IMAGE);
  const needs = [keys('read', 'orders/1'), keys('write', 'stock'), keys('write', 'x')];
  expect(authority.decide('ann', needs)).toEqual({
    allowed: false,
    need: needs[1],
    why: 'the user "ann" may not write the key "stock"',
  });
});

const refusals: readonly {
  readonly user?: string;
  readonly need: PlainNeed;
  readonly says: string;
  readonly code: string;
}[] = [
  {
    user: 'ann',
    need: keys('read', 'a', 'b'),
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not read the keys from "a" to "b"',
  },
  {
    user: 'ann',
    need: keys('write', 'a', ''),
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not write the keys from "a" on',
  },
  {
    user: 'ann',
    need: { type: 'keys', access: 'write', key: Buffer.from([0xff]) },
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not write the key 0xff',
  },
  {
    user: 'ann',
    need: lock('steer', 'orders/1'),
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not steer the lock "orders/1" of the namespace "shop"',
  },
  {
    user: 'ann',
    need: { type: 'locks', verb: 'read', namespace: '', prefix: b('') },
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not read all locks of all namespaces',
  },
  {
    user: 'ann',
    need: { type: 'root', what: 'compact' },
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" needs the role root to compact',
  },
  {
    user: 'ann',
    need: owned('bob', true),
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not end the session 7f, which belongs to another user. That needs steer on all locks of all namespaces, or the role root',
  },
  {
    user: 'ann',
    need: owned(NO_OWNER),
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not end the session 7f, which was begun without a user: open a new one.',
  },
  {
    user: 'ann',
    need: owned(undefined),
    code: 'PERMISSION_DENIED',
    says: 'the user "ann" may not end the lease 7f as a session: it was not begun as one. Open a session',
  },
  {
    need: keys('read', 'a'),
    code: 'UNAUTHENTICATED',
    says: 'authentication is on: log in with a user name and a password, a token or a certificate',
  },
];
test.each(refusals)('refused with a reason: $says', ({ user, need, code, says }) => {
  const principal = user === undefined ? undefined : ({ name: user, method: 'token' } as const);
  const refused = () => new Authority(IMAGE).check(principal, [need]);
  expect(refused).toThrow(ServiceError);
  expect(refused).toThrow(expect.objectContaining({ code, message: says }));
});

test('who may steer all locks of all namespaces may end and list the sessions of others, and use none (D5)', () => {
  const roles = [
    { name: 'guard', keys: [], locks: [{ namespace: '', name: b(''), isPrefix: true, verb: 'steer' as const }] },
  ];
  const users = [{ name: 'gil', passwordHash: '', roles: ['guard'], version: 1 }];
  const authority = new Authority({ ...IMAGE, roles, users });
  const allowed = (need: PlainNeed) => authority.decide('gil', [need]).allowed;
  for (const owner of ['bob', NO_OWNER])
    expect([allowed(owned(owner, true)), allowed(owned(owner))]).toEqual([true, false]);
  expect(allowed({ type: 'sessions', owner: undefined })).toBe(true);
});

test('who logged in with an earlier password, or as an earlier user of the name, may do nothing (D6)', () => {
  const codeOf = (version: number | undefined, image = IMAGE): string => {
    try {
      const principal = { name: 'ann', method: 'token', ...(version !== undefined && { version }) } as const;
      new Authority(image).check(principal, [{ type: 'anyUser' }]);
      return 'allowed';
    } catch (error) {
      return (error as ServiceError).code;
    }
  };
  expect([codeOf(1), codeOf(2), codeOf(undefined)]).toEqual(['allowed', 'UNAUTHENTICATED', 'allowed']);
  expect(codeOf(1, { ...IMAGE, users: [] })).toBe('UNAUTHENTICATED');
  expect(codeOf(2, { ...IMAGE, enabled: false })).toBe('allowed');
});
