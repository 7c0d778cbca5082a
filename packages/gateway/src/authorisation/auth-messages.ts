/** Converts requests and answers of `remora.v1.Auth` from and to what decisions know. */
import type { Explainable, Explanation, RolePermission } from '@remora/auth';
import { NAME_BYTES_MAX, NAMESPACE_BYTES_MAX } from '@remora/lock';
import type { AuthChange, KeyAccess, KeyPermission, LockPermission, LockVerb, Role, User } from '@remora/protocol';
import type { auth } from '@remora/protocol/remora';
import { fromKeys, invalid, named, toKeys, toSpan } from './key-permissions.ts';

/** Maps, as the words come from clients: an object would also have `constructor`. */
const ACCESSES: ReadonlyMap<string, KeyAccess> = new Map([
  ['read', 'read'],
  ['write', 'write'],
  ['readwrite', 'readWrite'],
]);
const VERBS: ReadonlyMap<string, LockVerb> = new Map([
  ['read', 'read'],
  ['acquire', 'acquire'],
  ['steer', 'steer'],
]);

type PlainChange = Exclude<AuthChange, { readonly type: 'setTokenKey' | 'addUser' | 'changePassword' | 'revokeKeys' }>;
/** `password`: undefined for a user who cannot log in with one. */
interface NewUser {
  readonly type: 'addUser';
  readonly user: string;
  readonly password: string | undefined;
}
/** The password is still to be hashed. */
interface NewPassword {
  readonly type: 'setPassword';
  readonly user: string;
  readonly password: string;
}

/** `access`: what the caller takes the role to have; undefined: whatever it has. */
type RevokeKeys = Extract<AuthChange, { readonly type: 'revokeKeys' }> & { readonly access: KeyAccess | undefined };

/** @throws ServiceError `INVALID_ARGUMENT` */
export function toAuthChange({ change }: auth.ChangeRequest): PlainChange | NewUser | NewPassword | RevokeKeys {
  switch (change?.$case) {
    case 'enable':
    case 'disable':
      return { type: change.$case };
    case 'addUser':
      return { type: 'addUser', user: named(change.value.name, 'user'), password: change.value.password };
    case 'deleteUser':
      return { type: 'deleteUser', user: change.value };
    case 'setPassword':
      return { type: 'setPassword', user: change.value.name, password: change.value.password };
    case 'grantRole':
      return { type: 'grantRole', user: change.value.user, role: change.value.role };
    case 'revokeRole':
      return { type: 'revokeRole', user: change.value.user, role: change.value.role };
    case 'addRole':
      return { type: 'addRole', role: named(change.value, 'role') };
    case 'deleteRole':
      return { type: 'deleteRole', role: change.value };
    case 'grantKeys':
      return { type: 'grantKeys', role: change.value.role, permission: toKeyPermission(change.value.permission) };
    case 'revokeKeys': {
      const { role, permission } = change.value;
      const { key, rangeEnd } = spanOf(permission);
      const access = permission?.access === '' ? undefined : oneOf(ACCESSES, permission?.access, 'access');
      return { type: 'revokeKeys', role, span: toSpan(key, rangeEnd), access };
    }
    case 'grantLocks':
      return { type: 'grantLocks', role: change.value.role, permission: toLockPermission(change.value.permission) };
    case 'revokeLocks':
      return { type: 'revokeLocks', role: change.value.role, permission: toLockPermission(change.value.permission) };
    case undefined:
      throw invalid('invalidAuthManagement', 'the field change is missing');
  }
}

function toKeyPermission(permission: auth.KeyPermission | undefined): KeyPermission {
  const { key, rangeEnd } = spanOf(permission);
  return { ...toKeys(key, rangeEnd), access: oneOf(ACCESSES, permission?.access, 'access') };
}

function spanOf(permission: auth.KeyPermission | undefined): auth.KeySpan {
  if (permission?.span !== undefined) return permission.span;
  throw invalid('permissionNotGiven', 'the field permission.span is missing');
}

function toLockPermission(permission: auth.LockPermission | undefined): LockPermission {
  if (permission === undefined) throw invalid('permissionNotGiven', 'the field permission is missing');
  const { namespace, name, prefix: isPrefix } = permission;
  if (Buffer.byteLength(namespace) > NAMESPACE_BYTES_MAX) {
    throw invalid('invalidAuthManagement', `a namespace has at most ${NAMESPACE_BYTES_MAX} bytes`);
  }
  if (name.length > NAME_BYTES_MAX || (name.length === 0 && !isPrefix)) {
    const message = `the name of a lock has 1 to ${NAME_BYTES_MAX} bytes, not ${name.length}; set prefix for all locks`;
    throw invalid('invalidAuthManagement', message);
  }
  return { namespace, name, isPrefix, verb: oneOf(VERBS, permission.verb, 'verb') };
}

/** @throws ServiceError `INVALID_ARGUMENT` */
export function toExplainable({ what }: auth.ExplainRequest): readonly Explainable[] {
  switch (what?.$case) {
    case 'keys': {
      const { access, ...span } = toKeyPermission(what.value);
      const accesses = access === 'readWrite' ? (['read', 'write'] as const) : [access];
      return accesses.map((each) => ({ type: 'keys', access: each, ...span }));
    }
    case 'locks': {
      const { verb, namespace, name, isPrefix } = toLockPermission(what.value);
      return [isPrefix ? { type: 'locks', verb, namespace, prefix: name } : { type: 'lock', verb, namespace, name }];
    }
    case 'administer':
      return [{ type: 'root', what: 'administer the cluster' }];
    case undefined:
      throw invalid('invalidAuthManagement', 'the field keys, locks or administer is missing');
  }
}

function oneOf<T>(words: ReadonlyMap<string, T>, word: string | undefined, field: string): T {
  const known = words.get(word ?? '');
  if (known !== undefined) return known;
  throw invalid('invalidAuthManagement', `${field}: expected one of ${[...words.keys()].join(', ')}, not "${word}"`);
}

export function fromUser({ name, roles, passwordHash }: User): auth.User {
  return { name, roles: [...roles], hasPassword: passwordHash !== '' };
}

export function fromRole({ name, keys, locks }: Role): auth.Role {
  return { name, keys: keys.map(fromKeyPermission), locks: locks.map(fromLockPermission) };
}

export function fromExplanation(
  explanation: Explanation,
  asked: { readonly user: string; readonly enabled: boolean },
): auth.ExplainResponse {
  const { allowed } = explanation;
  const refusal = explanation.allowed ? { why: '', missing: [], sufficientRoles: [] } : explanation;
  return {
    ...asked,
    allowed,
    why: refusal.why,
    through: explanation.allowed ? explanation.through.map(fromRolePermission) : [],
    missing: refusal.missing.map(fromRolePermission),
    sufficientRoles: [...refusal.sufficientRoles],
  };
}

function fromRolePermission({ role = '', permission }: RolePermission): auth.GrantedPermission {
  switch (permission.type) {
    case 'keys':
      return { role, permission: { $case: 'keys', value: fromKeyPermission(permission.permission) } };
    case 'locks':
      return { role, permission: { $case: 'locks', value: fromLockPermission(permission.permission) } };
    case 'all':
      return { role, permission: undefined };
  }
}

function fromKeyPermission({ access, ...span }: KeyPermission): auth.KeyPermission {
  return { span: fromKeys(span), access: access === 'readWrite' ? 'readwrite' : access };
}

function fromLockPermission({ namespace, name, isPrefix, verb }: LockPermission): auth.LockPermission {
  return { namespace, name: Buffer.from(name), prefix: isPrefix, verb };
}
