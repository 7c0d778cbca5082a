import { ServiceError } from '@remora/base';
import type { LockCompare } from '@remora/protocol';
import { bytes, checkedByCall, object } from '../options/option-kinds.ts';
import { checkOptions, optionSet, requireCount, shown } from '../options/options.ts';
import type { HeldLock } from './held-lock.ts';
import { lockId, NAMESPACE_CHECKS } from './lock-name.ts';
import type { VersionCheck } from './locks.ts';

/**
 * The grant under which something is written: a held lock or, in another process, the name of the lock and the version.
 */
export type LockVersion = Pick<HeldLock, 'id' | 'version'> | VersionCheck;

export const FENCE = optionSet<VersionCheck>('fence', {
  ...{ name: bytes, ...NAMESPACE_CHECKS, version: checkedByCall },
});

/** Reads the version when it is called: an upgrade or downgrade changes that of a held lock. */
export function lockCompare(held: LockVersion): LockCompare {
  if (typeof held !== 'object' || held === null) {
    throw new ServiceError('INVALID_ARGUMENT', `fence: expected a held lock, or { name, version }, got ${shown(held)}`);
  }
  if ('id' in held) object(held.id, 'the id of a lock that is held');
  else checkOptions(FENCE, held);
  const version = requireCount(held.version, 'the version of a fence', { min: 1, max: Number.MAX_SAFE_INTEGER });
  return { lock: lockId('id' in held ? held.id : held), version };
}

export function notHeld({ version }: LockCompare): ServiceError {
  const message = `version ${version} no longer holds the lock; nothing was written`;
  return new ServiceError('FENCED', message, { details: { version } });
}
