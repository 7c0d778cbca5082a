import { type Bytes, EMPTY_BYTES, ServiceError } from '@remora/base';
import type { AcquireAs, LockCommand, LockId, LockQuery, Owner, SessionRef } from '@remora/lock';
import { DEFAULT_NAMESPACE, validateLockCommand, validateLockQuery } from '@remora/lock';
import type * as pb from '@remora/protocol/remora';
import type { LockWatchOptions } from '../backend.ts';

/**
 * Turns `remora.v1` requests into commands and queries of the lock layer, checked against its limits. Times in range
 * time are 0 here; the backend knows the range's time and sets them.
 */
const LIST_LIMIT_DEFAULT = 100;
export const REVOKE_DEFAULT_MS = 30_000;
const ATTRIBUTES_MAX = 16;
const ATTRIBUTES_BYTES_MAX = 4_096;
export const REQUEST_ID_MAX = 64;
/** Any time except 0: the range leaves a mark that outlives requests in flight. */
const LEAVE_MARK = 1;

export function toAcquire(request: pb.AcquireRequest): LockCommand {
  const as = toAs(request);
  return checked({
    ...(as === undefined ? {} : { as }),
    type: 'acquire',
    lock: toLockId(request.lock),
    owner: toOwner(request.owner),
    wait: request.wait,
    waitUntilMs: 0,
    deadlineMs: 0,
    attempt: request.attempt,
    depthMax: request.depthMax === 0 ? 1 : request.depthMax,
    data: request.data,
    keepData: request.keepData,
    delayMs: request.delayMs,
  });
}

function toAs({ as }: pb.AcquireRequest): AcquireAs | undefined {
  switch (as?.$case) {
    case 'shared':
    case 'upgrade':
    case 'pass':
      return { type: as.$case };
    case 'enter':
      return { type: 'enter', ...as.value };
    case 'permits':
      return { type: 'permits', ...as.value };
    case undefined:
      return undefined;
  }
}

export function toCancel(request: pb.CancelRequest): LockCommand {
  const { attempt } = request;
  return checked({
    type: 'cancel',
    lock: toLockId(request.lock),
    owner: toOwner(request.owner),
    deadlineMs: 0,
    attempt,
  });
}

/**
 * A repeated acquire may still be in flight; only its number tells the range that this release has ended it. An acquire
 * without a number could not be told from a later one.
 */
export function toRelease(request: pb.ReleaseRequest): LockCommand {
  const { all, attempt } = request;
  return checked({
    type: 'release',
    lock: toLockId(request.lock),
    owner: toOwner(request.owner),
    all,
    deadlineMs: attempt > 0 ? LEAVE_MARK : 0,
    attempt,
  });
}

export function toDowngrade({ lock, owner, attempt }: pb.DowngradeRequest): LockCommand {
  return checked({ type: 'downgrade', lock: toLockId(lock), owner: toOwner(owner), attempt });
}

export function toSetCapacity({ lock, capacity }: pb.SetCapacityRequest): LockCommand {
  return checked({ type: 'setCapacity', lock: toLockId(lock), capacity });
}

export function toSetData({ lock, owner, version, data }: pb.SetDataRequest): LockCommand {
  return checked({ type: 'setData', lock: toLockId(lock), owner: toOwner(owner), version, data });
}

export function toRevoke({ lock, by, reason, forMs }: pb.RevokeRequest): LockCommand {
  const ms = forMs === 0n ? REVOKE_DEFAULT_MS : toCount(forMs, 'for_ms');
  return checked({ type: 'revoke', lock: toLockId(lock), by, reason, forMs: ms });
}

export function toForget({ lock }: pb.ForgetRequest): LockCommand {
  return checked({ type: 'forget', lock: toLockId(lock) });
}

export function toForceRelease(request: pb.ForceReleaseRequest): LockCommand {
  const { by, reason, upToVersion } = request;
  return checked({ type: 'forceRelease', lock: toLockId(request.lock), by, reason, upToVersion });
}

