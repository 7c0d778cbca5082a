import { compareBytes, EMPTY_BYTES, ServiceError, unreachable } from '@remora/base';
import {
  type Condition,
  conditionRefusal,
  conditionTtlMs,
  type LockQuery,
  type LockResult,
  validateLockCommand,
  validateLockQuery,
} from '@remora/lock';
import {
  type Command,
  type Compare,
  isClientCommand,
  isLockCompare,
  type KvOp,
  type PipeCommand,
  type PipeLockWatchRequest,
  type PipeQuery,
  type PipeWatchRequest,
  type Query,
  SCAN_BYTES_MAX,
  SESSIONS_LIMIT_MAX,
  type Txn,
} from '@remora/protocol';
import { toAttributes } from '../lock/lock-requests.ts';
import {
  checkOps,
  checkSize,
  opBytes,
  REQUEST_LIMITS,
  type RequestLimits,
  readsOnly,
  txnBytes,
} from '../request-limits.ts';

/** Longest time for one request; also what the backend takes. */
const PIPE_TIMEOUT_MS_MAX = 60_000;

/**
 * Checks what a client sends, once, before it reaches the backend, which may rely on well-formed requests of bounded
 * size. Throws a `ServiceError` that says what is wrong.
 */
export function validatePipeCommand(request: PipeCommand, limits: RequestLimits): void {
  if (request.requestId === '') throw new ServiceError('INVALID_ARGUMENT', 'a command needs a request id');
  validateTimeout(request.timeoutMs);
  if (request.waitMs !== undefined && request.waitMs < 0) {
    throw new ServiceError('INVALID_ARGUMENT', `waitMs must be 0 or more, not ${request.waitMs}`);
  }
  validateCommand(request.command, limits);
}

export function validatePipeQuery(request: PipeQuery, limits: RequestLimits): void {
  validateTimeout(request.timeoutMs);
  validateQuery(request.query, limits);
}

function validateTimeout(timeoutMs: number): void {
  if (timeoutMs > 0 && timeoutMs <= PIPE_TIMEOUT_MS_MAX) return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `timeoutMs must be above 0 and at most ${PIPE_TIMEOUT_MS_MAX}, not ${timeoutMs}`,
  );
}

function validateCommand(command: Command, limits: RequestLimits): void {
  if (!isClientCommand(command)) {
    throw new ServiceError('INVALID_ARGUMENT', `a client cannot send the command ${command.type}`);
  }
  switch (command.type) {
    case 'kv':
      return validateOp(command.op, limits);
    case 'txn':
      return validateTxn(command.txn, limits);
    case 'lock':
      refuse(validateLockCommand(command.command));
      if (command.command.type !== 'endDelay') return;
      throw new ServiceError('INVALID_ARGUMENT', 'only the leader of a range ends the delay of a lock');
    case 'leaseGrant':
      checkSize(attributesBytes(command.attributes), limits);
      // The same bounds as for other clients: a list has up to a thousand sessions with their attributes.
      toAttributes(command.attributes);
      if (command.id === 0n || command.ttlMs <= 0) {
        throw new ServiceError('INVALID_ARGUMENT', 'a lease needs an id other than 0 and a TTL above 0');
      }
      return checkTerms(command);
    case 'leaseChange':
      if (command.incarnation === 0 || command.number === 0 || command.ttlMs <= 0) {
        const what = 'a change needs the lease and the incarnation of a session, a number from 1, and a TTL above 0';
        throw new ServiceError('INVALID_ARGUMENT', what);
      }
      return checkTerms(command);
    case 'leaseRevoke':
    case 'compact':
      return;
    default:
      return unreachable(command);
  }
}

/** Checks that the TTL is the one that follows from the condition of the client. */
export function checkTerms({ ttlMs, condition }: { readonly ttlMs: number; readonly condition?: Condition }): void {
  if (condition === undefined) return;
  const wrong = conditionRefusal(condition);
  if (wrong !== undefined) throw new ServiceError('INVALID_ARGUMENT', wrong);
  if (ttlMs === conditionTtlMs(condition)) return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `the TTL must be ${conditionTtlMs(condition)} ms, as the condition says, not ${ttlMs}`,
  );
}

function refuse(refusal: Extract<LockResult, { type: 'refused' }> | undefined): void {
  if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
}

