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
const HOLDER = { owner: SHOWN, version: 12, depth: 1, lockTimeMs: 5, data: Buffer.from('d') };
const PAGE = { namespace: 'n', prefix: Buffer.from('p'), after: Buffer.alloc(0), limit: 10 };
const LAYOUT = 'the layout of the lock layer';

/** Samples of a union: each of its types has one. */
function ofEachType<T extends { readonly type: string }>(
  samples: {
    readonly [Type in T['type']]: readonly [Of<T, Type>, ...Of<T, Type>[]];
  },
): () => readonly T[] {
  return () => Object.values<readonly T[]>(samples).flat();
}

type Of<T, Type> = Extract<T, { readonly type: Type }>;

export const LockCommandKind = byHand<LockCommand>(
  'lock command',
  { encode: encodeLockCommand, decode: decodeLockCommand },
  {
    description: LAYOUT,
    samples: ofEachType<LockCommand>({
      acquire: [
        {
          ...{ type: 'acquire', lock: LOCK, owner: OWNER, wait: true, waitUntilMs: 1_234.5, deadlineMs: 99_999 },
          ...{ attempt: 2, depthMax: 1, data: Buffer.from('who') },
        },
      ],
      release: [{ type: 'release', lock: LOCK, owner: OWNER, all: true, deadlineMs: 0, attempt: 2 }],
      cancel: [{ type: 'cancel', lock: LOCK, owner: OWNER, deadlineMs: 5, attempt: 2 }],
      forceRelease: [{ type: 'forceRelease', lock: LOCK }],
      downgrade: [{ type: 'downgrade', lock: LOCK, owner: OWNER, attempt: 3 }],
      setCapacity: [{ type: 'setCapacity', lock: LOCK, capacity: 3 }],
      setData: [{ type: 'setData', lock: LOCK, owner: OWNER, version: 12, data: Buffer.from('d') }],
      setDepth: [{ type: 'setDepth', lock: LOCK, owner: OWNER, version: 12, depth: 2 }],
      forget: [{ type: 'forget', lock: LOCK }],
      revoke: [{ type: 'revoke', lock: LOCK, by: 'ops', reason: 'r', forMs: 5_000 }],
      endDelay: [{ type: 'endDelay', lock: LOCK, owner: OWNER, version: 12 }],
    }),
  },
);

export const LockResultKind = byHand<LockResult>(
  'lock result',
  { encode: encodeLockResult, decode: decodeLockResult },
  {
    description: LAYOUT,
    samples: ofEachType<LockResult>({
      granted: [{ type: 'granted', version: 12, depth: 1, lockTimeMs: 1_700_000_000_000 }],
      queued: [{ type: 'queued', position: 3 }],
      busy: [{ type: 'busy', holder: HOLDER }],
      released: [{ type: 'released', depth: 0, version: 12 }],
      capacity: [{ type: 'capacity', permits: 2, capacity: 3 }],
      revoking: [{ type: 'revoking', version: 12 }],
      forgotten: [{ type: 'forgotten', any: true }],
      canceled: [{ type: 'canceled', released: false }],
      refused: [
        { type: 'refused', code: 'LOCK_TIMEOUT', message: 'too late' },
        { type: 'refused', code: 'LOCK_UPGRADE_CONFLICT', message: 'another one' },
      ],
    }),
  },
);

export const LockQueryKind = byHand<LockQuery>(
  'lock query',
  { encode: encodeLockQuery, decode: decodeLockQuery },
  {
    description: LAYOUT,
    samples: ofEachType<LockQuery>({
      show: [
        { type: 'show', lock: LOCK },
        { type: 'show', lock: LOCK, allKinds: true },
      ],
      list: [{ type: 'list', ...PAGE }],
      check: [{ type: 'check', checks: [{ lock: LOCK, version: 12 }] }],
      search: [
        { type: 'search', ...PAGE, contains: Buffer.from('part') },
        { type: 'search', ...PAGE, contains: Buffer.alloc(0), kind: 'barrier' },
      ],
      namespaces: [{ type: 'namespaces', after: 'n', limit: 10 }],
    }),
  },
);

export const LockQueryResultKind = byHand<LockQueryResult>(
  'lock query result',
  { encode: encodeLockQueryResult, decode: decodeLockQueryResult },
  {
    description: LAYOUT,
    samples: ofEachType<LockQueryResult>({
      show: [{ type: 'show', state: undefined }],
      list: [{ type: 'list', locks: [], more: true }],
      check: [{ type: 'check', current: [true, false] }],
      search: [{ type: 'search', locks: [], next: Buffer.from('n') }],
      namespaces: [{ type: 'namespaces', namespaces: ['n'], more: false }],
    }),
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
