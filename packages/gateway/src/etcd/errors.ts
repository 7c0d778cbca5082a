import { ERROR_TABLE, type ErrorCode, type ServiceError } from '@remora/base';

/**
 * The one place where Remora's errors become etcd's. Go's clientv3 recognises errors by their exact text and status
 * (etcd `api/v3rpc/rpctypes/error.go`); other clients by the status alone.
 *
 * E1. An unknown outcome must not look like a refusal. etcd reports it as UNAVAILABLE "request timed out": clientv3
 *     repeats UNAVAILABLE for reads only, never for writes. UNKNOWN_OUTCOME is reported like that, and so is
 *     DEADLINE_EXCEEDED, which etcd does not distinguish. A request that was certainly not executed, as there was no
 *     leader, has etcd's texts for that. The trailer `remora-code` distinguishes them all. RESULT_LOST has no row, as
 *     its outcome is known: its own message tells a client that the request was applied.
 * E2. A text that clients know is sent exactly; the error's own message goes in the trailer `remora-message`.
 */
export interface EtcdStatus {
  /** Canonical gRPC status number. */
  readonly status: number;
  readonly message: string;
}

const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const OUT_OF_RANGE = 11;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** A code without a row has the status of the table of errors, and the error's own message. */
const ETCD_TABLE: Partial<Record<ErrorCode, EtcdStatus>> = {
  EMPTY_KEY: { status: INVALID_ARGUMENT, message: 'etcdserver: key is not provided' },
  DUPLICATE_KEY: { status: INVALID_ARGUMENT, message: 'etcdserver: duplicate key given in txn request' },
  TOO_MANY_OPERATIONS: { status: INVALID_ARGUMENT, message: 'etcdserver: too many operations in txn request' },
  REQUEST_TOO_LARGE: { status: INVALID_ARGUMENT, message: 'etcdserver: request is too large' },
  COMPACTED: { status: OUT_OF_RANGE, message: 'etcdserver: mvcc: required revision has been compacted' },
  FUTURE_REVISION: { status: OUT_OF_RANGE, message: 'etcdserver: mvcc: required revision is a future revision' },
  LEASE_NOT_FOUND: { status: NOT_FOUND, message: 'etcdserver: requested lease not found' },
  LEASE_EXISTS: { status: FAILED_PRECONDITION, message: 'etcdserver: lease already exists' },
  LEASE_TTL_TOO_LARGE: { status: OUT_OF_RANGE, message: 'etcdserver: too large lease TTL' },
  RESOURCE_EXHAUSTED: { status: RESOURCE_EXHAUSTED, message: 'etcdserver: too many requests' },
  NOT_LEADER: { status: UNAVAILABLE, message: 'etcdserver: leader changed' },
  STALE_EPOCH: { status: UNAVAILABLE, message: 'etcdserver: leader changed' },
  RANGE_NOT_FOUND: { status: UNAVAILABLE, message: 'etcdserver: leader changed' },
  UNAVAILABLE: { status: UNAVAILABLE, message: 'etcdserver: no leader' },
  DEADLINE_EXCEEDED: { status: UNAVAILABLE, message: 'etcdserver: request timed out' },
  UNKNOWN_OUTCOME: { status: UNAVAILABLE, message: 'etcdserver: request timed out' },
};

