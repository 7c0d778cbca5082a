/** Calls about users, roles and permissions, and the audit log. */
import type { AuditJson } from '@remora/gateway/http/json/audit';
import type {
  CanJson,
  KeyPermissionJson,
  LockPermissionJson,
  RoleJson,
  RolesJson,
  UsersJson,
} from '@remora/gateway/http/json/users';
import { percentEncoded } from '../logic/bytes.ts';
import { call, get } from './client.ts';

/** One permission, as it is granted and revoked. */
export type PermissionJson = { readonly keys: KeyPermissionJson } | { readonly locks: LockPermissionJson };

export function users(signal: AbortSignal): Promise<UsersJson> {
  return get('/v1/users', {}, signal);
}

export async function roles(signal: AbortSignal): Promise<readonly RoleJson[]> {
  return (await get<RolesJson>('/v1/roles', {}, signal)).roles;
}

/** Adds the user, or changes its password. An empty password: the user can only present a certificate. */
export function putUser(name: string, password: string): Promise<unknown> {
  return call('PUT', userPath(name), { body: password === '' ? {} : { password } });
}

export function deleteUser(name: string): Promise<unknown> {
  return call('DELETE', userPath(name));
}

export function grantRole(user: string, role: string): Promise<unknown> {
  return call('PUT', `${userPath(user)}/roles/${percentEncoded(role)}`, { body: {} });
}

export function revokeRole(user: string, role: string): Promise<unknown> {
  return call('DELETE', `${userPath(user)}/roles/${percentEncoded(role)}`);
}

export function addRole(name: string): Promise<unknown> {
  return call('PUT', rolePath(name), { body: {} });
}

export function deleteRole(name: string): Promise<unknown> {
  return call('DELETE', rolePath(name));
}

export function grant(role: string, permission: PermissionJson): Promise<unknown> {
  return call('POST', `${rolePath(role)}/grant`, { body: permission });
}

export function revokePermission(role: string, permission: PermissionJson): Promise<unknown> {
  return call('POST', `${rolePath(role)}/revoke`, { body: permission });
}

/** Answers as if authentication were on. */
export function can(user: string, permission: PermissionJson): Promise<CanJson> {
  return call('POST', '/v1/can', { body: { user, ...permission }, changes: false });
}

export function audit(node: number, before: number | undefined, signal: AbortSignal): Promise<AuditJson> {
  return get('/v1/audit', { node, before, limit: 200 }, signal);
}

function userPath(name: string): string {
  return `/v1/users/${percentEncoded(name)}`;
}

function rolePath(name: string): string {
  return `/v1/roles/${percentEncoded(name)}`;
}
