import type { BarrierOptions } from './barrier.ts';
import type { DoubleBarrierOptions, SessionOptions } from './client.ts';
import type { UpgradeOptions } from './conversion.ts';
import type { CampaignOptions, ResumeOptions } from './election.ts';
import type { FenceGuardOptions } from './fence.ts';
import type { HealthCheck } from './health.ts';
import type {
  KeyTxnCompare,
  OperationOptions,
  PutOptions,
  RangeOptions,
  ReadOptions,
  TxnRequest,
  WriteOptions,
} from './kv.ts';
import type { AcquireOptions } from './lock.ts';
import type { LockEventsOptions } from './lock-events.ts';
import type { ForceReleaseOptions, LockName } from './locks.ts';
import { namesOf, requireOptions } from './options.ts';
import type { LockCondition } from './own-lease.ts';
import type { RetryOptions } from './retry.ts';
import type { RevokeOptions } from './revoke.ts';
import type { PermitOptions, SemaphoreOptions } from './semaphore.ts';
import type { WatchOptions } from './watch.ts';

type Names<T> = Record<keyof T & string, true>;

const namespace: Names<Omit<LockName, 'name'>> = { namespace: true };
const operation: Names<OperationOptions> = { timeout: true, signal: true };
const read: Names<ReadOptions> = { ...operation, revision: true, serializable: true };
const range: Names<RangeOptions> = { ...read, limit: true, keysOnly: true, countOnly: true, sort: true };
const write: Names<WriteOptions> = { ...operation, fence: true };
const put: Names<PutOptions> = { ...write, lease: true, prevKv: true };
const acquire: Names<AcquireOptions> = {
  ...{ wait: true, signal: true, ttl: true, renew: true, maxHold: true, condition: true, data: true, keepData: true },
  ...{ lockDelay: true, token: true, depthMax: true, onRevoke: true },
};
const { token: _, depthMax: __, ...acquireAll } = acquire;
const page = { prefix: true, after: true, limit: true } as const;

/** What calls take, by what they are called in messages: the compiler sees to it that no name is left out. */
const KNOWN = {
  acquire: namesOf<AcquireOptions>(acquire),
  'acquire of a set': namesOf<Omit<AcquireOptions, 'token' | 'depthMax'>>(acquireAll),
  'acquire of permits': namesOf<PermitOptions>({ ...acquire, permits: true }),
  're-entry': namesOf<Pick<AcquireOptions, 'depthMax' | 'signal'>>({ depthMax: true, signal: true }),
  upgrade: namesOf<UpgradeOptions>({ wait: true, signal: true }),
  condition: namesOf<LockCondition>({ heartbeat: true, serverMisses: true, holderMisses: true }),
  'waiting at a barrier': namesOf<BarrierOptions>({ wait: true, signal: true }),
  'entering a double barrier': namesOf<BarrierOptions & Pick<AcquireOptions, 'data'>>({
    ...{ wait: true, signal: true, data: true },
  }),
  'lifting a barrier': namesOf<Pick<ForceReleaseOptions, 'by' | 'reason'>>({ by: true, reason: true }),
  campaign: namesOf<CampaignOptions>({ value: true, wait: true, signal: true, ttl: true }),
  resume: namesOf<ResumeOptions>({ value: true, wait: true, signal: true }),
  lock: namesOf(namespace),
  semaphore: namesOf<SemaphoreOptions>({ ...namespace, permits: true }),
  doubleBarrier: namesOf<DoubleBarrierOptions>({ ...namespace, parties: true }),
  'a lock of a set': namesOf({ lock: true, ...namespace, shared: true }),
  'a semaphore of a set': namesOf({ semaphore: true, ...namespace, capacity: true, permits: true }),
  session: namesOf<SessionOptions>({ ttl: true, attributes: true, health: true }),
  health: namesOf<HealthCheck>({ check: true, interval: true, timeout: true, failures: true }),
  retry: namesOf<RetryOptions>({ initial: true, max: true, attempts: true }),
  revoke: namesOf<RevokeOptions & Omit<LockName, 'name'>>({
    ...namespace,
    ...{ reason: true, by: true, wait: true, signal: true },
  }),
  forceRelease: namesOf<ForceReleaseOptions>({ ...namespace, by: true, reason: true }),
  'list of locks': namesOf({ ...namespace, ...page }),
  'events of a lock': namesOf<LockEventsOptions>({ signal: true }),
  'events of locks': namesOf({ ...namespace, prefix: true, signal: true }),
  'list of sessions': namesOf({ after: true, limit: true, attributes: true }),
  'close of a session': namesOf({ incarnation: true }),
  'grant of a lease': namesOf({ id: true }),
  timeToLive: namesOf({ keys: true }),
  guard: namesOf<FenceGuardOptions>({ ...namespace, namesMax: true }),
  fence: namesOf<LockName & { version: number }>({ name: true, ...namespace, version: true }),
  get: namesOf<ReadOptions>(read),
  range: namesOf<RangeOptions>(range),
  put: namesOf<PutOptions>(put),
  delete: namesOf({ ...write, prevKv: true }),
  'a transaction': namesOf<TxnRequest>({ compare: true, success: true, failure: true }),
  txn: namesOf<WriteOptions>(write),
  'a comparison': namesOf<KeyTxnCompare>({ key: true, target: true, is: true, than: true }),
  'a comparison of a grant': namesOf({ held: true }),
  'a put of a transaction': namesOf({ put: true, value: true, lease: true, prevKv: true }),
  'a delete of a transaction': namesOf({ delete: true, prevKv: true }),
  'a read of a transaction': namesOf({
    ...{ get: true, revision: true, limit: true, keysOnly: true, countOnly: true, sort: true },
  }),
  pages: namesOf({ ...operation, revision: true, pageBytes: true }),
  watch: namesOf<WatchOptions>({ startRevision: true, noPut: true, noDelete: true, prevKv: true, signal: true }),
  compact: namesOf<OperationOptions>(operation),
} as const satisfies Record<string, ReadonlySet<string>>;

/**
 * A misspelt fence would be a write without one, and a misspelt comparison one that always holds.
 *
 * @throws ServiceError INVALID_ARGUMENT for a name that the call does not take, and for what is no object.
 */
export function checkOptions(call: keyof typeof KNOWN, options: object): void {
  requireOptions(options, call, KNOWN[call]);
}
