/**
 * The layout of the lock layer's messages: `[version, [variant, [fields…]]]`, positional, checked field by field when
 * decoded. What is here describes every message, and codes those that are rare; `codec.ts` codes the others by hand,
 * to the same layout.
 *
 * C1. The layout of a version never changes: logs hold it. `lockSchema` describes it, and a test pins its hash. A
 *     new layout is a new version, decoded beside the old one for as long as a log may hold that.
 */
import {
  bool,
  bytes,
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
import type {
  Holder,
  LockCommand,
  LockId,
  LockNotice,
  LockQuery,
  LockQueryResult,
  LockResult,
  LockState,
  Owner,
  SessionRef,
  Waiter,
} from './types.ts';

export const VERSION = 1;

/** Codes of a refusal travel as their position here. */
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

const session = struct<SessionRef>({ lease, incarnation: int });
const owner = struct<Owner>({ session, token: text });
const lock = struct<LockId>({ namespace: text, name: bytes });
const holder = struct<Holder>({ owner, version: int, depth: int, lockTimeMs: time, data: bytes });
const waiter = struct<Waiter>({ owner, position: int, sinceMs: time });
const state = struct<LockState>({
  lock,
  kind: literal(['exclusive']),
  holders: listOf(holder),
  waiters: listOf(waiter),
  waiterCount: int,
});

const result = union<LockResult>({
  granted: struct({ version: int, depth: int, lockTimeMs: time }),
  queued: struct({ position: int }),
  busy: struct({ holder }),
  released: struct({ depth: int, version: int }),
  canceled: struct({ released: bool }),
  refused: struct({ code: literal(REFUSAL_CODES), message: text }),
});

/** One codec for every message. */
export const layout = {
  command: message<LockCommand>(
    VERSION,
    union<LockCommand>({
      acquire: struct({
        lock,
        owner,
        wait: bool,
        waitUntilMs: time,
        deadlineMs: time,
        depthMax: int,
        data: bytes,
        attempt: optionalInt,
      }),
      release: struct({ lock, owner, all: bool, deadlineMs: time, attempt: optionalInt }),
      cancel: struct({ lock, owner, deadlineMs: time, attempt: optionalInt }),
      forceRelease: struct({ lock }),
    }),
  ),
  query: message<LockQuery>(
    VERSION,
    union<LockQuery>({
      show: struct({ lock }),
      list: struct({ namespace: text, prefix: bytes, after: bytes, limit: int }),
      check: struct({ checks: listOf(struct({ lock, version: int })) }),
    }),
  ),
  result: message<LockResult>(VERSION, result),
  queryResult: message<LockQueryResult>(
    VERSION,
    union<LockQueryResult>({
      show: struct({ state: optional(state) }),
      list: struct({ locks: listOf(state), more: bool }),
      check: struct({ current: listOf(bool) }),
    }),
  ),
  notice: message<LockNotice>(VERSION, struct<LockNotice>({ lock, owner, result })),
};

/** The layout of every message, one per line. */
export const lockSchema: string = Object.entries(layout)
  .map(([name, codec]) => `${name} ${codec.schema}`)
  .join('\n');
