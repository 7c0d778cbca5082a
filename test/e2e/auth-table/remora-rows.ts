/** Remora's own services of gRPC: every method. */
import { health } from '@remora/protocol/etcd';
import * as remora from '@remora/protocol/remora';
import type { RowsOf } from './etcd-rows.ts';
import {
  ANY_USER,
  EVERYBODY,
  LOCK_READERS,
  LOCK_USER,
  OWNER_OR_STEERERS,
  ROOT,
  type Row,
  type Rows,
  STEERERS,
  WRITER_ITSELF,
} from './verdicts.ts';
import { b, type World } from './world.ts';

export const REMORA_SERVICES = {
  'remora.v1.Lock': remora.LockService,
  'remora.v1.Admin': remora.admin.AdminService,
  'remora.v1.Auth': remora.auth.AuthService,
  'grpc.health.v1.Health': health.HealthService,
} as const;

const lock = (name = 'a/l'): remora.LockId => ({ namespace: 'default', name: b(name) });
const owner = (world: World): remora.Owner => ({ session: world.session, token: world.freshToken() });
const free = (world: World): remora.LockId => ({ namespace: 'default', name: world.fresh() });

type Change = NonNullable<remora.auth.ChangeRequest['change']>;
/** Each of them is undone, or changes what nothing else depends on. */
const CHANGES: {
  readonly [Case in Change['$case']]: (world: World) => Extract<Change, { readonly $case: Case }>['value'];
} = {
  enable: () => ({}),
  disable: () => ({}),
  addUser: (world) => ({ name: world.fresh('user').toString() }),
  deleteUser: () => 'nobody',
  setPassword: () => ({ name: 'nobody', password: 'pw' }),
  grantRole: () => ({ user: 'nobody', role: 'reader' }),
  revokeRole: () => ({ user: 'nobody', role: 'reader' }),
  addRole: (world) => world.fresh('role').toString(),
  deleteRole: () => 'nothing',
  grantKeys: () => ({ role: 'nothing', permission: SOME_KEYS }),
  revokeKeys: () => ({ role: 'nothing', permission: SOME_KEYS }),
  grantLocks: () => ({ role: 'nothing', permission: SOME_LOCKS }),
  revokeLocks: () => ({ role: 'nothing', permission: SOME_LOCKS }),
};
const SOME_KEYS: remora.auth.KeyPermission = { span: { key: b('x'), rangeEnd: b('') }, access: 'read' };
const SOME_LOCKS: remora.auth.LockPermission = { namespace: 'n', name: b('x'), prefix: false, verb: 'read' };

const changes = Object.entries(CHANGES).map(
  ([$case, value]): Row<Partial<remora.auth.ChangeRequest>> => ({
    name: $case,
    may: ROOT,
    request: (world) => ({ change: { $case, value: value(world) } as Change }),
    ...($case === 'disable' && {
      after: (world: World) =>
        world.allow(remora.auth.AuthService.change, { change: { $case: 'enable', value: {} } }, 'anonymous'),
    }),
  }),
) as unknown as Rows<Partial<remora.auth.ChangeRequest>>;

const KEYS = { $case: 'keys', value: SOME_KEYS } as const;

