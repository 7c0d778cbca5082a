import type { Bytes } from '@remora/base';
import type { KeyPermission, LockPermission } from '../types.ts';

/**
 * A change of users and roles, as the masters' log holds it. Passwords are hashed before: a log holds no password.
 * `user` and `role` are names.
 */
export type AuthChange =
  /** The key that signs tokens; a second one ends all tokens. */
  | { readonly type: 'setTokenKey'; readonly key: Bytes }
  | { readonly type: 'enable' }
  | { readonly type: 'disable' }
  /** An empty hash makes a user without a password. */
  | { readonly type: 'addUser'; readonly user: string; readonly passwordHash: string }
  | { readonly type: 'deleteUser'; readonly user: string }
  | { readonly type: 'changePassword'; readonly user: string; readonly passwordHash: string }
  | { readonly type: 'grantRole'; readonly user: string; readonly role: string }
  | { readonly type: 'revokeRole'; readonly user: string; readonly role: string }
  | { readonly type: 'addRole'; readonly role: string }
  | { readonly type: 'deleteRole'; readonly role: string }
  /** Another access to the same span replaces the one that the role had. */
  | { readonly type: 'grantKeys'; readonly role: string; readonly permission: KeyPermission }
  | { readonly type: 'revokeKeys'; readonly role: string; readonly span: Pick<KeyPermission, 'key' | 'end'> }
  | { readonly type: 'grantLocks'; readonly role: string; readonly permission: LockPermission }
  | { readonly type: 'revokeLocks'; readonly role: string; readonly permission: LockPermission };
