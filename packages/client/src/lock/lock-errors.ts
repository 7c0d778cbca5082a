/** Errors of calls on held locks. */
import { ServiceError } from '@remora/base';
import type { LockResult } from '@remora/lock';

/** `call` works only for a lock with a lease of its own. */
export function noDedicatedLease(call: string): ServiceError {
  return new ServiceError(
    'INVALID_ARGUMENT',
    `${call}: the lock shares its session with other locks; acquire it with a ttl or a condition of its own`,
  );
}

export function refusalOf(result: LockResult): ServiceError {
  if (result.type === 'refused') return new ServiceError(result.code, result.message);
  return new ServiceError('INTERNAL', `a lock command was answered by ${result.type}`);
}

export function takenAway(): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', 'the lock was taken away');
}
