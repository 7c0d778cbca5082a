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
} from './codec/codec.ts';
export { lockSchema } from './codec/layout.ts';
export { sameOwner, samePublicOwner, sameSession } from './identity.ts';
export * from './limits.ts';
export type { LockView } from './lock-view.ts';
export * from './procedures/condition.ts';
export { delayedHolds } from './procedures/delay.ts';
export { type LockEvent, type LockNews, stateAfter } from './procedures/events.ts';
export type { GrantEnd, LockMeter } from './procedures/meter.ts';
export { applyLockCommand, sessionEnded } from './procedures/procedures.ts';
export {
  type GrantNews,
  grantNews,
  isCurrent,
  type LockReadView,
  ownerStatus,
  queryLocks,
  waitersOf,
} from './procedures/queries.ts';
export { sessionLocks } from './procedures/session-locks.ts';
export { validateLockCommand, validateLockQuery } from './procedures/validate.ts';
export { ownerId, publicOwner } from './public-owner.ts';
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
  namespacesSpan,
} from './records/keys.ts';
export { clearingOfMarks, firstMark, type MarkedUntil, markOfRow } from './records/marks.ts';
export * from './types.ts';
