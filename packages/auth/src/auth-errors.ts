import { type ErrorCode, ServiceError } from '@remora/base';

/**
 * The refusals of etcd's authentication store, under the names by which the gateway finds etcd's status and text
 * (etcd `api/v3rpc/rpctypes/error.go`).
 */
const CODES = {
  rootUserMissing: 'AUTH_REFUSED',
  rootRoleMissing: 'AUTH_REFUSED',
  userExists: 'AUTH_REFUSED',
  userEmpty: 'INVALID_ARGUMENT',
  userNotFound: 'AUTH_REFUSED',
  roleExists: 'AUTH_REFUSED',
  roleEmpty: 'INVALID_ARGUMENT',
  roleNotFound: 'AUTH_REFUSED',
  roleNotGranted: 'AUTH_REFUSED',
  permissionNotGranted: 'AUTH_REFUSED',
  invalidAuthManagement: 'INVALID_ARGUMENT',
} as const satisfies Record<string, ErrorCode>;

/** `message` says what to do; etcd's clients get etcd's text. */
export function authError(name: keyof typeof CODES, message: string): ServiceError {
  return new ServiceError(CODES[name], message, { details: { etcd: name } });
}
