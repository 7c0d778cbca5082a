/**
 * Users, roles and permissions, as each master has them.
 *
 * A1. Each change takes effect as a whole and raises the revision by one, or is refused and changes nothing. What is so
 *     already (authentication is on, the user has the role, the role has the permission on locks) is neither refused
 *     nor a change, as in etcd (`server/auth/store.go`).
 * A2. While authentication is on, the user `root` exists and has the role `root`, so somebody can always switch it off.
 * A3. An image never changes after it was handed out, so its holder decides by exactly one revision.
 * A4. Apply reads no clock, makes no random number and hashes no password.
 * A5. A cluster is founded with authentication by one change: no state in between has users and serves everybody.
 */

import { type Bytes, compareBytes, copyBytes, EMPTY_BYTES, unreachable } from '@remora/base';
import type { AuthChange, AuthImage, KeyPermission, LockPermission, Role, User } from '@remora/protocol';
import { authError } from '../auth-errors.ts';
import { isSameSpan } from '../permissions/key-spans.ts';
import { ROOT } from '../root.ts';

/** Of a new cluster. */
export const FIRST_AUTH: AuthImage = { enabled: false, revision: 1, users: [], roles: [], tokenKey: EMPTY_BYTES };

/** The secrets with which a cluster is founded. */
export interface FirstRoot {
  readonly passwordHash: string;
  /** The key that signs tokens. */
  readonly tokenKey: Bytes;
}

type Named<Type extends AuthChange['type']> = Extract<AuthChange, { readonly type: Type }>;

export class AuthState {
  #image: AuthImage;
  readonly #users = new Map<string, User>();
  readonly #roles = new Map<string, Role>();
  #enabled: boolean;
  #tokenKey: Bytes;

  constructor(image: AuthImage = FIRST_AUTH) {
    this.#image = image;
    this.#enabled = image.enabled;
    this.#tokenKey = image.tokenKey;
    for (const user of image.users) this.#users.set(user.name, user);
    for (const role of image.roles) this.#roles.set(role.name, role);
  }

  /** A3. */
  get image(): AuthImage {
    return this.#image;
  }

  /** @throws ServiceError when the change is refused (A1). */
  apply(change: AuthChange): void {
    if (this.#isSo(change)) return;
    this.#make(change);
    this.#raise();
  }

  /** A1, A3. */
  #raise(): void {
    const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1);
    this.#image = {
      enabled: this.#enabled,
      revision: this.#image.revision + 1,
      users: [...this.#users.values()].sort(byName),
      roles: [...this.#roles.values()].sort(byName),
      tokenKey: this.#tokenKey,
    };
  }

  /**
   * Adds the user root with the role root, and switches authentication on (A5). Changes nothing if there was any change
   * before. An empty hash: root cannot log in with a password.
   */
  found({ passwordHash, tokenKey }: FirstRoot): void {
    if (this.#image.revision !== FIRST_AUTH.revision) return;
    this.#users.set(ROOT, { name: ROOT, passwordHash, roles: [ROOT], version: this.#image.revision });
    this.#tokenKey = copyBytes(tokenKey);
    this.#enabled = true;
    this.#raise();
  }

  /**
   * Skips revisions, when masters continue from a state that may lack the latest changes: a later image must not have
   * the revision of a lost one.
   */
  skipRevisions(count: number): void {
    this.#image = { ...this.#image, revision: this.#image.revision + count };
  }

  /** A1. */
  #isSo(change: AuthChange): boolean {
    switch (change.type) {
      case 'enable':
        return this.#enabled;
      case 'disable':
        return !this.#enabled;
      case 'grantRole':
        return this.#users.get(change.user)?.roles.includes(change.role) === true;
      case 'grantLocks':
        return this.#roles.get(change.role)?.locks.some((each) => isSameLocks(each, change.permission)) === true;
      default:
        return false;
    }
  }

