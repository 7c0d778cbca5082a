/** What holders of locks are told. */
import { ServiceError } from '@remora/base';
import type { LockResult } from '@remora/lock';

export function noDedicatedLease(what: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `the lock was acquired without ${what}, and belongs to a session`);
}

export function refusalOf(result: LockResult): ServiceError {
  if (result.type === 'refused') return new ServiceError(result.code, result.message);
  return new ServiceError('INTERNAL', `a lock command was answered by ${result.type}`);
}

export function takenAway(): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', 'the lock was taken away');
}
