/** Questions about sessions, and their answers. */

import { unreachable } from '@remora/base';
import type { SessionLock } from '@remora/lock';
import type { SessionInfo, SessionQuery, SessionQueryResult } from '../session-api.ts';
import {
  asBool,
  asBytes,
  asCount,
  asFields,
  asLease,
  asList,
  asMs,
  asText,
  asTextMap,
  invalid,
  leaseToWire,
  textMapToWire,
} from './check.ts';
import { decodeCondition, encodeCondition } from './lease.ts';

/** Tags among those of queries and their results (query.ts). */
const SESSION = { sessions: 56, session: 57 } as const;
const MODES: readonly SessionLock['mode'][] = ['exclusive', 'shared', 'permits', 'upgrade'];

export function isSessionTag(tag: unknown): boolean {
  return tag === SESSION.sessions || tag === SESSION.session;
}

export function encodeSessionQuery(query: SessionQuery): unknown[] {
  switch (query.type) {
    case 'sessions':
      return [SESSION.sessions, leaseToWire(query.after), query.limit, textMapToWire(query.attributes)];
    case 'session':
      return [SESSION.session, leaseToWire(query.id), query.incarnation];
    default:
      return unreachable(query);
  }
}

export function decodeSessionQuery(raw: readonly unknown[]): SessionQuery {
  if (raw[0] === SESSION.session) {
    const f = asFields(raw, 3, 'session query');
    return { type: 'session', id: asLease(f[1], 'session id'), incarnation: asCount(f[2], 'session incarnation') };
  }
  const f = asFields(raw, 4, 'sessions query');
  return {
    type: 'sessions',
    after: asLease(f[1], 'session id'),
    limit: asCount(f[2], 'sessions limit'),
    attributes: asTextMap(f[3], 'session attributes'),
  };
}

export function encodeSessionResult(result: SessionQueryResult): unknown[] {
  switch (result.type) {
    case 'sessions':
      return [SESSION.sessions, result.sessions.map(encodeInfo), leaseToWire(result.next)];
    case 'session': {
      const { session, locks, more } = result;
      return [SESSION.session, session === undefined ? null : encodeInfo(session), locks.map(encodeLock), more];
    }
    default:
      return unreachable(result);
  }
}

export function decodeSessionResult(raw: readonly unknown[]): SessionQueryResult {
  if (raw[0] === SESSION.sessions) {
    const f = asFields(raw, 3, 'sessions result');
    return { type: 'sessions', sessions: asList(f[1], 'sessions', decodeInfo), next: asLease(f[2], 'session id') };
  }
  const f = asFields(raw, 4, 'session result');
  return {
    type: 'session',
    session: f[1] === null ? undefined : decodeInfo(f[1]),
    locks: asList(f[2], 'session locks', decodeLock),
    more: asBool(f[3], 'session more'),
  };
}

function encodeInfo({ id, incarnation, ttlMs, remainingMs, attributes, condition }: SessionInfo): unknown[] {
  return [leaseToWire(id), incarnation, ttlMs, remainingMs, textMapToWire(attributes), encodeCondition(condition)];
}

function decodeInfo(raw: unknown): SessionInfo {
  const f = asFields(raw, 6, 'session');
  return {
    id: asLease(f[0], 'session id'),
    incarnation: asCount(f[1], 'session incarnation'),
    ttlMs: asMs(f[2], 'session ttl'),
    remainingMs: asMs(f[3], 'session remaining'),
    attributes: asTextMap(f[4], 'session attributes'),
    ...decodeCondition(f[5]),
  };
}

function encodeLock({ lock, ownerId, mode, permits, version, depth, position }: SessionLock): unknown[] {
  return [lock.namespace, lock.name, ownerId, MODES.indexOf(mode), permits, version, depth, position];
}

function decodeLock(raw: unknown): SessionLock {
  const f = asFields(raw, 8, 'session lock');
  const mode = MODES[asCount(f[3], 'lock mode')];
  if (mode === undefined) throw invalid('lock mode');
  return {
    lock: { namespace: asText(f[0], 'lock namespace'), name: asBytes(f[1], 'lock name') },
    ownerId: asText(f[2], 'owner id'),
    mode,
    permits: asCount(f[4], 'lock permits'),
    version: asCount(f[5], 'lock version'),
    depth: asCount(f[6], 'lock depth'),
    position: asCount(f[7], 'lock position'),
  };
}
