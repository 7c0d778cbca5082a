import type { ServiceError } from '@remora/base';
import type { AuthChange, AuthImage } from '@remora/protocol';
import { expect, test } from 'vitest';
import { checkAuthChange } from './auth-limits.ts';

const b = (text: string): Buffer => Buffer.from(text);
const LIMITS = { usersMax: 1, rolesMax: 1, grantsMax: 2, nameBytesMax: 4, keyBytesMax: 3 };
const IMAGE: AuthImage = {
  ...{ enabled: false, revision: 3, tokenKey: b('') },
  users: [{ name: 'ann', passwordHash: '', roles: ['a', 'b'], version: 1 }],
  roles: [
    {
      name: 'shop',
      keys: [{ access: 'read', key: b('k') }],
      locks: [{ namespace: '', name: b(''), isPrefix: true, verb: 'read' }],
    },
  ],
};
const locks = { namespace: 'n', name: b('p'), isPrefix: true, verb: 'read' } as const;

const rows: readonly { readonly name: string; readonly change: AuthChange; readonly code: string | undefined }[] = [
  { name: 'one user too many', change: { type: 'addUser', user: 'bob', passwordHash: '' }, code: 'RESOURCE_EXHAUSTED' },
  { name: 'one role too many', change: { type: 'addRole', role: 'more' }, code: 'RESOURCE_EXHAUSTED' },
  {
    name: 'one role of a user too many',
    change: { type: 'grantRole', user: 'ann', role: 'c' },
    code: 'RESOURCE_EXHAUSTED',
  },
  {
    name: 'one permission too many',
    change: { type: 'grantLocks', role: 'shop', permission: locks },
    code: 'RESOURCE_EXHAUSTED',
  },
  { name: 'a long name', change: { type: 'deleteUser', user: 'annie' }, code: 'INVALID_ARGUMENT' },
  {
    name: 'a name with a control character',
    change: { type: 'deleteRole', role: 'a\u0007' },
    code: 'INVALID_ARGUMENT',
  },
  {
    name: 'a long namespace',
    change: { type: 'revokeLocks', role: 'shop', permission: { ...locks, namespace: 'lager' } },
    code: 'INVALID_ARGUMENT',
  },
  {
    name: 'a long end of a span',
    change: { type: 'revokeKeys', role: 'shop', span: { key: b('a'), end: b('long') } },
    code: 'INVALID_ARGUMENT',
  },
  { name: 'what is within the limits', change: { type: 'grantRole', user: 'bob', role: 'c' }, code: undefined },
  { name: 'what makes room', change: { type: 'deleteUser', user: 'ann' }, code: undefined },
];
test.each(rows)('$name', ({ change, code }) => {
  let found: string | undefined;
  try {
    checkAuthChange(change, IMAGE, LIMITS);
  } catch (error) {
    found = (error as ServiceError).code;
  }
  expect(found).toBe(code);
});