  #make(change: AuthChange): void {
    switch (change.type) {
      case 'setTokenKey':
        this.#tokenKey = copyBytes(change.key);
        return;
      case 'enable':
        return this.#enable();
      case 'disable':
        this.#enabled = false;
        return;
      case 'addUser':
        return this.#addUser(change);
      case 'deleteUser':
        return this.#deleteUser(change);
      case 'changePassword':
        return this.#changePassword(change);
      case 'grantRole':
        return this.#grantRole(change);
      case 'revokeRole':
        return this.#revokeRole(change);
      case 'addRole':
        return this.#addRole(change);
      case 'deleteRole':
        return this.#deleteRole(change);
      case 'grantKeys':
        return this.#changeRole(change.role, (role) => ({ keys: withKeys(role.keys, change.permission) }));
      case 'revokeKeys':
        return this.#changeRole(change.role, (role) => ({ keys: withoutKeys(role, change.span) }));
      case 'grantLocks':
        return this.#changeRole(change.role, (role) => ({ locks: [...role.locks, keptLocks(change.permission)] }));
      case 'revokeLocks':
        return this.#changeRole(change.role, (role) => ({ locks: withoutLocks(role, change.permission) }));
      default:
        unreachable(change);
    }
  }

  /** A2. */
  #enable(): void {
    const root = this.#users.get(ROOT);
    if (root === undefined) {
      throw authError('rootUserMissing', 'there is no user root; add it first: remora auth user add root');
    }
    if (!root.roles.includes(ROOT)) {
      throw authError(
        'rootRoleMissing',
        'the user root does not have the role root; grant it first: remora auth user grant-role root root',
      );
    }
    this.#enabled = true;
  }

  #addUser({ user: name, passwordHash }: Named<'addUser'>): void {
    if (name === '') throw authError('userEmpty', 'a user needs a name');
    if (this.#users.has(name)) throw authError('userExists', `the user "${name}" exists already`);
    // Tokens of an earlier user of this name must not be taken for this one's.
    this.#users.set(name, { name, passwordHash, roles: [], version: this.#image.revision });
  }

  /** A2. */
  #deleteUser({ user: name }: Named<'deleteUser'>): void {
    if (this.#enabled && name === ROOT) {
      throw authError('invalidAuthManagement', 'the user root is needed while authentication is on');
    }
    this.#user(name);
    this.#users.delete(name);
  }

  #changePassword({ user: name, passwordHash }: Named<'changePassword'>): void {
    this.#users.set(name, { ...this.#user(name), passwordHash, version: this.#image.revision });
  }

  #grantRole({ user: name, role }: Named<'grantRole'>): void {
    const user = this.#user(name);
    if (role !== ROOT) this.#role(role);
    this.#users.set(name, { ...user, roles: [...user.roles, role].sort() });
  }

  /** A2. */
  #revokeRole({ user: name, role }: Named<'revokeRole'>): void {
    if (this.#enabled && name === ROOT && role === ROOT) {
      throw authError('invalidAuthManagement', 'the user root needs the role root while authentication is on');
    }
    const user = this.#user(name);
    if (!user.roles.includes(role)) {
      throw authError('roleNotGranted', `the user "${name}" does not have the role "${role}"`);
    }
    this.#users.set(name, { ...user, roles: user.roles.filter((each) => each !== role) });
  }

  #addRole({ role: name }: Named<'addRole'>): void {
    if (name === '') throw authError('roleEmpty', 'a role needs a name');
    if (this.#roles.has(name)) throw authError('roleExists', `the role "${name}" exists already`);
    this.#roles.set(name, { name, keys: [], locks: [] });
  }

  /** A2. Users that had the role lose it. */
  #deleteRole({ role: name }: Named<'deleteRole'>): void {
    if (this.#enabled && name === ROOT) {
      throw authError('invalidAuthManagement', 'the role root is needed while authentication is on');
    }
    this.#role(name);
    this.#roles.delete(name);
    for (const user of this.#users.values()) {
      if (!user.roles.includes(name)) continue;
      this.#users.set(user.name, { ...user, roles: user.roles.filter((each) => each !== name) });
    }
  }

  #changeRole(name: string, change: (role: Role) => Partial<Role>): void {
    const role = this.#role(name);
    this.#roles.set(name, { ...role, ...change(role) });
  }

  #user(name: string): User {
    const user = this.#users.get(name);
    if (user === undefined) throw authError('userNotFound', `there is no user "${name}"`);
    return user;
  }

  #role(name: string): Role {
    const role = this.#roles.get(name);
    if (role === undefined) throw authError('roleNotFound', `there is no role "${name}"`);
    return role;
  }
}

function withKeys(permissions: readonly KeyPermission[], added: KeyPermission): readonly KeyPermission[] {
  const others = permissions.filter((each) => !isSameSpan(each, added));
  return [...others, kept(added)].sort((a, b) => compareBytes(a.key, b.key) || compareEnds(a.end, b.end));
}

/** The bytes of a change are released with its log entry. */
function kept({ key, end, ...permission }: KeyPermission): KeyPermission {
  return { ...permission, key: copyBytes(key), ...(end !== undefined && { end: copyBytes(end) }) };
}

function keptLocks(permission: LockPermission): LockPermission {
  return { ...permission, name: copyBytes(permission.name) };
}

function withoutKeys({ name, keys }: Role, span: Pick<KeyPermission, 'key' | 'end'>): readonly KeyPermission[] {
  const left = keys.filter((each) => !isSameSpan(each, span));
  if (left.length === keys.length) {
    throw authError('permissionNotGranted', `the role "${name}" has no permission for exactly these keys`);
  }
  return left;
}

function withoutLocks({ name, locks }: Role, revoked: LockPermission): readonly LockPermission[] {
  const left = locks.filter((each) => !isSameLocks(each, revoked));
  if (left.length === locks.length) {
    throw authError('permissionNotGranted', `the role "${name}" may not ${revoked.verb} exactly these locks`);
  }
  return left;
}

/** One key comes before spans, and spans to the last key come last. */
function compareEnds(a: KeyPermission['end'], b: KeyPermission['end']): number {
  const rank = (end: KeyPermission['end']) => (end === undefined ? 0 : end.length > 0 ? 1 : 2);
  if (a === undefined || b === undefined || rank(a) !== rank(b)) return rank(a) - rank(b);
  return compareBytes(a, b);
}

function isSameLocks(a: LockPermission, b: LockPermission): boolean {
  return (
    a.namespace === b.namespace && a.verb === b.verb && a.isPrefix === b.isPrefix && compareBytes(a.name, b.name) === 0
  );
}
