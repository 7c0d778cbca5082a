import { asBuffer, EMPTY_BYTES, ServiceError, unreachable } from '@remora/base';
import type {
  HolderState,
  LockEvent,
  LockId,
  LockNews,
  LockQueryResult,
  LockResult,
  LockState,
  PublicOwner,
  Revocation,
  SessionRef,
  Waiter,
} from '@remora/lock';
import type * as pb from '@remora/protocol/remora';

type Granted = Extract<LockResult, { readonly type: 'granted' }>;

/** Turns results of the lock layer into `remora.v1` messages. */
export function fromAcquire(result: LockResult): pb.AcquireResponse {
  switch (result.type) {
    case 'granted':
      return { outcome: { $case: 'granted', value: fromGrant(result) } };
    case 'busy':
      return { outcome: { $case: 'busy', value: fromHolder({ ...result.holder, ...NOT_TOLD }) } };
    case 'queued':
      throw new ServiceError(
        'UNAVAILABLE',
        'the acquire is in the queue, but waiting for it was interrupted; send it again',
      );
    default:
      throw refusal(result);
  }
}

export function fromCancel(result: LockResult): pb.CancelResponse {
  if (result.type !== 'canceled') throw refusal(result);
  return { released: result.released };
}

export function fromDowngrade(result: LockResult): pb.DowngradeResponse {
  if (result.type !== 'granted') throw refusal(result);
  return { granted: fromGrant(result) };
}

export function fromSetData(result: LockResult): pb.SetDataResponse {
  if (result.type !== 'granted') throw refusal(result);
  return {};
}

export function fromRevoke(result: LockResult): pb.RevokeResponse {
  if (result.type !== 'revoking') throw refusal(result);
  return { version: result.version };
}

export function fromForget(result: LockResult): pb.ForgetResponse {
  if (result.type !== 'forgotten') throw refusal(result);
  return { any: result.any };
}

export function fromSetCapacity(result: LockResult): pb.SetCapacityResponse {
  if (result.type !== 'capacity') throw refusal(result);
  return { permits: result.permits, capacity: result.capacity };
}

export function fromRelease(result: LockResult): pb.ReleaseResponse {
  if (result.type !== 'released') throw refusal(result);
  return { depth: result.depth, version: result.version };
}

export function fromForceRelease(result: LockResult): pb.ForceReleaseResponse {
  if (result.type !== 'released') throw refusal(result);
  return { version: result.version };
}

export function fromShow(result: LockQueryResult): pb.ShowResponse {
  if (result.type !== 'show') throw unexpected(result.type);
  return { state: result.state === undefined ? undefined : fromState(result.state) };
}

export function fromList(result: LockQueryResult): pb.ListResponse {
  if (result.type !== 'list') throw unexpected(result.type);
  return { locks: result.locks.map(fromState), more: result.more };
}

export function fromCheck(result: LockQueryResult): pb.CheckResponse {
  if (result.type !== 'check') throw unexpected(result.type);
  return { current: [...result.current] };
}

export function fromLockNews(news: LockNews): pb.WatchResponse {
  switch (news.type) {
    case 'begin':
      return { news: { $case: 'begin', value: { from: asBuffer(news.from), to: asBuffer(news.to) } } };
    case 'state': {
      const state = news.state && fromState(news.state);
      return { news: { $case: 'state', value: { lock: fromLockId(news.lock), revision: news.revision, state } } };
    }
    case 'live':
      return { news: { $case: 'live', value: {} } };
    case 'events': {
      const events = news.events.map(fromEvent);
      return { news: { $case: 'change', value: { lock: fromLockId(news.lock), revision: news.revision, events } } };
    }
    default:
      return unreachable(news);
  }
}

function fromEvent(event: LockEvent): pb.LockEvent {
  return {
    ...{ type: event.type, holder: undefined, waited: false, owner: undefined, version: 0, permits: 0 },
    ...{ waiter: undefined, code: '', capacity: 0, data: asBuffer(EMPTY_BYTES), forced: undefined, passing: 0 },
    revocation: undefined,
    ...eventFields(event),
  };
}

function eventFields(event: LockEvent): Partial<pb.LockEvent> {
  switch (event.type) {
    case 'acquired':
    case 'upgraded':
      return { holder: fromHolder(event.holder), waited: event.waited };
    case 'downgraded':
    case 'changed':
      return { holder: fromHolder(event.holder) };
    case 'released':
    case 'expired':
    case 'forced':
      return { owner: fromOwner(event.owner), version: event.version, permits: event.permits };
    case 'queued':
      return { waiter: fromWaiter(event.waiter) };
    case 'left':
      return { owner: fromOwner(event.owner), code: event.code };
    case 'capacity':
      return { capacity: event.capacity };
    case 'revoking':
      return { revocation: event.revocation && fromRevocation(event.revocation) };
    case 'kept':
      return { data: asBuffer(event.data ?? EMPTY_BYTES) };
    case 'recorded':
      return { forced: event.forced };
    case 'passing':
      return { passing: event.count };
    default:
      return unreachable(event);
  }
}

function refusal(result: LockResult): ServiceError {
  return result.type === 'refused' ? new ServiceError(result.code, result.message) : unexpected(result.type);
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `the range answered with "${type}", which does not fit the request`);
}

function fromGrant({ version, depth, lockTimeMs, keptData = EMPTY_BYTES }: Granted): pb.Grant {
  return { version, depth, lockTimeMs, keptData: asBuffer(keptData) };
}

function fromRevocation({ revision, version, by, reason, sinceMs }: Revocation): pb.Revocation {
  return { revision, version, by, reason, sinceMs };
}

function fromState(state: LockState): pb.LockState {
  const { kind, holderCount, waiterCount, permits, capacity, keptData, forced, passing, revocation } = state;
  return {
    ...{ forced, passing },
    revocation: revocation && fromRevocation(revocation),
    ...{ kind, holderCount, waiterCount, permits, capacity, keptData: asBuffer(keptData ?? EMPTY_BYTES) },
    lock: fromLockId(state.lock),
    holders: state.holders.map(fromHolder),
    waiters: state.waiters.map(fromWaiter),
  };
}

export function fromLockId(lock: LockId): pb.LockId {
  return { namespace: lock.namespace, name: asBuffer(lock.name) };
}

export function fromSession({ lease, incarnation }: SessionRef): pb.Session {
  return { id: lease, incarnation: BigInt(incarnation) };
}

function fromOwner({ session, id }: PublicOwner): pb.PublicOwner {
  return { session: fromSession(session), id };
}

/** The holder, for a caller that finds the lock taken. */
const NOT_TOLD = { mode: '', permits: 0, keepsData: false, delayMs: 0, delayed: false };

function fromHolder({ owner, data, ...holder }: Omit<HolderState, 'mode'> & { readonly mode: string }): pb.Holder {
  return { owner: fromOwner(owner), data: asBuffer(data), ...holder };
}

function fromWaiter({ owner, ...waiter }: Waiter): pb.Waiter {
  return { owner: fromOwner(owner), ...waiter };
}
