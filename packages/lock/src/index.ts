export {
  checkLockCommand,
  decodeLockCommand,
  decodeLockNews,
  decodeLockQuery,
  decodeLockQueryResult,
  decodeLockResult,
  decodeRevocation,
  encodeLockCommand,
  encodeLockNews,
  encodeLockQuery,
  encodeLockQueryResult,
  encodeLockResult,
  encodeRevocation,
} from './codec.ts';
export * from './condition.ts';
export { delayedHolds } from './delay.ts';
export { type LockEvent, type LockNews, stateAfter } from './events.ts';
export { sameOwner, samePublicOwner, sameSession } from './identity.ts';
export {
  LOCK_SPACE,
  type LockName,
  type LockNames,
  lockNames,
  lockOfKey,
  lockOfName,
  lockPrefix,
  lockSpan,
  lockStart,
  nameAt,
  namespaceSpan,
} from './keys.ts';
export { lockSchema } from './layout.ts';
export * from './limits.ts';
export { clearingOfMarks, firstMark, type MarkedUntil, markOfRow } from './marks.ts';
export type { GrantEnd, LockMeter } from './meter.ts';
export { applyLockCommand, sessionEnded } from './procedures.ts';
export { ownerId, publicOwner } from './public-owner.ts';
export {
  type GrantNews,
  grantNews,
  isCurrent,
  type LockReadView,
  ownerStatus,
  queryLocks,
  waitersOf,
} from './queries.ts';
export { sessionLocks } from './session-locks.ts';
export * from './types.ts';
export { validateLockCommand, validateLockQuery } from './validate.ts';
