/** The Pipe: every command, every query and every other method. */
import type { LockCommand, LockId, LockQuery, Owner } from '@remora/lock';
import { type Command, isClientCommand, type PlainOp, type Query, type Txn } from '@remora/protocol';
import { Command as CommandKind } from '../../../packages/protocol/src/internal/command.ts';
import { samplesOf } from '../../../packages/protocol/test/support/arbitrary.ts';
import {
  ANY_USER,
  KEY_EDITORS,
  KEY_READERS,
  KEY_WRITERS,
  LOCK_READERS,
  LOCK_USER,
  NOBODY,
  OWNER_OR_STEERERS,
  ROOT,
  type Row,
  type Rows,
  STEERERS,
} from './verdicts.ts';
import { b, type World } from './world.ts';

type Table<Union extends { readonly type: string }> = {
  readonly [Type in Union['type']]: Rows<Extract<Union, { readonly type: Type }>>;
};

const lock = (name = 'a/l'): LockId => ({ namespace: 'default', name: b(name) });
const sessionOf = ({ session }: World) => ({ lease: session.id, incarnation: Number(session.incarnation) });
const owner = (world: World): Owner => ({ session: sessionOf(world), token: world.freshToken() });

const get = (key: string, end?: string): Extract<PlainOp, { readonly type: 'range' }> => ({
  ...{ type: 'range', key: b(key), limit: 0, revision: 0, sortOrder: 'none', sortTarget: 'key' },
  ...{ keysOnly: false, countOnly: false },
  ...{ minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 },
  ...(end !== undefined && { end: b(end) }),
});
const put = (
  key: string,
  more: { readonly lease?: bigint; readonly prevKv?: boolean } = {},
): Extract<PlainOp, { readonly type: 'put' }> => ({
  ...{ type: 'put', key: b(key), value: b('v'), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
  ...more,
});

const OPS: Table<PlainOp> = {
  range: [
    { may: KEY_READERS, request: () => get('a/k') },
    { name: 'from a key on', may: ROOT, request: () => get('a/', '') },
  ],
  put: [
    { may: KEY_WRITERS, request: () => put('a/k') },
    { name: 'with the pair before', may: KEY_EDITORS, request: () => put('a/k', { prevKv: true }) },
    {
      name: 'with a lease of keys',
      may: KEY_WRITERS,
      request: async (world) => put('a/x', { lease: await world.newLease() }),
    },
    { name: 'with a session', may: ROOT, request: ({ session }) => put('a/s', { lease: session.id }) },
    { name: 'another key', may: ROOT, request: () => put('b') },
  ],
  delete: [
    { may: KEY_WRITERS, request: () => ({ type: 'delete', key: b('a/d'), prevKv: false }) },
    { name: 'with the pairs', may: KEY_EDITORS, request: () => ({ type: 'delete', key: b('a/d'), prevKv: true }) },
    {
      name: 'a span that goes beyond',
      may: ROOT,
      request: () => ({ type: 'delete', key: b('a/z'), end: b('a1'), prevKv: false }),
    },
  ],
};

/** Of Remora's locks. */
const LOCK_COMMANDS: Table<LockCommand> = {
  acquire: [
    {
      may: LOCK_USER,
      request: (world) => ({
        ...{ type: 'acquire', lock: { namespace: 'default', name: world.fresh() }, owner: owner(world), wait: false },
        ...{ waitUntilMs: 0, deadlineMs: 0, depthMax: 1, data: b('') },
      }),
    },
    {
      name: 'another lock',
      may: ROOT,
      request: (world) => ({
        ...{ type: 'acquire', lock: lock('b'), owner: owner(world), wait: false },
        ...{ waitUntilMs: 0, deadlineMs: 0, depthMax: 1, data: b('') },
      }),
    },
  ],
  release: [
    {
      may: LOCK_USER,
      request: (world) => ({ type: 'release', lock: lock(), owner: owner(world), all: true, deadlineMs: 0 }),
    },
  ],
  cancel: [
    { may: LOCK_USER, request: (world) => ({ type: 'cancel', lock: lock(), owner: owner(world), deadlineMs: 0 }) },
  ],
  downgrade: [{ may: LOCK_USER, request: (world) => ({ type: 'downgrade', lock: lock(), owner: owner(world) }) }],
  setData: [
    {
      may: LOCK_USER,
      request: (world) => ({ type: 'setData', lock: lock(), owner: owner(world), version: 1, data: b('') }),
    },
  ],
  setDepth: [
    {
      may: LOCK_USER,
      request: (world) => ({ type: 'setDepth', lock: lock(), owner: owner(world), version: 1, depth: 1 }),
    },
  ],
  forceRelease: [{ may: STEERERS, request: () => ({ type: 'forceRelease', lock: lock() }) }],
  setCapacity: [{ may: STEERERS, request: () => ({ type: 'setCapacity', lock: lock('a/permits'), capacity: 2 }) }],
  forget: [{ may: STEERERS, request: () => ({ type: 'forget', lock: lock() }) }],
  revoke: [{ may: STEERERS, request: () => ({ type: 'revoke', lock: lock(), by: 'ops', reason: 'r', forMs: 1_000 }) }],
  endDelay: [
    { may: NOBODY, request: (world) => ({ type: 'endDelay', lock: lock(), owner: owner(world), version: 1 }) },
  ],
};

const equal = (key: string) => ({ key: b(key), result: 'equal', target: { of: 'version', value: 0 } }) as const;
const txn = (more: Partial<Txn>): Extract<Command, { readonly type: 'txn' }> => ({
  type: 'txn',
  txn: { compare: [], success: [], failure: [], ...more },
});

/** Commands that only nodes send, as they come by chance. */
function sample<Type extends Command['type']>(type: Type): Rows<Extract<Command, { readonly type: Type }>> {
  const found = (samplesOf(CommandKind, 1_000) as readonly Command[]).find((each) => each.type === type);
  if (found === undefined || isClientCommand(found)) throw new Error(`there is no sample of ${type} for nodes`);
  return [{ may: NOBODY, request: () => found as Extract<Command, { readonly type: Type }> }];
}

export const COMMANDS: Table<Command> = {
  kv: each(OPS, (op) => ({ type: 'kv', op })),
  lock: each(LOCK_COMMANDS, (command) => ({ type: 'lock', command })),
  txn: [
    { may: KEY_EDITORS, request: () => txn({ compare: [equal('a/k')], success: [put('a/k')] }) },
    { name: 'only puts', may: KEY_WRITERS, request: () => txn({ success: [put('a/k')] }) },
    { name: 'nothing', may: ANY_USER, request: () => txn({}) },
    {
      name: 'a branch that is not taken',
      may: ROOT,
      request: () => txn({ success: [put('a/k')], failure: [put('b')] }),
    },
    {
      name: 'a nested branch',
      may: ROOT,
      request: () => txn({ success: [put('a/k'), { ...txn({ failure: [get('b')] }) }] }),
    },
    {
      name: 'under a lock',
      may: ROOT,
      request: () => txn({ compare: [{ lock: lock(), version: 1 }], success: [put('a/k')] }),
    },
  ],
  leaseGrant: [
    {
      may: ANY_USER,
      request: (world) => ({ type: 'leaseGrant', id: world.freshId(), ttlMs: 5_000, attributes: {} }),
    },
  ],
  leaseChange: [
    {
      may: LOCK_USER,
      request: ({ session }) => ({
        ...{ type: 'leaseChange', id: session.id, incarnation: Number(session.incarnation) },
        ...{ number: 1, ttlMs: 120_000 },
      }),
    },
  ],
  leaseRevoke: [
    {
      may: KEY_WRITERS,
      request: async (world) => ({ type: 'leaseRevoke', id: await world.newLease(), incarnation: 0 }),
    },
    {
      name: 'a session',
      may: OWNER_OR_STEERERS,
      request: async (world) => {
        const { id, incarnation } = await world.newSession();
        return { type: 'leaseRevoke', id, incarnation: Number(incarnation) };
      },
    },
  ],
  compact: [{ may: ROOT, request: () => ({ type: 'compact', revision: 1 }) }],
  raiseRevision: sample('raiseRevision'),
  txnPrepare: sample('txnPrepare'),
  txnDecide: sample('txnDecide'),
  txnResolve: sample('txnResolve'),
  txnForget: sample('txnForget'),
  leaseExpire: sample('leaseExpire'),
  leaseEnd: sample('leaseEnd'),
  leaseCheckpoint: sample('leaseCheckpoint'),
  leaseRegister: sample('leaseRegister'),
  leaseRefer: sample('leaseRefer'),
  leaseSettle: sample('leaseSettle'),
  recount: sample('recount'),
  split: sample('split'),
  seal: sample('seal'),
  merge: sample('merge'),
  refuseMerge: sample('refuseMerge'),
  unseal: sample('unseal'),
  noop: sample('noop'),
};

const LOCK_QUERIES: Table<LockQuery> = {
  show: [
    { may: LOCK_READERS, request: () => ({ type: 'show', lock: lock() }) },
    { name: 'another lock', may: STEERERS, request: () => ({ type: 'show', lock: lock('b') }) },
  ],
  list: [
    {
      may: LOCK_READERS,
      request: () => ({ type: 'list', namespace: 'default', prefix: b('a/'), after: b(''), limit: 1 }),
    },
    {
      name: 'all locks',
      may: STEERERS,
      request: () => ({ type: 'list', namespace: 'default', prefix: b(''), after: b(''), limit: 1 }),
    },
  ],
  search: [
    {
      may: LOCK_READERS,
      request: () => {
        return { type: 'search', namespace: 'default', prefix: b('a/'), after: b(''), limit: 1, contains: b('k') };
      },
    },
  ],
  namespaces: [{ may: STEERERS, request: () => ({ type: 'namespaces', after: '', limit: 1 }) }],
  check: [{ may: LOCK_READERS, request: () => ({ type: 'check', checks: [{ lock: lock(), version: 1 }] }) }],
};

export const QUERIES: Table<Query> = {
  range: [
    { may: KEY_READERS, request: () => ({ type: 'range', op: get('a/k'), serializable: false }) },
    { name: 'serializable', may: KEY_READERS, request: () => ({ type: 'range', op: get('a/k'), serializable: true }) },
    { name: 'from a key on', may: ROOT, request: () => ({ type: 'range', op: get('a/', ''), serializable: false }) },
  ],
  readTxn: [
    {
      may: KEY_READERS,
      request: () => ({
        ...txn({ compare: [equal('a/k')], success: [get('a/k')] }),
        type: 'readTxn',
        serializable: false,
      }),
    },
    {
      name: 'a branch that is not taken',
      may: ROOT,
      request: () => ({ ...txn({ success: [get('a/k')], failure: [get('b')] }), type: 'readTxn', serializable: true }),
    },
    { name: 'nothing', may: ANY_USER, request: () => ({ ...txn({}), type: 'readTxn', serializable: false }) },
  ],
  scan: [
    { may: KEY_READERS, request: () => ({ type: 'scan', key: b('a/'), end: b('a0'), revision: 0, bytes: 1 }) },
    {
      name: 'to the last key',
      may: ROOT,
      request: () => ({ type: 'scan', key: b('a/'), end: b(''), revision: 0, bytes: 1 }),
    },
  ],
  history: [{ may: KEY_READERS, request: () => ({ type: 'history', key: b('a/k'), before: 0, limit: 1, bytes: 1 }) }],
  lock: each(LOCK_QUERIES, (query) => ({ type: 'lock', query })),
  lockAwait: [{ may: LOCK_USER, request: (world) => ({ type: 'lockAwait', lock: lock(), owner: owner(world) }) }],
  grantEnd: [
    {
      may: LOCK_READERS,
      request: (world) => ({ type: 'grantEnd', lock: lock(), version: 1, session: sessionOf(world) }),
    },
  ],
  leaseKeepAlive: [
    {
      may: KEY_WRITERS,
      request: async (world) => ({ type: 'leaseKeepAlive', id: await world.newLease(), incarnation: 0 }),
    },
    {
      name: 'a session',
      may: LOCK_USER,
      request: ({ session: { id, incarnation } }) => ({ type: 'leaseKeepAlive', id, incarnation: Number(incarnation) }),
    },
  ],
  leaseTimeToLive: [
    { may: ANY_USER, request: ({ session }) => ({ type: 'leaseTimeToLive', id: session.id, keys: false }) },
    {
      name: 'with keys',
      may: KEY_READERS,
      request: async (world) => ({ type: 'leaseTimeToLive', id: await world.newLease(), keys: true }),
    },
  ],
  session: [
    { may: OWNER_OR_STEERERS, request: ({ session }) => ({ type: 'session', id: session.id, incarnation: 0 }) },
  ],
  sessions: [
    { may: STEERERS, request: () => ({ type: 'sessions', after: 0n, limit: 1, attributes: {} }) },
    {
      name: 'of one user',
      may: OWNER_OR_STEERERS,
      request: () => ({ type: 'sessions', after: 0n, limit: 1, attributes: {}, owner: 'lockUser' }),
    },
  ],
  leases: [{ may: ROOT, request: () => ({ type: 'leases' }) }],
  status: [{ may: ANY_USER, request: () => ({ type: 'status' }) }],
  closedRevision: [{ may: NOBODY, request: () => ({ type: 'closedRevision', revision: 0 }) }],
  leaseKeys: [{ may: NOBODY, request: () => ({ type: 'leaseKeys', id: 7n, incarnation: 1 }) }],
  txnStatus: [{ may: NOBODY, request: () => ({ type: 'txnStatus', txnId: 't', primaryKey: b('k') }) }],
};

/** One list of all rows of a table; each is named after its type. */
function each<Inner extends { readonly type: string }, Outer>(
  table: Table<Inner>,
  outer: (inner: Inner) => Outer,
): Rows<Outer> {
  const rows = Object.entries(table) as unknown as readonly [string, readonly Row<Inner>[]][];
  return rows.flatMap(([type, ofType]) =>
    ofType.map((row) => ({
      ...row,
      name: row.name === undefined ? type : `${type}, ${row.name}`,
      request: async (...asked: Parameters<typeof row.request>) => outer(await row.request(...asked)),
    })),
  ) as unknown as Rows<Outer>;
}
