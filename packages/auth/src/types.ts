import type { Bytes } from '@remora/base';

/** The user that may do everything as soon as it has the role of the same name. */
export const ROOT = 'root';

export type KeyAccess = 'read' | 'write' | 'readWrite';

/** What a role may do with plain keys. */
export interface KeyPermission {
  readonly access: KeyAccess;
  readonly key: Bytes;
  /** The key behind the last one. Empty: to the last key. Absent: one key. */
  readonly end?: Bytes;
}

/**
 * What may be done with a lock:
 *  - `read`: show it, list it, watch it, check a version of it;
 *  - `acquire`: take it, wait for it, and release what is one's own;
 *  - `steer`: force its release, ask its holder for it, change its capacity, end other people's sessions.
 *
 * Whoever may acquire or steer a lock may read it.
 */
export type LockVerb = 'read' | 'acquire' | 'steer';

/** What a role may do with locks. */
export interface LockPermission {
  /** Empty: every namespace. */
  readonly namespace: string;
  /** The locks whose names begin with it. Empty: all of the namespace. */
  readonly prefix: Bytes;
  readonly verb: LockVerb;
}

export interface Role {
  readonly name: string;
  /** In the order of their keys, then of their ends. */
  readonly keys: readonly KeyPermission[];
  readonly locks: readonly LockPermission[];
}

export interface User {
  readonly name: string;
  /** What `crypto` made of the password. Empty: the user has none, and logs in by a certificate. */
  readonly passwordHash: string;
  /** In the order of their names. */
  readonly roles: readonly string[];
  /** Grows with each change of the password, and when a user of this name is made again: it ends older tokens. */
  readonly version: number;
}

/** All that is known of users and roles at one revision. */
export interface AuthImage {
  readonly enabled: boolean;
  /** Grows with each change. A new cluster has 1, as etcd does. */
  readonly revision: number;
  readonly users: readonly User[];
  readonly roles: readonly Role[];
  /** Signs tokens (credentials/tokens.ts). Empty until the first change of users. */
  readonly tokenKey: Bytes;
}
