import { DEPTH_MAX, LIST_LIMIT_MAX } from '@remora/lock';
import { SCAN_BYTES_MAX, SESSIONS_LIMIT_MAX } from '@remora/protocol';
import type { ClientOptions, DoubleBarrierOptions, SessionOptions } from '../client.ts';
import type {
  KeyTxnCompare,
  OperationOptions,
  PutOptions,
  RangeOptions,
  ReadOptions,
  TxnRequest,
  WriteOptions,
} from '../kv/kv.ts';
import type { WatchOptions } from '../kv/watch.ts';
import type { UpgradeOptions } from '../lock/conversion.ts';
import type { FenceGuardOptions } from '../lock/fence.ts';
import type { AcquireOptions } from '../lock/lock.ts';
import type { LockEventsOptions } from '../lock/lock-events.ts';
import type { ForceReleaseOptions, LockName } from '../lock/locks.ts';
import type { BarrierOptions } from '../primitives/barrier.ts';
import type { CampaignOptions, ResumeOptions } from '../primitives/election.ts';
import type { PermitOptions, SemaphoreOptions } from '../primitives/semaphore.ts';
import type { LockCondition } from '../session/dedicated-lease.ts';
import type { RevokeOptions } from '../session/revoke.ts';
import type { HealthCheck } from '../transport/health.ts';
import type { RetryOptions } from '../transport/retry.ts';
import {
  type ArgumentCheck,
  attributes,
  bytes,
  type ChecksOf,
  callback,
  capacity,
  checkedByCall,
  count,
  duration,
  fencing,
  flag,
  leaseId,
  leaseOrNone,
  list,
  misses,
  object,
  parties,
  permits,
  revision,
  signal,
  sortOrder,
  sortTarget,
  text,
  ttl,
  ttlOrNever,
} from './option-kinds.ts';
import { checksOf, requireOptions } from './options.ts';

/** What may be asked of nodes to take (`--request-bytes-max`) is less. */
const REQUEST_BYTES_MAX = 1024 * 1024 * 1024;

const namespace: ChecksOf<Omit<LockName, 'name'>> = { namespace: text };
const operation: ChecksOf<OperationOptions> = { timeout: duration, signal };
const read: ChecksOf<ReadOptions> = { ...operation, revision, serializable: flag };
const range: ChecksOf<RangeOptions> = {
  ...read,
  ...{ limit: count(0, Number.MAX_SAFE_INTEGER), keysOnly: flag, countOnly: flag, sort: object },
};
const write: ChecksOf<WriteOptions> = { ...operation, fence: checkedByCall };
const put: ChecksOf<PutOptions> = { ...write, lease: leaseOrNone, prevKv: flag };
const acquire: ChecksOf<AcquireOptions> = {
  ...{ wait: duration, signal, ttl: ttlOrNever, renew: flag, maxHold: duration, condition: object, data: bytes },
  ...{ keepData: flag, lockDelay: duration, token: text, depthMax: count(1, DEPTH_MAX), onRevoke: callback },
};
const { token: _, depthMax: __, ...acquireAll } = acquire;
const waiting = { wait: duration, signal } as const;
const forced = { by: text, reason: text } as const;
const page = { prefix: bytes, after: bytes, limit: count(1, LIST_LIMIT_MAX) } as const;

export const CLIENT_OPTIONS: ChecksOf<ClientOptions> = {
  ...{ endpoints: checkedByCall, requestTimeout: duration, retry: object, connectTimeout: duration, sessionTtl: ttl },
  ...{ requestBytesMax: count(1, REQUEST_BYTES_MAX), attributes, releaseOnExit: flag, discover: flag, tracer: object },
};

