export {
  decodeLockCommand,
  decodeLockNotice,
  decodeLockQuery,
  decodeLockQueryResult,
  decodeLockResult,
  encodeLockCommand,
  encodeLockNotice,
  encodeLockQuery,
  encodeLockQueryResult,
  encodeLockResult,
} from './codec.ts';
export { LOCK_SPACE, lockOfKey, lockSpan, lockStart, namespaceSpan } from './keys.ts';
export { lockSchema } from './layout.ts';
export * from './limits.ts';
export { sameOwner, sameSession } from './lock-rows.ts';
export { applyLockCommand, sessionEnded } from './procedures.ts';
export { isCurrent, type LockReadView, ownerStatus, queryLocks } from './queries.ts';
export * from './types.ts';
export { validateLockCommand, validateLockQuery } from './validate.ts';
