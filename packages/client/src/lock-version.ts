import { ServiceError } from '@remora/base';
import type { LockCompare } from '@remora/protocol';
import type { HeldLock } from './held-lock.ts';
import { type LockName, lockId } from './locks.ts';

/**
 * A grant under which something is written: a lock that is held, or, in another process, the name of the lock and the
 * version of its grant.
 */
export type LockVersion = Pick<HeldLock, 'id' | 'version'> | (LockName & { readonly version: number });

/** The version as it is now: that of a held lock is another one after an upgrade or a downgrade. */
export function lockCompare(held: LockVersion): LockCompare {
  return { lock: 'id' in held ? held.id : lockId(held), version: held.version };
}

export function notHeld({ version }: LockCompare): ServiceError {
  const message = `the lock is not held by version ${version} any more; nothing was written`;
  return new ServiceError('FENCED', message, { details: { version } });
}
