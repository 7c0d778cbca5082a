import { ServiceError } from '@remora/base';
import { type LockResult, validateLockCommand, validateLockQuery } from '@remora/lock';
import type { Command, KvOp, PipeCommand, PipeQuery, PipeWatchRequest, Query, Txn } from '@remora/protocol';
import { ETCD_LIMITS } from '../etcd/limits.ts';
import { checkNoOverlap } from '../etcd/txn-overlap.ts';

/** Longest time for one request; also what the backend takes. */
export const PIPE_TIMEOUT_MS_MAX = 60_000;

/**
 * What a client sends is checked here, once, before it reaches the backend; behind this, requests are well formed and
 * of bounded size. Throws a `ServiceError` that says what is wrong.
 */
export function validatePipeCommand(request: PipeCommand): void {
  if (request.requestId === '') throw new ServiceError('INVALID_ARGUMENT', 'a command needs a request id');
  validateTimeout(request.timeoutMs);
  if (request.waitMs !== undefined && request.waitMs < 0) {
    throw new ServiceError('INVALID_ARGUMENT', 'waitMs is 0 or more');
  }
  validateCommand(request.command);
}

export function validatePipeQuery(request: PipeQuery): void {
  validateTimeout(request.timeoutMs);
  validateQuery(request.query);
}

function validateTimeout(timeoutMs: number): void {
  if (timeoutMs > 0 && timeoutMs <= PIPE_TIMEOUT_MS_MAX) return;
  throw new ServiceError('INVALID_ARGUMENT', `timeoutMs is above 0 and at most ${PIPE_TIMEOUT_MS_MAX}`);
}

function validateCommand(command: Command): void {
  switch (command.type) {
    case 'kv':
      validateSize(command.op);
      return validateOp(command.op);
    case 'txn':
      validateSize(command.txn);
      return validateTxn(command.txn);
    case 'lock':
      refuse(validateLockCommand(command.command));
      return;
    case 'leaseGrant':
      validateSize(command.attributes);
      if (command.id !== 0n && command.ttlMs > 0) return;
      throw new ServiceError('INVALID_ARGUMENT', 'a lease has an id other than 0 and a TTL above 0');
    case 'leaseRevoke':
    case 'compact':
      return;
    case 'leaseExpire':
    case 'noop':
      // Only a range's leader proposes these.
      throw new ServiceError('INVALID_ARGUMENT', `${command.type} is not for clients`);
  }
}

function refuse(refusal: Extract<LockResult, { type: 'refused' }> | undefined): void {
  if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
}

function validateQuery(query: Query): void {
  switch (query.type) {
    case 'range':
      return validateOp(query.op);
    case 'readTxn':
      validateSize(query.txn);
      return validateTxn(query.txn);
    case 'lock':
      refuse(validateLockQuery(query.query));
      return;
    case 'lockAwait':
      // A lock and an owner, checked as for the release that would end the wait.
      refuse(validateLockCommand({ ...query, type: 'release', all: false, deadlineMs: 0 }));
      return;
    case 'leaseKeepAlive':
    case 'leaseTimeToLive':
    case 'leases':
    case 'status':
      return;
  }
}

export function validatePipeWatch(request: PipeWatchRequest): void {
  if (request.kind === 'create') validateKey(request.key);
}

function validateSize(body: unknown): void {
  if (sizeOf(body) <= ETCD_LIMITS.requestBytesMax) return;
  throw new ServiceError('REQUEST_TOO_LARGE', `a request holds at most ${ETCD_LIMITS.requestBytesMax} bytes`);
}

/** Bytes of keys, values and other text in a request, with a little for each field. */
function sizeOf(value: unknown): number {
  if (value instanceof Uint8Array) return value.length;
  if (typeof value === 'string') return value.length;
  if (value === null || typeof value !== 'object') return 8;
  let size = 0;
  for (const field of Object.values(value)) size += sizeOf(field);
  return size;
}

function validateKey(key: Uint8Array): void {
  if (key.length === 0) throw new ServiceError('EMPTY_KEY', 'a key is missing');
}

function validateOp(op: KvOp): void {
  if (op.type === 'txn') return validateTxn(op.txn);
  validateKey(op.key);
  if (op.type !== 'put') return;
  if (op.ignoreValue && op.value.length > 0) throw new ServiceError('INVALID_ARGUMENT', 'a value is given and ignored');
  if (op.ignoreLease && op.lease !== 0n) throw new ServiceError('INVALID_ARGUMENT', 'a lease is given and ignored');
}

/** How deep transactions nest is bounded by their codec. */
function validateTxn(txn: Txn): void {
  checkShape(txn);
  checkNoOverlap(txn.success);
  checkNoOverlap(txn.failure);
}

function checkShape(txn: Txn): void {
  for (const list of [txn.compare, txn.success, txn.failure]) {
    if (list.length > ETCD_LIMITS.txnOpsMax) {
      throw new ServiceError('TOO_MANY_OPERATIONS', `a transaction has at most ${ETCD_LIMITS.txnOpsMax} operations`);
    }
  }
  for (const compare of txn.compare) validateKey(compare.key);
  for (const op of [...txn.success, ...txn.failure]) {
    if (op.type === 'txn') checkShape(op.txn);
    else validateOp(op);
  }
}