export const REMORA_ROWS: RowsOf<typeof REMORA_SERVICES> = {
  'remora.v1.Lock': {
    openSession: [{ may: ANY_USER, request: () => ({ ttlMs: 5_000n }) }],
    keepAlive: [{ may: LOCK_USER, request: ({ session }) => ({ session }) }],
    closeSession: [{ may: OWNER_OR_STEERERS, request: async (world) => ({ session: await world.newSession() }) }],
    changeSession: [{ may: LOCK_USER, request: ({ session }) => ({ session, number: 1, ttlMs: 120_000n }) }],
    listSessions: [
      { may: STEERERS, request: () => ({}) },
      { name: 'of one user', may: OWNER_OR_STEERERS, request: () => ({ owner: 'lockUser' }) },
    ],
    showSession: [{ may: OWNER_OR_STEERERS, request: ({ session }) => ({ id: session.id }) }],
    acquire: [
      { may: LOCK_USER, request: (world) => ({ lock: free(world), owner: owner(world) }) },
      { name: 'another lock', may: ROOT, request: (world) => ({ lock: lock('b'), owner: owner(world) }) },
      {
        name: 'in another namespace',
        may: ROOT,
        request: (world) => ({ lock: { ...lock(), namespace: 'other' }, owner: owner(world) }),
      },
    ],
    cancel: [{ may: LOCK_USER, request: (world) => ({ lock: lock(), owner: owner(world) }) }],
    release: [{ may: LOCK_USER, request: (world) => ({ lock: lock(), owner: owner(world) }) }],
    forceRelease: [{ may: STEERERS, request: () => ({ lock: lock() }) }],
    revoke: [{ may: STEERERS, request: () => ({ lock: lock() }) }],
    downgrade: [{ may: LOCK_USER, request: (world) => ({ lock: lock(), owner: owner(world), attempt: 1 }) }],
    setCapacity: [{ may: STEERERS, request: () => ({ lock: lock('a/permits'), capacity: 2 }) }],
    setData: [{ may: LOCK_USER, request: (world) => ({ lock: lock(), owner: owner(world), version: 1 }) }],
    forget: [{ may: STEERERS, request: () => ({ lock: lock() }) }],
    show: [
      { may: LOCK_READERS, request: () => ({ lock: lock() }) },
      { name: 'another lock', may: STEERERS, request: () => ({ lock: lock('b') }) },
    ],
    list: [
      { may: LOCK_READERS, request: () => ({ prefix: b('a/') }) },
      { name: 'all locks', may: STEERERS, request: () => ({}) },
    ],
    check: [
      { may: LOCK_READERS, request: () => ({ checks: [{ lock: lock(), version: 1n }] }) },
      {
        name: 'another lock, too',
        may: STEERERS,
        request: () => ({ checks: ['a/l', 'b'].map((name) => ({ lock: lock(name), version: 1n })) }),
      },
    ],
    watch: [
      { may: LOCK_READERS, request: () => ({ target: { $case: 'name', value: b('a/l') } }) },
      { name: 'a prefix', may: LOCK_READERS, request: () => ({ target: { $case: 'prefix', value: b('a/') } }) },
      { name: 'all locks', may: STEERERS, request: () => ({ target: { $case: 'prefix', value: b('') } }) },
    ],
  },
  'remora.v1.Admin': {
    listNodes: [{ may: ROOT, request: () => ({}) }],
    listRanges: [{ may: ROOT, request: () => ({}) }],
    listHotRanges: [{ may: ROOT, request: () => ({ by: 'writes', limit: 1 }) }],
    checkCluster: [{ may: ROOT, request: () => ({}) }],
    listSettings: [{ may: ROOT, request: () => ({}) }],
    setSetting: [{ may: ROOT, request: () => ({ name: 'nothing', value: '1' }), despite: /nothing/ }],
    setLogLevel: [{ may: ROOT, request: () => ({ nodeId: 1n, level: 'nothing' }), despite: /nothing/ }],
    getUpgrade: [{ may: ROOT, request: () => ({}) }],
    finalizeUpgrade: [{ may: ROOT, request: () => ({ version: '0.0' }), despite: /not a version/ }],
    transferLeader: [{ may: ROOT, request: () => ({ rangeId: 1n, toNode: 99n }), despite: /99/ }],
    compact: [{ may: ROOT, request: () => ({ revision: 1n }) }],
    beginRestore: [{ may: ROOT, request: () => ({ revision: 1n }), despite: /empty|there are/ }],
    endRestore: [{ may: ROOT, request: () => ({}) }],
    exportUsers: [{ may: ROOT, request: () => ({}) }],
    importUsers: [{ may: ROOT, request: () => ({ users: [], roles: [] }) }],
    changeRange: [
      {
        may: ROOT,
        request: () => ({ rangeId: 99n, change: { $case: 'addReplica', value: { node: 99n } } }),
        despite: /99/,
      },
    ],
    scatter: [{ may: ROOT, request: () => ({ start: b('x'), end: b('y') }) }],
    rebalance: [{ may: ROOT, request: () => ({ dryRun: true }) }],
    listOperators: [{ may: ROOT, request: () => ({}) }],
    cancelOperator: [{ may: ROOT, request: () => ({ id: 99n }), despite: /99/ }],
    listSchedulers: [{ may: ROOT, request: () => ({}) }],
    pauseScheduler: [{ may: ROOT, request: () => ({ name: 'nothing', forMs: 1_000n }), despite: /nothing/ }],
    setNodeDuty: [{ may: ROOT, request: () => ({ nodeId: 99n, duty: 'draining' }), despite: /99/ }],
    recoverMajority: [{ may: ROOT, request: () => ({ dead: ['nobody'], dryRun: true }), despite: /nobody/ }],
    why: [{ may: ROOT, request: () => ({ rangeId: 1n }) }],
  },
  'remora.v1.Auth': {
    whoAmI: [{ may: EVERYBODY, request: () => ({}) }],
    explain: [
      { may: WRITER_ITSELF, request: () => ({ user: 'writer', what: KEYS }) },
      { name: 'root', may: ROOT, request: () => ({ user: 'root', what: KEYS }) },
    ],
    getStatus: [{ may: ROOT, request: () => ({}) }],
    listUsers: [{ may: ROOT, request: () => ({}) }],
    getUser: [{ may: WRITER_ITSELF, request: () => ({ name: 'writer' }) }],
    listRoles: [{ may: ROOT, request: () => ({}) }],
    getRole: [{ may: WRITER_ITSELF, request: () => ({ name: 'writer' }) }],
    change: changes,
  },
  'grpc.health.v1.Health': {
    check: [{ may: EVERYBODY, request: () => ({}) }],
    watch: [{ may: EVERYBODY, request: () => ({}) }],
  },
};
