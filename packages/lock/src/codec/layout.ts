/**
 * The layout of the lock layer's messages: `[version, [variant, [fields…]]]`, positional, checked field by field when
 * decoded. This file describes every message, and encodes rare ones; `codec.ts` has hand-written code for the others,
 * with the same layout.
 *
 * C1. The layout of a version never changes: logs hold it. `lockSchema` describes it, and a test pins its hash. A
 *     new layout is a new version, decoded beside the old one for as long as a log may hold that.
 * C4. A message has the lowest version that can express it. So a peer that only knows version 1 understands everything
 *     that it can ask for: version 2 is for shared locks and semaphores.
 */
import type { LockEvent, LockNews } from '../procedures/events.ts';
import type {
  AcquireAs,
  ForcedRelease,
  Holder,
  HolderState,
  LockCommand,
  LockId,
  LockQuery,
  LockQueryResult,
  LockResult,
  LockState,
  Owner,
  PublicOwner,
  Revocation,
  SessionRef,
  Waiter,
} from '../types.ts';
import {
  added,
  bool,
  bytes,
  completed,
  int,
  lease,
  listOf,
  literal,
  message,
  optional,
  optionalInt,
  struct,
  text,
  time,
  union,
} from './schema.ts';

export const VERSION = 1;
export const VERSION_OF_KINDS = 2;

/** The code of a refusal is sent as its position here: first those of version 1. */
export const REFUSAL_CODES = [
  'SESSION_EXPIRED',
  'LOCK_NOT_HELD',
  'LOCK_WRONG_OWNER',
  'LOCK_CANCELED',
  'LOCK_TIMEOUT',
  'LOCK_DEPTH_EXCEEDED',
  'INVALID_ARGUMENT',
  'RESOURCE_EXHAUSTED',
] as const;
const REFUSAL_CODES_OF_KINDS = [
  ...REFUSAL_CODES,
  'LOCK_KIND_MISMATCH',
  'LOCK_UPGRADE_CONFLICT',
  'LOCK_PERMITS_EXCEEDED',
] as const;

type Refusal = Extract<LockResult, { readonly type: 'refused' }>;
export type RefusalV1 = Omit<Refusal, 'code'> & { readonly code: (typeof REFUSAL_CODES)[number] };
type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;
type ForceRelease = Extract<LockCommand, { readonly type: 'forceRelease' }>;
type AcquireV1 = Omit<Acquire, 'as' | 'keepData' | 'delayMs'>;
type Granted = Extract<LockResult, { readonly type: 'granted' }>;
/** Commands that version 1 can express; the others are version 2. */
export type CommandV1 =
  | AcquireV1
  | Extract<LockCommand, { readonly type: 'release' | 'cancel' }>
  | Omit<ForceRelease, 'by' | 'reason' | 'upToVersion'>;
export type ResultV1 =
  | Exclude<LockResult, { readonly type: 'refused' | 'granted' | 'capacity' | 'forgotten' | 'revoking' }>
  | Omit<Granted, 'keptData'>
  | RefusalV1;
type CommandOfKinds =
  | (Omit<Acquire, 'as'> & { readonly as: AcquireAs | { readonly type: 'alone' } })
  | Required<ForceRelease>
  | Extract<
      LockCommand,
      { readonly type: 'downgrade' | 'setCapacity' | 'setData' | 'forget' | 'endDelay' | 'revoke' | 'setDepth' }
    >;
type ResultOfKinds =
  | Extract<LockResult, { readonly type: 'refused' | 'capacity' | 'forgotten' | 'revoking' }>
  | (Granted & { readonly keptData: Uint8Array });
type QueryOfKinds = Exclude<LockQuery, { readonly type: 'check' }>;
type QueryResultOfKinds = Exclude<LockQueryResult, { readonly type: 'check' }>;
/** Queries and results that version 1 can express. */
export type QueryV1 = Extract<LockQuery, { readonly type: 'show' | 'list' | 'check' }>;
export type QueryResultV1 = Extract<LockQueryResult, { readonly type: 'show' | 'list' | 'check' }>;

