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
export { type ClientStatus, RemoraClient } from './client.ts';
export type { ClientOptions, SessionOptions } from './client-options.ts';
export { ClientSession } from './client-session.ts';
export type { CompareAndSet, Increment, PutIfAbsent } from './kv/atomic.ts';
export { type BytesLike, type KeySelector, type KvFields, KvPair } from './kv/keys.ts';
export { Kv } from './kv/kv.ts';
export type {
  CompareAndSetOptions,
  DeleteOptions,
  IncrementOptions,
  KeyTxnCompare,
  KvListOptions,
  KvPage,
  OperationOptions,
  PutIfAbsentOptions,
  PutOptions,
  RangeOptions,
  ReadOptions,
  SortTarget,
  StmOptions,
  StmPutOptions,
  TxnCompare,
  TxnOperation,
  TxnRequest,
  WriteOptions,
} from './kv/kv-options.ts';
export { KvMirror, type MirrorOptions } from './kv/mirror.ts';
export { Stm, type StmWork } from './kv/stm.ts';
export type {
  RangeAnswer,
  TxnAnswer,
  TxnDeleteAnswer,
  TxnGetAnswer,
  TxnPutAnswer,
  TxnResult,
} from './kv/txn.ts';
export { type ComparedWith, Txn, TxnElse, type TxnOutcome } from './kv/txn-builder.ts';
export { KvWatch, type WatchEvent, type WatchOptions } from './kv/watch.ts';
export type { AcquireStats } from './lock/acquire.ts';
export type { AcquireOptions } from './lock/acquire-options.ts';
export type { UpgradeOptions } from './lock/conversion.ts';
export { type CheckVersions, Fence, FenceGuard, type FenceGuardOptions } from './lock/fence.ts';
export { HeldLock, type ReentryOptions } from './lock/held-lock.ts';
export { HeldLocks } from './lock/held-locks.ts';
export type { HeldLockState } from './lock/hold-liveness.ts';
export { Lock } from './lock/lock.ts';
export type { LockChoice } from './lock/lock-choice.ts';
export type { HolderDetails, HolderTerms, LockDetails } from './lock/lock-details.ts';
export {
  LockEvents,
  type LockEventsOptions,
  LockStates,
  type LocksWatchEvent,
  type LockWatchEvent,
} from './lock/lock-events.ts';
export type { LockName, LockOptions, NamespaceOptions } from './lock/lock-name.ts';
export { type AcquireAllOptions, LockSet } from './lock/lock-set.ts';
export type { LockVersion } from './lock/lock-version.ts';
export {
  type ForceReleaseOptions,
  type LockListOptions,
  Locks,
  type LocksEventsOptions,
  type VersionCheck,
} from './lock/locks.ts';
export type { RevocationOutcome, RevocationRequest, RevokeListener, RevokeOptions } from './lock/revoke.ts';
export type { RunArguments, Work } from './lock/run-with-lock.ts';
export { type ConnectOptions, connect } from './node/connect.ts';
export type { TlsOptions } from './node/tls-files.ts';
export type { ClientMetrics, CounterName, HistogramName, MetricLabels } from './observe/client-metrics.ts';
export type { Tracer, TracerSpan } from './observe/tracing.ts';
export type { Duration } from './options/duration.ts';
export type {
  AcknowledgedBeat,
  ClientPorts,
  CrashHooks,
  ExitHooks,
  JournalPorts,
  Liveness,
  RenewedInBackground,
  RenewsInBackground,
  TaskContext,
} from './ports.ts';
export {
  Barrier,
  type BarrierOptions,
  BarrierStay,
  DoubleBarrier,
  type DoubleBarrierOptions,
  type EnterOptions,
  type LiftOptions,
} from './primitives/barrier.ts';
export {
  type CampaignOptions,
  Election,
  type Leader,
  Leadership,
  type LeadershipHandle,
  type ResumeOptions,
} from './primitives/election.ts';
export { Every, type EveryOptions, type Tick, type TickWork } from './primitives/every.ts';
export { RwLock } from './primitives/rw-lock.ts';
export { type PermitOptions, Semaphore, type SemaphoreOptions } from './primitives/semaphore.ts';
export type { ClientEvent, ClientEventName, ClientListener } from './session/client-events.ts';
export type { LeaseOptions, LockCondition } from './session/dedicated-lease.ts';
export type { HealthCheck } from './session/health.ts';
export { type GrantedLease, type LeaseGrantOptions, Leases, type TimeToLiveOptions } from './session/leases.ts';
export type { SessionState } from './session/session.ts';
export {
  type SessionCloseOptions,
  type SessionDetails,
  type SessionListOptions,
  Sessions,
} from './session/sessions.ts';
export type { CredentialOptions, TokenOption } from './transport/credentials.ts';
export type { KnownToken } from './transport/log-ins.ts';
export type { RetryOptions } from './transport/retry.ts';
export { type Codec, json, text } from './values/codecs.ts';
export { Listing, type Page } from './values/listing.ts';
