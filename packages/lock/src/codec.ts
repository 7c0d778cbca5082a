/**
 * The lock layer's messages as plain data for msgpackr: on the internal wire, in the log, and in the replicated
 * memory of outcomes. `[version, [variant, [fields…]]]`, positional; every field is checked when it is decoded.
 *
 * C1. The layout of a version never changes: logs hold it. `lockSchema` describes it, and a test pins its hash. A
 *     new layout is a new version, decoded beside the old one for as long as a log may hold that.
 * C2. Decoded bytes are slices of the frame; the records of a lock copy what they keep.
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

const VERSION = 1;

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

const command = message<LockCommand>(
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
);

const query = message<LockQuery>(
  VERSION,
  union<LockQuery>({
    show: struct({ lock }),
    list: struct({ namespace: text, prefix: bytes, after: bytes, limit: int }),
    check: struct({ checks: listOf(struct({ lock, version: int })) }),
  }),
);

const result = union<LockResult>({
  granted: struct({ version: int, depth: int, lockTimeMs: time }),
  queued: struct({ position: int }),
  busy: struct({ holder }),
  released: struct({ depth: int, version: int }),
  canceled: struct({ released: bool }),
  refused: struct({
    code: literal([
      'SESSION_EXPIRED',
      'LOCK_NOT_HELD',
      'LOCK_WRONG_OWNER',
      'LOCK_CANCELED',
      'LOCK_TIMEOUT',
      'LOCK_DEPTH_EXCEEDED',
      'INVALID_ARGUMENT',
      'RESOURCE_EXHAUSTED',
    ]),
    message: text,
  }),
});

const resultMessage = message<LockResult>(VERSION, result);

const queryResult = message<LockQueryResult>(
  VERSION,
  union<LockQueryResult>({
    show: struct({ state: optional(state) }),
    list: struct({ locks: listOf(state), more: bool }),
    check: struct({ current: listOf(bool) }),
  }),
);

const notice = message<LockNotice>(VERSION, struct<LockNotice>({ lock, owner, result }));

/** The layout of every message of this module, one per line. */
export const lockSchema: string = Object.entries({ command, query, result: resultMessage, queryResult, notice })
  .map(([name, codec]) => `${name} ${codec.schema}`)
  .join('\n');

export const encodeLockCommand = (value: LockCommand): unknown[] => command.encode(value);
/** An absent `attempt` comes back as 0, which means the same. Throws `ServiceError` INVALID_ARGUMENT, as all decoders. */
export const decodeLockCommand = (raw: unknown): LockCommand => command.decode(raw);

export const encodeLockQuery = (value: LockQuery): unknown[] => query.encode(value);
export const decodeLockQuery = (raw: unknown): LockQuery => query.decode(raw);

export const encodeLockResult = (value: LockResult): unknown[] => resultMessage.encode(value);
export const decodeLockResult = (raw: unknown): LockResult => resultMessage.decode(raw);

export const encodeLockQueryResult = (value: LockQueryResult): unknown[] => queryResult.encode(value);
export const decodeLockQueryResult = (raw: unknown): LockQueryResult => queryResult.decode(raw);

export const encodeLockNotice = (value: LockNotice): unknown[] => notice.encode(value);
export const decodeLockNotice = (raw: unknown): LockNotice => notice.decode(raw);
