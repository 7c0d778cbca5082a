import { ServiceError } from '@remora/base';
import { type Condition, conditionTtlMs, type SessionLock } from '@remora/lock';
import type { Query, SessionInfo } from '@remora/protocol';
import type * as pb from '@remora/protocol/remora';
import { checkSessions, checkTerms } from '../pipe/validate.ts';
import { toTtlMs } from './lock-requests.ts';
import { fromLockId, fromSession } from './lock-responses.ts';

const LIST_LIMIT_DEFAULT = 100;

/** How long a session lives without heartbeats, as a TTL or as a condition. */
export function toTerms(request: { readonly ttlMs: bigint; readonly condition: pb.Condition | undefined }): {
  readonly ttlMs: number;
  readonly condition?: Condition;
} {
  const { condition } = request;
  if (condition === undefined) return { ttlMs: toTtlMs(request.ttlMs) };
  const ttlMs = request.ttlMs === 0n ? conditionTtlMs(condition) : toTtlMs(request.ttlMs);
  checkTerms({ ttlMs, condition });
  return { ttlMs, condition };
}

export function toListSessions(request: pb.ListSessionsRequest): Extract<Query, { type: 'sessions' }> {
  const { after, attributes, owner } = request;
  const limit = request.limit === 0 ? LIST_LIMIT_DEFAULT : request.limit;
  const query = { type: 'sessions', after, limit, attributes, ...(owner !== undefined && { owner }) } as const;
  checkSessions(query);
  return query;
}

export function toShowSession({ id }: pb.ShowSessionRequest): Extract<Query, { type: 'session' }> {
  if (id === 0n) throw new ServiceError('INVALID_ARGUMENT', 'a session id cannot be 0');
  return { type: 'session', id, incarnation: 0 };
}

export function fromSessionInfo(session: SessionInfo): pb.SessionInfo {
  const { ttlMs, remainingMs, attributes, condition, owner } = session;
  const ref = fromSession({ lease: session.id, incarnation: session.incarnation });
  return { session: ref, ttlMs, remainingMs, attributes: { ...attributes }, condition, owner };
}

export function fromSessionLock({ lock, version, ...held }: SessionLock): pb.ShowSessionResponse_Lock {
  return { ...held, lock: fromLockId(lock), version };
}
