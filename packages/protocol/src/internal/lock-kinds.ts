/**
 * The lock layer's messages, as parts of the protocol's. Its commands and results are in logs and in remembered
 * outcomes, and have a layout of their own (lock/src/layout.ts) with its own versions.
 */
import type { Bytes } from '@remora/base';
import {
  type Condition,
  decodeLockCommand,
  decodeLockNews,
  decodeLockQuery,
  decodeLockQueryResult,
  decodeLockResult,
  decodeRevocation,
  encodeLockCommand,
  encodeLockNews,
  encodeLockQuery,
  encodeLockQueryResult,
  encodeLockResult,
  encodeRevocation,
  type LockCommand,
  type LockId,
  type LockNews,
  type LockQuery,
  type LockQueryResult,
  type LockResult,
  type Owner,
  type PublicOwner,
  type Revocation,
} from '@remora/lock';
import { byHand, bytes, field, flat, int64, ms, struct, text, uint } from '../schema/kinds.ts';
import type { Kind } from '../schema/shape.ts';

export const LockIdKind: Kind<LockId> = struct('lock', {
  namespace: field(text, 'The namespace of the lock.'),
  name: field(bytes, 'The name of the lock.'),
});

export const SessionRefKind = struct('session reference', {
  lease: field(int64, 'The id of the lease that is the session.'),
  incarnation: field(uint, 'Tells it from earlier leases of the same id.'),
});

/** Four positions: the session, flat, and the token. */
export const OwnerKind = struct('owner', {
  session: flat(SessionRefKind, 'The session of the owner.'),
  token: field(text, 'The secret of the handle.'),
});

export const ConditionKind: Kind<Condition> = struct('condition of a session', {
  heartbeatMs: field(ms, 'Milliseconds between the heartbeats of the holder.'),
  serverMisses: field(uint, 'The server ends the session after this many intervals without one.'),
  holderMisses: field(uint, 'The holder stops using its locks after this many intervals without an answer.'),
});

const NAME: Bytes = Buffer.from('orders/42');
const LOCK: LockId = { namespace: 'default', name: NAME };
const SESSION = { lease: 0x1234_5678_9abc_def0n, incarnation: 17 };
const OWNER: Owner = { session: SESSION, token: '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d' };
const SHOWN: PublicOwner = { session: SESSION, id: 'a1' };
const REVOCATION: Revocation = { revision: 20, version: 21, by: 'ops', reason: 'r', untilMs: 5_000.5, sinceMs: 1_000 };
const LAYOUT = 'the layout of the lock layer';

export const LockCommandKind = byHand<LockCommand>(
  'lock command',
  { encode: encodeLockCommand, decode: decodeLockCommand },
  {
    description: LAYOUT,
    samples: () => [
      {
        ...{ type: 'acquire', lock: LOCK, owner: OWNER, wait: true, waitUntilMs: 1_234.5, deadlineMs: 99_999 },
        ...{ attempt: 2, depthMax: 1, data: Buffer.from('who') },
      },
      { type: 'release', lock: LOCK, owner: OWNER, all: true, deadlineMs: 0, attempt: 2 },
      { type: 'cancel', lock: LOCK, owner: OWNER, deadlineMs: 5, attempt: 2 },
      { type: 'forceRelease', lock: LOCK },
      { type: 'downgrade', lock: LOCK, owner: OWNER, attempt: 3 },
      { type: 'setCapacity', lock: LOCK, capacity: 3 },
    ],
  },
);

export const LockResultKind = byHand<LockResult>(
  'lock result',
  { encode: encodeLockResult, decode: decodeLockResult },
  {
    description: LAYOUT,
    samples: () => [
      { type: 'granted', version: 12, depth: 1, lockTimeMs: 1_700_000_000_000 },
      { type: 'queued', position: 3 },
      { type: 'busy', holder: { owner: SHOWN, version: 12, depth: 1, lockTimeMs: 5, data: Buffer.from('d') } },
      { type: 'released', depth: 0, version: 12 },
      { type: 'canceled', released: false },
      { type: 'capacity', permits: 2, capacity: 3 },
      { type: 'refused', code: 'LOCK_TIMEOUT', message: 'too late' },
      { type: 'refused', code: 'LOCK_UPGRADE_CONFLICT', message: 'another one' },
    ],
  },
);

export const LockQueryKind = byHand<LockQuery>(
  'lock query',
  { encode: encodeLockQuery, decode: decodeLockQuery },
  {
    description: LAYOUT,
    samples: () => [
      { type: 'show', lock: LOCK },
      { type: 'show', lock: LOCK, allKinds: true },
      { type: 'list', namespace: 'n', prefix: Buffer.from('p'), after: Buffer.alloc(0), limit: 10 },
      { type: 'check', checks: [{ lock: LOCK, version: 12 }] },
    ],
  },
);

export const LockQueryResultKind = byHand<LockQueryResult>(
  'lock query result',
  { encode: encodeLockQueryResult, decode: decodeLockQueryResult },
  {
    description: LAYOUT,
    samples: () => [
      { type: 'check', current: [true, false] },
      { type: 'show', state: undefined },
      { type: 'list', locks: [], more: true },
    ],
  },
);

export const RevocationKind = byHand<Revocation>(
  'revocation',
  { encode: encodeRevocation, decode: decodeRevocation },
  { description: LAYOUT, samples: () => [REVOCATION] },
);

export const LockNewsKind = byHand<readonly LockNews[]>(
  'lock news',
  { encode: encodeLockNews, decode: decodeLockNews },
  {
    description: LAYOUT,
    samples: () => [
      [
        { type: 'begin', from: Buffer.from('a'), to: Buffer.from('z') },
        { type: 'state', lock: LOCK, revision: 4, state: undefined },
        { type: 'live' },
        { type: 'events', lock: LOCK, revision: 5, events: [{ type: 'left', owner: SHOWN, code: 'LOCK_TIMEOUT' }] },
      ],
    ],
  },
);