const session = struct<SessionRef>({ lease, incarnation: int });
const owner = struct<Owner>({ session, token: text });
const shown = struct<PublicOwner>({ session, id: text });
const lock = struct<LockId>({ namespace: text, name: bytes });
const holder = struct<Holder>({ owner: shown, version: int, depth: int, lockTimeMs: time, data: bytes });
const acquire = {
  ...{ lock, owner, wait: bool, waitUntilMs: time, deadlineMs: time, depthMax: int, data: bytes },
  attempt: optionalInt,
};

const PLAIN_HOLD = { keepsData: false, delayMs: 0, delayed: false };
const alone = { mode: 'exclusive', permits: 0 } as const;
const holderV1 = completed<Holder, HolderState>(holder, (decoded) => ({ ...decoded, ...alone, ...PLAIN_HOLD }));
const waiterV1 = completed<Omit<Waiter, 'mode' | 'permits'>, Waiter>(
  struct({ owner: shown, position: int, sinceMs: time }),
  (decoded) => ({ ...decoded, ...alone }),
);
const stateV1 = completed<Pick<LockState, 'lock' | 'holders' | 'waiters' | 'waiterCount'>, LockState>(
  struct({
    lock,
    kind: literal(['exclusive']),
    holders: listOf(holderV1),
    waiters: listOf(waiterV1),
    waiterCount: int,
  }),
  ({ lock, holders, waiters, waiterCount }) => ({
    ...{ lock, kind: 'exclusive', holders, holderCount: holders.length, waiters, waiterCount },
    ...{ permits: 0, capacity: 0, keptData: undefined, forced: undefined, passing: 0 },
  }),
);
const holderState = struct<HolderState>({
  ...{ owner: shown, version: int, depth: int, lockTimeMs: time, data: bytes },
  mode: literal(['exclusive', 'shared', 'permits']),
  permits: int,
  keepsData: added(bool, false),
  delayMs: added(int, 0),
  delayed: added(bool, false),
});
const waiter = struct<Waiter>({
  ...{ owner: shown, position: int, sinceMs: time },
  mode: literal(['exclusive', 'shared', 'permits', 'upgrade']),
  permits: int,
});
const forced = struct<ForcedRelease>({ atMs: time, by: text, reason: text, version: int });
const revocation = struct<Revocation>({
  ...{ revision: int, version: int, by: text, reason: text, untilMs: time, sinceMs: time },
});
const state = struct<LockState>({
  lock,
  kind: literal(['exclusive', 'shared', 'semaphore']),
  holders: listOf(holderState),
  holderCount: int,
  waiters: listOf(waiter),
  waiterCount: int,
  permits: int,
  capacity: int,
  keptData: added(optional(bytes), undefined),
  forced: added(optional(forced), undefined),
  revocation: added(optional(revocation), undefined),
  passing: added(int, 0),
});

const resultV1 = union<ResultV1>({
  granted: struct({ version: int, depth: int, lockTimeMs: time }),
  queued: struct({ position: int }),
  busy: struct({ holder }),
  released: struct({ depth: int, version: int }),
  canceled: struct({ released: bool }),
  refused: struct({ code: literal(REFUSAL_CODES), message: text }),
});

const ended = struct({ owner: shown, version: int, permits: int });
const event = union<LockEvent>({
  acquired: struct({ holder: holderState, waited: bool }),
  upgraded: struct({ holder: holderState, waited: bool }),
  downgraded: struct({ holder: holderState }),
  changed: struct({ holder: holderState }),
  ...{ released: ended, expired: ended, forced: ended },
  queued: struct({ waiter }),
  left: struct({ owner: shown, code: literal(REFUSAL_CODES_OF_KINDS) }),
  capacity: struct({ capacity: int }),
  kept: struct({ data: optional(bytes) }),
  recorded: struct({ forced: optional(forced) }),
  revoking: struct({ revocation: optional(revocation) }),
  passing: struct({ count: int }),
});

