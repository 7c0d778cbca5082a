/**
 * Bounds of what masters store about users and roles: every node has all of it in memory, and gets it whole after each
 * change.
 */
import { type Bytes, ServiceError } from '@remora/base';
import type { AuthChange, AuthImage } from '@remora/protocol';

export interface AuthLimits {
  readonly usersMax: number;
  readonly rolesMax: number;
  /** Permissions of one role, on keys and locks together; and roles of one user. */
  readonly grantsMax: number;
  /** A name of a user, a role or a namespace, in bytes. */
  readonly nameBytesMax: number;
  /** A key, or a name of locks. */
  readonly keyBytesMax: number;
}

export const AUTH_LIMITS: AuthLimits = {
  usersMax: 10_000,
  rolesMax: 1_000,
  grantsMax: 1_000,
  nameBytesMax: 256,
  keyBytesMax: 4_096,
};

/** @throws ServiceError `INVALID_ARGUMENT` or `RESOURCE_EXHAUSTED` for a change that would exceed a limit. */
export function checkAuthChange(change: AuthChange, image: AuthImage, limits: AuthLimits = AUTH_LIMITS): void {
  for (const name of namesOf(change)) checkName(name, limits);
  for (const key of keysOf(change)) checkKey(key, limits);
  const full = fullBy(change, image, limits);
  if (full !== undefined) throw new ServiceError('RESOURCE_EXHAUSTED', full);
}

function namesOf(change: AuthChange): readonly string[] {
  return [
    ...('user' in change ? [change.user] : []),
    ...('role' in change ? [change.role] : []),
    ...('permission' in change && 'namespace' in change.permission ? [change.permission.namespace] : []),
  ];
}

function keysOf(change: AuthChange): readonly Bytes[] {
  switch (change.type) {
    case 'grantKeys':
      return [change.permission.key, change.permission.end ?? change.permission.key];
    case 'revokeKeys':
      return [change.span.key, change.span.end ?? change.span.key];
    case 'grantLocks':
    case 'revokeLocks':
      return [change.permission.name];
    default:
      return [];
  }
}

function checkName(name: string, { nameBytesMax }: AuthLimits): void {
  const bytes = Buffer.byteLength(name);
  if (bytes > nameBytesMax) {
    const message = `a name of a user, role or namespace has at most ${nameBytesMax} bytes; this one has ${bytes}`;
    throw new ServiceError('INVALID_ARGUMENT', message);
  }
  if (/\p{Cc}/u.test(name)) {
    throw new ServiceError('INVALID_ARGUMENT', `the name ${JSON.stringify(name)} contains a control character`);
  }
}

function checkKey(key: Bytes, { keyBytesMax }: AuthLimits): void {
  if (key.length <= keyBytesMax) return;
  const message = `a key of a permission has at most ${keyBytesMax} bytes; this one has ${key.length}`;
  throw new ServiceError('INVALID_ARGUMENT', message);
}

/** Says which limit a change would exceed. */
function fullBy(change: AuthChange, { users, roles }: AuthImage, limits: AuthLimits): string | undefined {
  switch (change.type) {
    case 'addUser':
      return users.length < limits.usersMax ? undefined : `there are ${users.length} users, which is the limit`;
    case 'addRole':
      return roles.length < limits.rolesMax ? undefined : `there are ${roles.length} roles, which is the limit`;
    case 'grantRole': {
      const had = users.find(({ name }) => name === change.user)?.roles.length ?? 0;
      return had < limits.grantsMax ? undefined : `the user "${change.user}" has ${had} roles, which is the limit`;
    }
    case 'grantKeys':
    case 'grantLocks': {
      const role = roles.find(({ name }) => name === change.role);
      const had = (role?.keys.length ?? 0) + (role?.locks.length ?? 0);
      return had < limits.grantsMax
        ? undefined
        : `the role "${change.role}" has ${had} permissions, which is the limit; grant prefixes instead of single keys`;
    }
    default:
      return undefined;
  }
}