/** For codes that stand for several of etcd's errors: `details.etcd` names the error. */
const ETCD_DETAILS: Readonly<Record<string, EtcdStatus>> = {
  keyNotFound: { status: INVALID_ARGUMENT, message: 'etcdserver: key not found' },
  valueProvided: { status: INVALID_ARGUMENT, message: 'etcdserver: value is provided' },
  leaseProvided: { status: INVALID_ARGUMENT, message: 'etcdserver: lease is provided' },
  invalidSortOption: { status: INVALID_ARGUMENT, message: 'etcdserver: invalid sort option' },
  noSpace: { status: RESOURCE_EXHAUSTED, message: 'etcdserver: mvcc: database space exceeded' },
  // From the recipes: plain errors in etcd, without a status (v3lock, v3election, client/v3/concurrency).
  mutexSessionExpired: { status: UNKNOWN, message: 'mutex: session is expired' },
  notLeader: { status: UNKNOWN, message: 'election: not leader' },
  noLeader: { status: UNKNOWN, message: 'election: no leader' },
  missingLeaderKey: { status: UNKNOWN, message: '"leader" field must be provided' },
  memberNotLeader: { status: FAILED_PRECONDITION, message: 'etcdserver: not leader' },
  badTransferee: { status: FAILED_PRECONDITION, message: 'etcdserver: bad leader transferee' },
  transferTooLong: { status: UNAVAILABLE, message: 'etcdserver: request timed out, leader transfer took too long' },
  memberNotFound: { status: NOT_FOUND, message: 'etcdserver: member not found' },
  memberNotLearner: { status: FAILED_PRECONDITION, message: 'etcdserver: can only promote a learner member' },
  peerUrlExists: { status: FAILED_PRECONDITION, message: 'etcdserver: Peer URLs already exists' },
  badMemberUrls: { status: INVALID_ARGUMENT, message: 'etcdserver: given member URLs are invalid' },
  // What grpc-gateway answers at the deadline that a caller has set (Grpc-Timeout).
  callerDeadline: { status: DEADLINE_EXCEEDED, message: 'context deadline exceeded' },
  // grpc-go's health server, which etcd uses.
  unknownService: { status: NOT_FOUND, message: 'unknown service' },
  // Users, roles and permissions (etcd `server/auth/store.go`).
  rootUserMissing: { status: FAILED_PRECONDITION, message: 'etcdserver: root user does not exist' },
  rootRoleMissing: { status: FAILED_PRECONDITION, message: 'etcdserver: root user does not have root role' },
  userExists: { status: FAILED_PRECONDITION, message: 'etcdserver: user name already exists' },
  userEmpty: { status: INVALID_ARGUMENT, message: 'etcdserver: user name is empty' },
  userNotFound: { status: FAILED_PRECONDITION, message: 'etcdserver: user name not found' },
  roleExists: { status: FAILED_PRECONDITION, message: 'etcdserver: role name already exists' },
  roleEmpty: { status: INVALID_ARGUMENT, message: 'etcdserver: role name is empty' },
  roleNotFound: { status: FAILED_PRECONDITION, message: 'etcdserver: role name not found' },
  roleNotGranted: { status: FAILED_PRECONDITION, message: 'etcdserver: role is not granted to the user' },
  permissionNotGranted: { status: FAILED_PRECONDITION, message: 'etcdserver: permission is not granted to the role' },
  permissionNotGiven: { status: INVALID_ARGUMENT, message: 'etcdserver: permission not given' },
  authFailed: {
    status: INVALID_ARGUMENT,
    message: 'etcdserver: authentication failed, invalid user ID or password',
  },
  permissionDenied: { status: PERMISSION_DENIED, message: 'etcdserver: permission denied' },
  invalidAuthToken: { status: UNAUTHENTICATED, message: 'etcdserver: invalid auth token' },
  oldAuthRevision: { status: INVALID_ARGUMENT, message: 'etcdserver: revision of auth store is old' },
  invalidAuthManagement: { status: INVALID_ARGUMENT, message: 'etcdserver: invalid auth management' },
  authNotEnabled: { status: FAILED_PRECONDITION, message: 'etcdserver: authentication is not enabled' },
};

export function etcdStatus(error: ServiceError): EtcdStatus {
  const detail = error.details?.etcd;
  if (typeof detail === 'string') {
    const known = ETCD_DETAILS[detail];
    if (known !== undefined) return known;
  }
  return ETCD_TABLE[error.code] ?? { status: ERROR_TABLE[error.code].grpc, message: error.message };
}

/**
 * The status of etcd's lock and election services. In etcd, they use etcd's own client, whose errors have no status
 * when they leave the server.
 */
export function recipeStatus(error: ServiceError): EtcdStatus {
  const status = etcdStatus(error);
  return error.code === 'LEASE_NOT_FOUND' ? { ...status, status: UNKNOWN } : status;
}

/** The status of Remora's own services: from the table of errors, with the error's message. */
export function remoraStatus(error: ServiceError): EtcdStatus {
  return { status: ERROR_TABLE[error.code].grpc, message: error.message };
}
