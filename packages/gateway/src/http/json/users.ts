/** Users, roles and permissions, as they are in JSON. Types only: the console imports them. */
import type { JsonBytes } from '@remora/base';

/** One key, all keys with a prefix, or a span of keys: exactly one of `key`, `prefix` and `from`. */
export interface KeyPermissionJson {
  readonly access: 'read' | 'write' | 'readwrite';
  readonly key?: JsonBytes;
  readonly prefix?: JsonBytes;
  /** The first key of a span. */
  readonly from?: JsonBytes;
  /** The key behind the last one of the span. Absent: the span has no end. */
  readonly to?: JsonBytes;
}

/** One lock, or all locks with a prefix: exactly one of `name` and `prefix`. */
export interface LockPermissionJson {
  readonly verb: 'read' | 'acquire' | 'steer';
  /** Empty: all namespaces. */
  readonly namespace: string;
  readonly name?: JsonBytes;
  readonly prefix?: JsonBytes;
}

export interface PermissionsJson {
  readonly keys: readonly KeyPermissionJson[];
  readonly locks: readonly LockPermissionJson[];
}

export interface UserJson {
  readonly name: string;
  readonly roles: readonly string[];
  /** False: the user can only present a certificate. */
  readonly hasPassword: boolean;
}

/** `GET /v1/users` */
export interface UsersJson {
  readonly authentication: boolean;
  readonly users: readonly UserJson[];
  /** `after` of the next page. Absent: there is none. */
  readonly next?: string;
}

/** The role root is listed only if somebody has added it. */
export interface RoleJson extends PermissionsJson {
  readonly name: string;
}

/** `GET /v1/roles` */
export interface RolesJson {
  readonly roles: readonly RoleJson[];
  readonly next?: string;
}

/** The answer to a change of a user or a role: all live nodes decide by it. */
export interface DoneJson {
  readonly done: true;
}

/** A permission, and the role that has it. */
export interface GrantedJson {
  /** Absent: a new role. */
  readonly role?: string;
  /** Neither `keys` nor `locks`: everything. */
  readonly keys?: KeyPermissionJson;
  readonly locks?: LockPermissionJson;
}

/** `POST /v1/can`: answered as if authentication were on. */
export interface CanJson {
  readonly user: string;
  readonly allowed: boolean;
  readonly authentication: boolean;
  /** Why it is not allowed; empty if it is. */
  readonly why: string;
  /** The permissions that allow it. */
  readonly through: readonly GrantedJson[];
  /** What to grant to allow it. */
  readonly missing: readonly GrantedJson[];
  /** Roles that allow it and that the user does not have. */
  readonly sufficientRoles: readonly string[];
}
