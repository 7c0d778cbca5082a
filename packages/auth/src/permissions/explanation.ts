/**
 * Explains what a user may do: by which permissions, or what would have to be granted.
 *
 * EX1. The verdict is that of `Authority`: an explanation never says that something is allowed that would be refused.
 * EX2. It answers as if authentication were on, so that permissions can be tried before it is switched on.
 * EX3. What it proposes to grant suffices, and takes nothing away. Another access to the same keys replaces the one
 *      that the role had (auth-state.ts), so the proposal contains that one.
 */
import { compareBytes } from '@remora/base';
import type { AuthImage, KeyAccess, KeyPermission, LockPermission, Role } from '@remora/protocol';
import { authError } from '../auth-errors.ts';
import type { PlainNeed } from '../needs/need.ts';
import { ROOT } from '../root.ts';
import { Authority } from './authority.ts';
import { isSameSpan, type KeySpan, KeySpans } from './key-spans.ts';
import { allowsLocks } from './lock-grants.ts';

/** What can be asked about: what permissions grant, and the role root. */
export type Explainable = Extract<PlainNeed, { readonly type: 'keys' | 'lock' | 'locks' | 'root' }>;

type Permission =
  | { readonly type: 'keys'; readonly permission: KeyPermission }
  | { readonly type: 'locks'; readonly permission: LockPermission }
  /** The role root, which may do everything. */
  | { readonly type: 'all' };

export interface RolePermission {
  /** Undefined: the user has no role that could get the permission. */
  readonly role: string | undefined;
  readonly permission: Permission;
}

export type Explanation =
  | {
      readonly allowed: true;
      /** They allow it together. */
      readonly through: readonly RolePermission[];
    }
  | {
      readonly allowed: false;
      readonly why: string;
      /** All of them would have to be granted (EX3). */
      readonly missing: readonly RolePermission[];
      /** Other roles that would allow it, each by itself; at most `SUGGESTED_MAX`. */
      readonly sufficientRoles: readonly string[];
    };

const SUGGESTED_MAX = 5;
const BY_ROOT: RolePermission = { role: ROOT, permission: { type: 'all' } };

/** `needs`: all of them. @throws ServiceError `AUTH_REFUSED` if there is no such user */
export function explain(image: AuthImage, user: string, needs: readonly Explainable[]): Explanation {
  const known = image.users.find(({ name }) => name === user);
  if (known === undefined) throw authError('userNotFound', `there is no user "${user}"`);
  const authority = new Authority({ ...image, enabled: true }); // EX2
  const verdict = authority.decide(user, needs); // EX1
  if (known.roles.includes(ROOT)) return { allowed: true, through: [BY_ROOT] };
  const roles = image.roles.filter(({ name }) => known.roles.includes(name));
  if (verdict.allowed) return { allowed: true, through: needs.flatMap((need) => throughOf(roles, need)) };
  const lacking = needs.filter((need) => !authority.decide(user, [need]).allowed);
  return {
    allowed: false,
    why: verdict.why,
    missing: missingOf(roles[0], lacking),
    sufficientRoles: sufficientRoles(image, needs),
  };
}

/** The permissions that allow something: one if one is enough, else all that are part of it. */
function throughOf(roles: readonly Role[], need: Explainable): readonly RolePermission[] {
  const all = roles.flatMap((role) =>
    permissionsOf(role)
      .filter((permission) => contributes(permission, need))
      .map((permission): RolePermission => ({ role: role.name, permission })),
  );
  const enough = all.find(({ permission }) => isEnough([permission], need));
  return enough === undefined ? all : [enough];
}

function permissionsOf({ keys, locks }: Role): readonly Permission[] {
  return [
    ...keys.map((permission): Permission => ({ type: 'keys', permission })),
    ...locks.map((permission): Permission => ({ type: 'locks', permission })),
  ];
}

function contributes(permission: Permission, need: Explainable): boolean {
  if (permission.type !== 'keys' || need.type !== 'keys') return isEnough([permission], need);
  return includes(permission.permission.access, need.access) && overlaps(permission.permission, need);
}

function isEnough(permissions: readonly Permission[], need: Explainable): boolean {
  switch (need.type) {
    case 'keys': {
      const keys = permissions.flatMap((each) => (each.type === 'keys' ? [each.permission] : []));
      return new KeySpans(keys.filter(({ access }) => includes(access, need.access))).covers(need);
    }
    case 'lock':
    case 'locks':
      return permissions.some((each) => each.type === 'locks' && allowsLocks(each.permission, locksOf(need)));
    case 'root':
      return false;
  }
}

function includes(access: KeyAccess, wanted: 'read' | 'write'): boolean {
  return access === wanted || access === 'readWrite';
}

function overlaps(a: KeySpan, b: KeySpan): boolean {
  return endsAfter(a, b.key) && endsAfter(b, a.key);
}

function endsAfter({ key: from, end }: KeySpan, key: Uint8Array): boolean {
  if (end === undefined) return compareBytes(from, key) >= 0;
  return end.length === 0 || compareBytes(end, key) > 0;
}

/** EX3. `role`: that would get them. */
function missingOf(role: Role | undefined, lacking: readonly Explainable[]): readonly RolePermission[] {
  if (lacking.some(({ type }) => type === 'root')) return [BY_ROOT];
  const keys: KeyPermission[] = [];
  const others: Permission[] = [];
  for (const need of lacking) {
    if (need.type === 'lock' || need.type === 'locks') others.push({ type: 'locks', permission: locksOf(need) });
    if (need.type !== 'keys') continue;
    const { access, key, end } = need;
    const span = { key, ...(end !== undefined && { end }) };
    const same = [...keys, ...(role?.keys ?? [])].find((each) => isSameSpan(each, span));
    const merged = same === undefined || same.access === access ? access : 'readWrite';
    const before = keys.findIndex((each) => isSameSpan(each, span));
    keys.splice(before < 0 ? keys.length : before, 1, { ...span, access: merged });
  }
  const all: readonly Permission[] = [
    ...keys.map((permission): Permission => ({ type: 'keys', permission })),
    ...others,
  ];
  return all.map((permission) => ({ role: role?.name, permission }));
}

function sufficientRoles({ roles }: AuthImage, needs: readonly Explainable[]): readonly string[] {
  return roles
    .filter((role) => role.name !== ROOT && needs.every((need) => isEnough(permissionsOf(role), need)))
    .slice(0, SUGGESTED_MAX)
    .map(({ name }) => name);
}

function locksOf(need: Extract<Explainable, { readonly type: 'lock' | 'locks' }>): LockPermission {
  const { verb, namespace } = need;
  return need.type === 'lock'
    ? { verb, namespace, name: need.name, isPrefix: false }
    : { verb, namespace, name: need.prefix, isPrefix: true };
}
