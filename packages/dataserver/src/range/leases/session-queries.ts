/**
 * Answers about sessions to callers that are not their clients. The state was checked to be current (Q1 of queries.ts).
 */
import type { LockReadView } from '@remora/lock';
import { sessionLocks } from '@remora/lock';
import {
  SESSION_LOCKS_MAX,
  SESSIONS_LIMIT_MAX,
  type SessionInfo,
  type SessionQuery,
  type SessionQueryResult,
} from '@remora/protocol';
import type { Lease } from '../../state/leases/leases.ts';
import type { RangeFields } from '../../state/range-fields.ts';

export interface SessionSource {
  readonly state: Pick<RangeFields, 'leases' | 'leaseOwnership' | 'bounds'>;
  readonly locks: LockReadView;
  /** The remaining time of a lease; undefined if its deadline is not kept here. */
  readonly remainingMs: (id: bigint) => number | undefined;
}

export function querySessions(source: SessionSource, query: SessionQuery): SessionQueryResult {
  return query.type === 'sessions' ? list(source, query) : show(source, query);
}

function list(source: SessionSource, query: Extract<SessionQuery, { type: 'sessions' }>): SessionQueryResult {
  const { leases, bounds } = source.state;
  const wanted = Object.entries(query.attributes);
  const { found, next } = leases.page(bounds.routed, {
    after: query.after,
    limit: Math.min(query.limit, SESSIONS_LIMIT_MAX),
    matches: ({ attributes, owner }) =>
      (query.owner === undefined || query.owner === owner) &&
      wanted.every(([name, prefix]) => attributeOf(attributes, name)?.startsWith(prefix)),
  });
  return { type: 'sessions', sessions: found.map((lease) => infoOf(source, lease)), next };
}

/** Names come from clients: inherited properties such as `constructor` must not match. */
function attributeOf(attributes: Lease['attributes'], name: string): string | undefined {
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined;
}

function show(
  source: SessionSource,
  { id, incarnation }: Extract<SessionQuery, { type: 'session' }>,
): SessionQueryResult {
  const { leases, leaseOwnership, bounds } = source.state;
  const lease = leases.get(id);
  const asked = incarnation === 0 ? lease?.incarnation : incarnation;
  const session = incarnation === 0 && lease !== undefined ? infoOf(source, lease) : undefined;
  if (asked === undefined) return { type: 'session', session, locks: [], more: false };
  const names = leaseOwnership.locksOf(id, bounds.routed, SESSION_LOCKS_MAX + 1);
  const ref = { lease: id, incarnation: asked };
  const locks = names.slice(0, SESSION_LOCKS_MAX).flatMap((lock) => sessionLocks(source.locks, lock, ref));
  const more = names.length > SESSION_LOCKS_MAX || locks.length > SESSION_LOCKS_MAX;
  return { type: 'session', session, locks: locks.slice(0, SESSION_LOCKS_MAX), more };
}

function infoOf({ remainingMs }: SessionSource, lease: Lease): SessionInfo {
  const { id, incarnation, ttlMs, attributes, condition, owner } = lease;
  const left = { ttlMs, remainingMs: remainingMs(id) ?? ttlMs };
  const shown = { ...(condition !== undefined && { condition }), ...(owner !== undefined && { owner }) };
  return { id, incarnation, ...left, attributes, ...shown };
}
