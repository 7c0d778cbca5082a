export {
  type CommandIdentity,
  type ErrorCode,
  type ProcessIdentity,
  ServiceError,
  ServiceError as RemoraError,
} from '@remora/base';
export type {
  Condition,
  ForcedRelease,
  Holder,
  HolderState,
  HoldMode,
  LockEvent,
  LockId,
  LockState,
  Revocation,
  SessionLock,
  Waiter,
} from '@remora/lock';
export type { SessionInfo } from '@remora/protocol';
export type { AcquireStats } from './acquire.ts';
export { Barrier, type BarrierOptions, BarrierStay, DoubleBarrier } from './barrier.ts';
export {
  type ClientOptions,
  ClientSession,
  type ClientStatus,
  type DoubleBarrierOptions,
  RemoraClient,
  type SessionOptions,
} from './client.ts';
export type { Duration } from './duration.ts';
export {
  type CampaignOptions,
  Election,
  type Leader,
  Leadership,
  type LeadershipHandle,
  type ResumeOptions,
} from './election.ts';
export { type CheckVersions, Fence, FenceGuard, type FenceGuardOptions } from './fence.ts';
export type { HealthCheck } from './health.ts';
export { HeldLock } from './held-lock.ts';
export { HeldLocks } from './held-locks.ts';
export type { HeldLockState } from './hold-life.ts';
export type { RunArguments, Work } from './holding.ts';
export type { BytesLike, KeySelector, KvPair } from './keys.ts';
export {
  type KeyTxnCompare,
  Kv,
  type OperationOptions,
  type PutOptions,
  type RangeAnswer,
  type RangeOptions,
  type ReadOptions,
  type ScanPage,
  type TxnAnswer,
  type TxnCompare,
  type TxnOperation,
  type TxnRequest,
  type WriteOptions,
} from './kv.ts';
export { type GrantedLease, Leases } from './leases.ts';
export { type AcquireOptions, Lock } from './lock.ts';
export type { LockChoice } from './lock-choice.ts';
export type { HolderDetails, HolderTerms, LockDetails } from './lock-details.ts';
export {
  LockEvents,
  type LockEventsOptions,
  LockStates,
  type LocksWatchEvent,
  type LockWatchEvent,
} from './lock-events.ts';
export { type AcquireAllOptions, LockSet } from './lock-set.ts';
export type { LockVersion } from './lock-version.ts';
export { type ForceReleaseOptions, type LockName, Locks } from './locks.ts';
export {
  AdminClient,
  type AdminClientOptions,
  type RangeChangeRequest,
  type SeenRange,
} from './node/admin-client.ts';
export { type ConnectOptions, connect } from './node/connect.ts';
export type { LeaseOptions, LockCondition } from './own-lease.ts';
export type {
  AcknowledgedBeat,
  ClientPorts,
  ExitHooks,
  JournalPorts,
  Liveness,
  RenewalStandIn,
  RenewedByStandIn,
} from './ports.ts';
export type { RetryOptions } from './retry.ts';
export type { RevocationOutcome, RevocationRequest, RevokeListener, RevokeOptions } from './revoke.ts';
export { RwLock } from './rw-lock.ts';
export { type PermitOptions, Semaphore, type SemaphoreOptions } from './semaphore.ts';
export type { SessionState } from './session.ts';
export { type SessionDetails, Sessions } from './sessions.ts';
export type { Tracer, TracerSpan } from './tracing.ts';
export { KvWatch, type WatchEvent, type WatchOptions } from './watch.ts';