export function toShow(request: pb.ShowRequest): LockQuery {
  return checkedQuery({ type: 'show', lock: toLockId(request.lock), allKinds: true });
}

export function toList(request: pb.ListRequest): LockQuery {
  return checkedQuery({
    type: 'list',
    namespace: request.namespace === '' ? DEFAULT_NAMESPACE : request.namespace,
    prefix: request.prefix,
    after: request.after,
    limit: request.limit === 0 ? LIST_LIMIT_DEFAULT : request.limit,
    allKinds: true,
  });
}

export function toCheck(request: pb.CheckRequest): LockQuery {
  const checks = request.checks.map(({ lock, version }) => ({
    lock: toLockId(lock),
    version: toCount(version, 'version'),
  }));
  return checkedQuery({ type: 'check', checks });
}

export function toLockWatch({ namespace, target }: pb.WatchRequest): LockWatchOptions {
  const space = namespace === '' ? DEFAULT_NAMESPACE : namespace;
  switch (target?.$case) {
    case 'name':
      checkedQuery({ type: 'show', lock: { namespace: space, name: target.value } });
      return { namespace: space, name: target.value, single: true };
    case 'prefix':
      checkedQuery({ type: 'list', namespace: space, prefix: target.value, after: EMPTY_BYTES, limit: 1 });
      return { namespace: space, name: target.value, single: false };
    case undefined:
      throw invalid('the target of the watch is missing; send a name or a prefix');
  }
}

export function toSession(session: pb.Session | undefined): SessionRef {
  if (session === undefined) throw invalid('the session is missing');
  return { lease: session.id, incarnation: toCount(session.incarnation, 'session.incarnation') };
}

export function toTtlMs(ttlMs: bigint): number {
  const ms = toCount(ttlMs, 'ttl_ms');
  if (ms === 0) throw invalid('ttl_ms must be above 0');
  return ms;
}

/** The attributes of a session. @throws ServiceError INVALID_ARGUMENT if there are too many. */
export function toAttributes(attributes: { readonly [name: string]: string }): Readonly<Record<string, string>> {
  const entries = Object.entries(attributes);
  const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
  if (entries.length > ATTRIBUTES_MAX || bytes > ATTRIBUTES_BYTES_MAX) {
    throw invalid(`attributes are at most ${ATTRIBUTES_MAX} entries and ${ATTRIBUTES_BYTES_MAX} bytes`);
  }
  return attributes;
}

/** How long to wait in the queue; undefined: as long as the session lives. */
export function toWaitMs(timeoutMs: bigint): number | undefined {
  return timeoutMs === 0n ? undefined : toCount(timeoutMs, 'timeout_ms');
}

/** Undefined if the client left it to the server. */
export function toRequestId(requestId: string): string | undefined {
  if (requestId.length > REQUEST_ID_MAX) throw invalid(`request_id has at most ${REQUEST_ID_MAX} characters`);
  return requestId === '' ? undefined : requestId;
}

export function toCount(value: bigint, what: string): number {
  if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw invalid(`${what} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, not ${value}`);
  }
  return Number(value);
}

function toLockId(lock: pb.LockId | undefined): LockId {
  if (lock === undefined) throw invalid('the lock is missing');
  const name: Bytes = lock.name;
  return { namespace: lock.namespace === '' ? DEFAULT_NAMESPACE : lock.namespace, name };
}

function toOwner(owner: pb.Owner | undefined): Owner {
  if (owner === undefined) throw invalid('the owner is missing');
  return { session: toSession(owner.session), token: owner.token };
}

function checked(command: LockCommand): LockCommand {
  const refusal = validateLockCommand(command);
  if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
  return command;
}

function checkedQuery(query: LockQuery): LockQuery {
  const refusal = validateLockQuery(query);
  if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
  return query;
}

function invalid(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