function validateQuery(query: Query, limits: RequestLimits): void {
  switch (query.type) {
    case 'range':
      return validateOp(query.op, limits);
    case 'readTxn':
      validateTxn(query.txn, limits);
      if (readsOnly(query.txn)) return;
      // Its result would claim changes that a query does not make.
      throw new ServiceError(
        'INVALID_ARGUMENT',
        'a transaction with puts or deletes is sent as a command, not as a query',
      );
    case 'scan':
    case 'history':
      return validateScan(query, limits);
    case 'lock':
      refuse(validateLockQuery(query.query));
      return;
    case 'lockAwait':
      // A lock and an owner, checked as for the release that would end the wait.
      refuse(validateLockCommand({ ...query, type: 'release', all: false, deadlineMs: 0 }));
      return;
    case 'grantEnd':
      refuse(validateLockQuery({ type: 'check', checks: [query] }));
      return;
    case 'sessions':
      return checkSessions(query, limits);
    case 'session':
      if (query.incarnation === 0) return;
      throw new ServiceError('INVALID_ARGUMENT', 'a query of a session needs its incarnation');
    case 'leaseKeepAlive':
    case 'leaseTimeToLive':
    case 'leases':
    case 'status':
      return;
    case 'leaseKeys':
    case 'closedRevision':
    case 'txnStatus':
      // Only gateways and leaders of ranges send these.
      throw new ServiceError('INVALID_ARGUMENT', `a client cannot send the query ${query.type}`);
    default:
      return unreachable(query);
  }
}

export function checkSessions(
  { limit, attributes }: Extract<Query, { type: 'sessions' }>,
  limits: RequestLimits = REQUEST_LIMITS,
): void {
  checkSize(attributesBytes(attributes), limits);
  if (limit >= 1 && limit <= SESSIONS_LIMIT_MAX) return;
  throw new ServiceError('INVALID_ARGUMENT', `limit must be from 1 to ${SESSIONS_LIMIT_MAX}, not ${limit}`);
}

function validateScan(query: Extract<Query, { type: 'scan' | 'history' }>, limits: RequestLimits): void {
  const { key, bytes } = query;
  checkSize(key.length + (query.type === 'scan' ? query.end.length : 0), limits);
  if (query.type === 'history') {
    validateKey(key);
    if (query.limit === 0) throw new ServiceError('INVALID_ARGUMENT', 'limit must be above 0');
  }
  if (bytes > 0 && bytes <= SCAN_BYTES_MAX) return;
  throw new ServiceError('INVALID_ARGUMENT', `bytes must be above 0 and at most ${SCAN_BYTES_MAX}, not ${bytes}`);
}

export function validatePipeWatch(request: PipeWatchRequest): void {
  if (request.kind !== 'create') return;
  const { key, end } = request;
  validateKey(key);
  if (end === undefined || end.length === 0 || compareBytes(key, end) < 0) return;
  throw new ServiceError('INVALID_ARGUMENT', 'the span to watch is empty: its end must be above its first key');
}

export function validatePipeLockWatch({ namespace, name, single }: PipeLockWatchRequest): void {
  const query: LockQuery = single
    ? { type: 'show', lock: { namespace, name } }
    : { type: 'list', namespace, prefix: name, after: EMPTY_BYTES, limit: 1 };
  refuse(validateLockQuery(query));
}

function attributesBytes(attributes: Readonly<Record<string, string>>): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(attributes)) bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  return bytes;
}

function validateKey(key: Uint8Array): void {
  if (key.length === 0) throw new ServiceError('EMPTY_KEY', 'a key is missing');
}

function validateOp(op: KvOp, limits: RequestLimits): void {
  checkSize(opBytes(op), limits);
  if (op.type === 'txn') validateTxn(op.txn, limits);
  else checkOp(op);
}

/** The codec bounds how deep transactions nest. */
function validateTxn(txn: Txn, limits: RequestLimits): void {
  checkSize(txnBytes(txn), limits);
  checkShape(txn, limits.txnOpsMax);
}

function checkShape(txn: Txn, opsMax: number): void {
  const inner = checkOps(txn, opsMax);
  for (const compare of txn.compare) validateCompare(compare);
  for (const op of txn.success) checkInner(op, inner);
  for (const op of txn.failure) checkInner(op, inner);
}

function validateCompare(compare: Compare): void {
  if (isLockCompare(compare)) refuse(validateLockQuery({ type: 'check', checks: [compare] }));
  else validateKey(compare.key);
}

function checkInner(op: KvOp, opsMax: number): void {
  if (op.type === 'txn') checkShape(op.txn, opsMax);
  else checkOp(op);
}

function checkOp(op: Exclude<KvOp, { type: 'txn' }>): void {
  validateKey(op.key);
  if (op.type !== 'put') return;
  if (op.ignoreValue && op.value.length > 0)
    throw new ServiceError('INVALID_ARGUMENT', 'ignoreValue is set, but the put has a value');
  if (op.ignoreLease && op.lease !== 0n)
    throw new ServiceError('INVALID_ARGUMENT', 'ignoreLease is set, but the put has a lease');
}
