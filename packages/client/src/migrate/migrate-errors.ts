import { ServiceError } from '@remora/base';

export function notAClient(call: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `${call}: expected the client that connect() of remora returned`);
}

export function notInTime(name: string): ServiceError {
  return new ServiceError('LOCK_TIMEOUT', `the other system did not grant the lock in time: ${name}`);
}

export function notAtOnce(name: string): ServiceError {
  return new ServiceError('LOCK_BUSY', `the lock is taken in the other system: ${name}`);
}

export function lostThere(why: string): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', `the lock was lost in the other system: ${why}`);
}