/** One codec for every message of version 1, and for those of version 2. */
export const layout = {
  command: message<CommandV1>(
    VERSION,
    union<CommandV1>({
      acquire: struct(acquire),
      release: struct({ lock, owner, all: bool, deadlineMs: time, attempt: optionalInt }),
      cancel: struct({ lock, owner, deadlineMs: time, attempt: optionalInt }),
      forceRelease: struct({ lock }),
    }),
  ),
  query: message<QueryV1>(
    VERSION,
    union<QueryV1>({
      show: struct({ lock }),
      list: struct({ namespace: text, prefix: bytes, after: bytes, limit: int }),
      check: struct({ checks: listOf(struct({ lock, version: int })) }),
    }),
  ),
  result: message<ResultV1>(VERSION, resultV1),
  queryResult: message<QueryResultV1>(
    VERSION,
    union<QueryResultV1>({
      show: struct({ state: optional(stateV1) }),
      list: struct({ locks: listOf(stateV1), more: bool }),
      check: struct({ current: listOf(bool) }),
    }),
  ),
  commandOfKinds: message<CommandOfKinds>(
    VERSION_OF_KINDS,
    union<CommandOfKinds>({
      acquire: struct({
        ...acquire,
        as: union<AcquireAs | { readonly type: 'alone' }>({
          shared: struct({}),
          upgrade: struct({}),
          permits: struct({ permits: int, capacity: int }),
          alone: struct({}),
          pass: struct({}),
          enter: struct({ parties: int }),
        }),
        keepData: added(bool, false),
        delayMs: added(int, 0),
      }),
      downgrade: struct({ lock, owner, attempt: optionalInt }),
      setCapacity: struct({ lock, capacity: int }),
      setData: struct({ lock, owner, version: int, data: bytes }),
      forget: struct({ lock }),
      endDelay: struct({ lock, owner, version: int }),
      forceRelease: struct({ lock, by: text, reason: text, upToVersion: added(int, 0) }),
      revoke: struct({ lock, by: text, reason: text, forMs: int }),
      setDepth: struct({ lock, owner, version: int, depth: int }),
    }),
  ),
  queryOfKinds: message<QueryOfKinds>(
    VERSION_OF_KINDS,
    completed(
      union<QueryOfKinds>({
        show: struct({ lock }),
        list: struct({ namespace: text, prefix: bytes, after: bytes, limit: int }),
        search: struct({
          ...{ namespace: text, prefix: bytes, after: bytes, limit: int, contains: bytes },
          kind: optional(literal(['exclusive', 'shared', 'semaphore', 'barrier'])),
        }),
        namespaces: struct({ after: text, limit: int }),
      }),
      (decoded): QueryOfKinds =>
        decoded.type === 'show' || decoded.type === 'list' ? { ...decoded, allKinds: true } : decoded,
    ),
  ),
  resultOfKinds: message<ResultOfKinds>(
    VERSION_OF_KINDS,
    union<ResultOfKinds>({
      refused: struct({ code: literal(REFUSAL_CODES_OF_KINDS), message: text }),
      capacity: struct({ permits: int, capacity: int }),
      granted: struct({ version: int, depth: int, lockTimeMs: time, keptData: bytes }),
      forgotten: struct({ any: bool }),
      revoking: struct({ version: int }),
    }),
  ),
  queryResultOfKinds: message<QueryResultOfKinds>(
    VERSION_OF_KINDS,
    union<QueryResultOfKinds>({
      show: struct({ state: optional(state) }),
      list: struct({ locks: listOf(state), more: bool }),
      search: struct({ locks: listOf(state), next: optional(bytes) }),
      namespaces: struct({ namespaces: listOf(text), more: bool }),
    }),
  ),
  revocation: message<Revocation>(VERSION_OF_KINDS, revocation),
  news: message<readonly LockNews[]>(
    VERSION_OF_KINDS,
    listOf(
      union<LockNews>({
        begin: struct({ from: bytes, to: bytes }),
        state: struct({ lock, revision: int, state: optional(state) }),
        live: struct({}),
        events: struct({ lock, revision: int, events: listOf(event) }),
      }),
    ),
  ),
};

/** The layout of every message, one per line. */
export const lockSchema: string = Object.entries(layout)
  .map(([name, codec]) => `${name} ${codec.schema}`)
  .join('\n');
