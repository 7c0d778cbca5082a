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

export function unanswered(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the other system did not answer within the ttl of its lock');
}

export function lostThere(why: string): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', `the lock was lost in the other system: ${why}`);
}

/** @throws ServiceError INVALID_ARGUMENT for anything that lacks one of these methods. */
export function requireCalls(call: string, what: string, value: unknown, methods: readonly string[]): void {
  const isOne = (typeof value === 'object' && value !== null) || typeof value === 'function';
  const missing = methods.find((name) => !isOne || typeof Reflect.get(value as object, name) !== 'function');
  if (missing === undefined) return;
  throw new ServiceError('INVALID_ARGUMENT', `${call}: expected ${what}; this one has no method ${missing}`);
}

export function notConnected(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the client of ZooKeeper is not connected');
}

export function wrongPath(name: string): ServiceError {
  return new ServiceError(
    'INVALID_ARGUMENT',
    `zooKeeperLocks: expected the path of a node, such as '/locks/a', got '${name}'; otherName of BothLocks makes paths of names`,
  );
}

export function longerThanSession(ms: {
  readonly ttl: number;
  readonly ttlMax: number;
  readonly timeout: number;
}): ServiceError {
  return new ServiceError(
    'INVALID_ARGUMENT',
    `ttl: a session of ZooKeeper with a timeout of ${ms.timeout} ms allows at most ${ms.ttlMax} ms, got ${ms.ttl} ms; choose a shorter ttl of BothLocks or a longer sessionTimeout of the client`,
  );
}
