/** Users, roles and permissions: as masters store them, and as nodes learn of them. */
import { ServiceError } from '@remora/base';
import { bool, bytes, field, list, maybe, struct, text, uint, union, variant, words } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';

const KeyAccessKind = words('access to keys', ['read', 'write', 'readWrite']);
export type KeyAccess = Infer<typeof KeyAccessKind>;

const KEYS = {
  key: field(bytes, 'The key, or the first one of a span.'),
  end: maybe(bytes, 'The key behind the last one; empty: to the last key; absent: one key.'),
};

/** What a role may do with plain keys. */
export const KeyPermission = struct('permission on keys', { ...KEYS, access: field(KeyAccessKind, 'What it may do.') });
export interface KeyPermission extends Infer<typeof KeyPermission> {}

const LockVerbKind = words('verb on locks', ['read', 'acquire', 'steer']);
/**
 * What may be done with a lock:
 *  - `read`: show it, list it, watch it, check a version of it;
 *  - `acquire`: take it, wait for it, and release what is one's own;
 *  - `steer`: force its release, ask its holder for it, change its capacity, end other people's sessions.
 *
 * A user who may acquire or steer a lock may read it. To steer does not include to acquire: operators who end the locks
 * of others need not be able to take them.
 */
export type LockVerb = Infer<typeof LockVerbKind>;

/** What a role may do with locks. */
export const LockPermission = struct('permission on locks', {
  namespace: field(text, 'The namespace; empty: all.'),
  name: field(bytes, 'The name of one lock, or what the names of several begin with; as that, empty: all locks.'),
  isPrefix: field(bool, 'Whether it covers all locks whose names begin with the name.'),
  verb: field(LockVerbKind, 'What it may do.'),
});
export interface LockPermission extends Infer<typeof LockPermission> {}

export const Role = struct('role', {
  name: field(text, 'Its name.'),
  keys: field(list(KeyPermission), 'Its permissions on keys, in the order of the keys.'),
  locks: field(list(LockPermission), 'Its permissions on locks.'),
});
export interface Role extends Infer<typeof Role> {}

const PASSWORD_HASH = field(text, 'The hash of the password, which holds its parameters; empty: no password fits.');

export const User = struct('user', {
  name: field(text, 'Its name.'),
  passwordHash: PASSWORD_HASH,
  roles: field(list(text), 'Its roles, in the order of their names.'),
  version: field(uint, 'Another one when the password changes, and when the user is made again: it ends older tokens.'),
});
export interface User extends Infer<typeof User> {}

/** All that is known of users and roles at one revision. */
export const AuthImage = struct('users and roles', {
  enabled: field(bool, 'Whether authentication is on.'),
  revision: field(uint, 'Grows with each change; 1 in a new cluster.'),
  users: field(list(User), 'In the order of their names.'),
  roles: field(list(Role), 'In the order of their names.'),
  tokenKey: field(bytes, 'Signs tokens; empty until the first user is added.'),
});
export interface AuthImage extends Infer<typeof AuthImage> {}

const USER = field(text, 'The name of the user.');
const ROLE = field(text, 'The name of the role.');
const LOCKS = field(LockPermission, 'Locks, and a verb.');

/** A change of users and roles. Passwords are hashed before: no log holds one. */
export const AuthChange = union('change of users and roles', 'type', {
  setTokenKey: variant(0, { key: field(bytes, 'Signs tokens from now on; all others end.') }),
  enable: variant(1, {}),
  disable: variant(2, {}),
  addUser: variant(3, { user: USER, passwordHash: PASSWORD_HASH }),
  deleteUser: variant(4, { user: USER }),
  changePassword: variant(5, { user: USER, passwordHash: PASSWORD_HASH }),
  grantRole: variant(6, { user: USER, role: ROLE }),
  revokeRole: variant(7, { user: USER, role: ROLE }),
  addRole: variant(8, { role: ROLE }),
  deleteRole: variant(9, { role: ROLE }),
  /** Another access to the same keys replaces the one that the role had. */
  grantKeys: variant(10, { role: ROLE, permission: field(KeyPermission, 'Keys, and an access.') }),
  revokeKeys: variant(11, {
    role: ROLE,
    span: field(struct('span of keys', KEYS), 'Exactly the keys of one permission.'),
  }),
  grantLocks: variant(12, { role: ROLE, permission: LOCKS }),
  revokeLocks: variant(13, { role: ROLE, permission: LOCKS }),
});
export type AuthChange = Infer<typeof AuthChange>;

export const ChangeAuthRequest = struct('request to change users and roles', {
  change: field(AuthChange, 'The change.'),
});
export interface ChangeAuthRequest extends Infer<typeof ChangeAuthRequest> {}

export const AuthRevision = struct('revision of users and roles', {
  revision: field(uint, 'The revision.'),
});
export interface AuthRevision extends Infer<typeof AuthRevision> {}

/**
 * The refusal of a request that was allowed by an older revision of users and roles than its leader knows.
 * `mayCommit`: an earlier attempt at it is in the leader's log, or waits there.
 */
export function staleAuth(revision: number, mayCommit: boolean): ServiceError {
  const message = `users and roles were changed (revision ${revision}); the request has to be allowed again`;
  return new ServiceError('STALE_AUTH', message, { details: { authRevision: revision, mayCommit } });
}

/** What `STALE_AUTH` says. */
export function staleAuthDetails({ details }: ServiceError): {
  readonly revision: number;
  readonly mayCommit: boolean;
} {
  const revision = details?.authRevision;
  return { revision: typeof revision === 'number' ? revision : 0, mayCommit: details?.mayCommit === true };
}