/** What calls take, by what they are called in messages: the compiler sees to it that no name is left out. */
export const KNOWN = {
  acquire: checksOf<AcquireOptions>(acquire),
  'acquire of a set': checksOf<Omit<AcquireOptions, 'token' | 'depthMax'>>(acquireAll),
  'acquire of permits': checksOf<PermitOptions>({ ...acquire, permits }),
  're-entry': checksOf<Pick<AcquireOptions, 'depthMax' | 'signal'>>({ depthMax: acquire.depthMax, signal }),
  upgrade: checksOf<UpgradeOptions>(waiting),
  condition: checksOf<LockCondition>({ heartbeat: duration, serverMisses: misses, holderMisses: misses }),
  'waiting at a barrier': checksOf<BarrierOptions>(waiting),
  'entering a double barrier': checksOf<BarrierOptions & Pick<AcquireOptions, 'data'>>({ ...waiting, data: bytes }),
  'lifting a barrier': checksOf<Pick<ForceReleaseOptions, 'by' | 'reason'>>(forced),
  campaign: checksOf<CampaignOptions>({ value: bytes, ...waiting, ttl }),
  resume: checksOf<ResumeOptions>({ value: bytes, ...waiting }),
  lock: checksOf(namespace),
  semaphore: checksOf<SemaphoreOptions>({ ...namespace, permits: capacity }),
  doubleBarrier: checksOf<DoubleBarrierOptions>({ ...namespace, parties }),
  'a lock of a set': checksOf({ lock: bytes, ...namespace, shared: flag }),
  'a semaphore of a set': checksOf({ semaphore: bytes, ...namespace, capacity, permits }),
  session: checksOf<SessionOptions>({ ttl, attributes, health: object }),
  health: checksOf<HealthCheck>({
    ...{ check: callback, interval: duration, timeout: duration, failures: count(1, Number.MAX_SAFE_INTEGER) },
  }),
  retry: checksOf<RetryOptions>({ initial: duration, max: duration, attempts: count(1, Number.MAX_SAFE_INTEGER) }),
  revoke: checksOf<RevokeOptions & Omit<LockName, 'name'>>({ ...namespace, ...forced, ...waiting }),
  forceRelease: checksOf<ForceReleaseOptions>({ ...namespace, ...forced }),
  'list of locks': checksOf({ ...namespace, ...page }),
  'events of a lock': checksOf<LockEventsOptions>({ signal }),
  'events of locks': checksOf({ ...namespace, prefix: bytes, signal }),
  'list of sessions': checksOf({ after: leaseOrNone, limit: count(1, SESSIONS_LIMIT_MAX), attributes }),
  'close of a session': checksOf({ incarnation: revision }),
  'grant of a lease': checksOf({ id: leaseId }),
  timeToLive: checksOf({ keys: flag }),
  guard: checksOf<FenceGuardOptions>({ ...namespace, namesMax: count(1, Number.MAX_SAFE_INTEGER) }),
  'a check of a lock': checksOf<LockName & { version: number }>({ name: bytes, ...namespace, version: fencing }),
  fence: checksOf<LockName & { version: number }>({ name: bytes, ...namespace, version: checkedByCall }),
  get: checksOf<ReadOptions>(read),
  range: checksOf<RangeOptions>(range),
  sort: checksOf<NonNullable<RangeOptions['sort']>>({ by: sortTarget, order: sortOrder }),
  put: checksOf<PutOptions>(put),
  delete: checksOf({ ...write, prevKv: flag }),
  'a transaction': checksOf<TxnRequest>({ compare: list, success: list, failure: list }),
  txn: checksOf<WriteOptions>(write),
  'a comparison': checksOf<KeyTxnCompare>({
    ...{ key: checkedByCall, target: checkedByCall, is: checkedByCall, than: checkedByCall },
  }),
  'a comparison of a grant': checksOf({ held: checkedByCall }),
  'a put of a transaction': checksOf({ put: bytes, value: bytes, lease: leaseOrNone, prevKv: flag }),
  'a delete of a transaction': checksOf({ delete: checkedByCall, prevKv: flag }),
  'a read of a transaction': checksOf({
    ...{ get: checkedByCall, revision, limit: range.limit, keysOnly: flag, countOnly: flag, sort: object },
  }),
  pages: checksOf({ ...operation, revision, pageBytes: count(1, SCAN_BYTES_MAX) }),
  watch: checksOf<WatchOptions>({ startRevision: revision, noPut: flag, noDelete: flag, prevKv: flag, signal }),
  compact: checksOf<OperationOptions>(operation),
} as const satisfies Record<string, ReadonlyMap<string, ArgumentCheck>>;

/**
 * A misspelt fence would be a write without one, and a misspelt comparison one that always holds.
 *
 * @throws ServiceError INVALID_ARGUMENT for a name that the call does not take, for a value of another kind, and for what is no
 *   object.
 */
export function checkOptions(call: keyof typeof KNOWN, options: object): void {
  requireOptions(options, call, KNOWN[call]);
}
