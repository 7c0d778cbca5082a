import type { SessionLock } from '@remora/lock';
import {
  added,
  bool,
  field,
  flat,
  int64,
  list,
  maybe,
  ms,
  optional,
  struct,
  text,
  textMap,
  uint,
  union,
  variant,
  words,
} from '../schema/kinds.ts';
import type { Infer, Kind } from '../schema/shape.ts';
import { OWNER } from './lease-api.ts';
import { ConditionKind, LockIdKind } from './lock-kinds.ts';

/** Sessions that one answer lists, at most. */
export const SESSIONS_LIMIT_MAX = 1_000;
/** Holds and places in queues that one range reports of a session. */
export const SESSION_LOCKS_MAX = 1_000;

/** A session, as others than its client see it. Every lease is one. */
export const SessionInfo = struct('session', {
  id: field(int64, 'The id of its lease.'),
  incarnation: field(uint, 'Tells it from earlier leases of the same id.'),
  ttlMs: field(ms, 'Milliseconds that it outlives its last heartbeat.'),
  remainingMs: field(ms, 'Milliseconds until it ends unless it is renewed.'),
  attributes: field(textMap, 'What its client says of itself.'),
  condition: maybe(ConditionKind, 'What holder and cluster agreed on about heartbeats.'),
  owner: added(maybe(text, OWNER), { since: '0.1.0', absent: undefined, skippable: 'an answer' }),
});
export interface SessionInfo extends Infer<typeof SessionInfo> {}

const SessionLockKind: Kind<SessionLock> = struct('session lock', {
  lock: flat(LockIdKind as Kind<SessionLock['lock']>, 'The lock.'),
  ownerId: field(text, 'Tells the owners of one session apart.'),
  mode: field(words('lock mode', ['exclusive', 'shared', 'permits', 'upgrade']), 'How it holds it, or wants it.'),
  permits: field(uint, 'Of a semaphore: how many permits.'),
  version: field(uint, 'Of the grant; 0 while it waits.'),
  depth: field(uint, 'Of the grant; 0 while it waits.'),
  position: field(uint, 'In the queue; 0 when it holds.'),
  sinceMs: added(field(ms, 'Wall time of the grant, or of joining the queue; 0: it is not known.'), {
    since: '0.1.0',
    absent: 0,
    skippable: 'an answer',
  }),
});

export const SESSION_QUERIES = {
  sessions: variant(56, {
    after: field(int64, 'Lists sessions behind this id, in the order in which ids are stored; 0: from the first.'),
    limit: field(uint, 'The most sessions to return. A range may return fewer, or none, although there are more.'),
    attributes: field(textMap, 'Only sessions whose attributes begin with these values.'),
    owner: added(maybe(text, 'Only sessions of this user; empty: only sessions of no user.'), {
      since: '0.1.0',
      absent: undefined,
    }),
  }),
  session: variant(57, {
    id: field(int64, 'The session.'),
    incarnation: field(
      uint,
      '0 asks the home of the session, which also knows the locks in its own range; any other value asks a range for the locks that it has of this very session.',
    ),
  }),
};
export const SessionQuery = union('session query', 'type', SESSION_QUERIES);
export type SessionQuery = Infer<typeof SessionQuery>;

export const SESSION_RESULTS = {
  sessions: variant(56, {
    sessions: field(list(SessionInfo), 'The sessions.'),
    next: field(int64, 'Continue after this id; 0: there are no more.'),
  }),
  session: variant(57, {
    session: field(optional(SessionInfo), 'The session; absent where it is not known, or not alive.'),
    locks: field(list(SessionLockKind), 'What it holds and waits for.'),
    more: field(bool, 'There are more locks than these.'),
  }),
};
export const SessionQueryResult = union('session result', 'type', SESSION_RESULTS);
export type SessionQueryResult = Infer<typeof SessionQueryResult>;
