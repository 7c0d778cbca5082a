/** etcd's API: every method of every service, through gRPC and as JSON. */
import * as pb from '@remora/protocol/etcd';
import {
  ANY_USER,
  EVERYBODY,
  KEY_EDITORS,
  KEY_READERS,
  KEY_WRITERS,
  LOCK_USER,
  OWNER_OR_STEERERS,
  ROOT,
  type Rows,
  WRITER_ITSELF,
} from './verdicts.ts';
import { b, type World } from './world.ts';

/** By the names that generated services have. */
export const ETCD_SERVICES = {
  'etcdserverpb.KV': pb.KVService,
  'etcdserverpb.Watch': pb.WatchService,
  'etcdserverpb.Lease': pb.LeaseService,
  'etcdserverpb.Cluster': pb.ClusterService,
  'etcdserverpb.Maintenance': pb.MaintenanceService,
  'etcdserverpb.Auth': pb.AuthService,
  'v3lockpb.Lock': pb.v3lockpb.LockService,
  'v3electionpb.Election': pb.v3electionpb.ElectionService,
} as const;

type RequestOf<Method> = Method extends { readonly requestSerialize: (value: infer Request) => Buffer }
  ? Partial<Request>
  : never;
export type RowsOf<Services> = {
  readonly [Service in keyof Services]: {
    readonly [Method in keyof Services[Service]]: Rows<RequestOf<Services[Service][Method]>>;
  };
};

const A = { key: b('a/'), rangeEnd: b('a0') };
/** Further than what anybody but root may read or write. */
const BEYOND = { key: b('a/'), rangeEnd: b('a1') };
const FROM_A_ON = { key: b('a/'), rangeEnd: b('\0') };
const put = (key: string): pb.RequestOp =>
  pb.RequestOp.fromPartial({ request: { $case: 'requestPut', value: { key: b(key), value: b('v') } } });
const get = (key: string): pb.RequestOp =>
  pb.RequestOp.fromPartial({ request: { $case: 'requestRange', value: { key: b(key) } } });
const nested = (success: pb.RequestOp[], failure: pb.RequestOp[] = []): pb.RequestOp =>
  pb.RequestOp.fromPartial({ request: { $case: 'requestTxn', value: { success, failure } } });
const exists = (key: string): pb.Compare =>
  pb.Compare.fromPartial({ key: b(key), target: 0, result: 1, targetUnion: { $case: 'version', value: 0n } });

/** An answer of root's leader, which leads the election `a/elected`. */
const notLeader = (): pb.v3electionpb.LeaderKey =>
  pb.v3electionpb.LeaderKey.fromPartial({ name: b('a/elected'), key: b('a/elected/0'), rev: 1n, lease: 0n });

const signIn = (world: World) => world.allow(pb.AuthService.authEnable, {}, 'anonymous');

export const ETCD_ROWS: RowsOf<typeof ETCD_SERVICES> = {
  'etcdserverpb.KV': {
    range: [
      { may: KEY_READERS, request: () => ({ key: b('a/k') }) },
      { name: 'a span', may: KEY_READERS, request: () => ({ ...A, countOnly: true }) },
      { name: 'serializable', may: KEY_READERS, request: () => ({ ...A, serializable: true }) },
      { name: 'a span that goes beyond', may: ROOT, request: () => ({ ...BEYOND, limit: 1n }) },
      { name: 'from a key on', may: ROOT, request: () => ({ ...FROM_A_ON, keysOnly: true }) },
      { name: 'another key', may: ROOT, request: () => ({ key: b('b') }) },
    ],
    put: [
      { may: KEY_WRITERS, request: () => ({ key: b('a/k'), value: b('v') }) },
      { name: 'with prev_kv', may: KEY_EDITORS, request: () => ({ key: b('a/k'), prevKv: true }) },
      {
        name: 'with a lease of keys',
        may: KEY_WRITERS,
        request: async (world) => ({ key: world.fresh(), lease: await world.newLease() }),
      },
      { name: 'with a session', may: ROOT, request: (world) => ({ key: b('a/s'), lease: world.session.id }) },
      { name: 'another key', may: ROOT, request: () => ({ key: b('b') }) },
    ],
    deleteRange: [
      { may: KEY_WRITERS, request: () => ({ key: b('a/d') }) },
      {
        name: 'a span with prev_kv',
        may: KEY_EDITORS,
        request: () => ({ key: b('a/d'), rangeEnd: b('a/e'), prevKv: true }),
      },
      { name: 'a span that goes beyond', may: ROOT, request: () => ({ key: b('a/z'), rangeEnd: b('a1') }) },
    ],
    txn: [
      { may: KEY_EDITORS, request: () => ({ compare: [exists('a/k')], success: [put('a/k')], failure: [] }) },
      { name: 'only puts', may: KEY_WRITERS, request: () => ({ success: [put('a/k')] }) },
      { name: 'nothing', may: ANY_USER, request: () => ({}) },
      { name: 'only reads', may: KEY_READERS, request: () => ({ compare: [exists('a/k')], success: [get('a/k')] }) },
      {
        name: 'a branch that is not taken',
        may: ROOT,
        request: () => ({ success: [put('a/k')], failure: [put('b')] }),
      },
      {
        name: 'a compare of another key',
        may: ROOT,
        request: () => ({ compare: [exists('b')], success: [put('a/k')] }),
      },
      {
        name: 'a nested branch',
        may: ROOT,
        request: () => ({ success: [nested([put('a/k')], [nested([get('b')])])] }),
      },
    ],
    compact: [{ may: ROOT, request: () => ({ revision: 1n }) }],
  },
  'etcdserverpb.Watch': {
    watch: [
      { may: KEY_READERS, request: () => watched(A) },
      { name: 'from a key on', may: ROOT, request: () => watched(FROM_A_ON) },
    ],
  },
  'etcdserverpb.Lease': {
    leaseGrant: [{ may: ANY_USER, request: () => ({ TTL: 5n }) }],
    leaseRevoke: [
      { may: KEY_WRITERS, request: async (world) => ({ ID: await world.newLease() }) },
      { name: 'a session', may: OWNER_OR_STEERERS, request: async (world) => ({ ID: (await world.newSession()).id }) },
    ],
    leaseKeepAlive: [
      { may: KEY_WRITERS, request: async (world) => ({ ID: await world.newLease() }) },
      { name: 'a session', may: LOCK_USER, request: (world) => ({ ID: world.session.id }) },
    ],
    leaseTimeToLive: [
      { may: ANY_USER, request: async (world) => ({ ID: await world.newLease() }) },
      { name: 'with keys', may: KEY_READERS, request: async (world) => ({ ID: await world.newLease(), keys: true }) },
    ],
    leaseLeases: [{ may: ROOT, request: () => ({}) }],
  },
  'etcdserverpb.Cluster': {
    memberList: [{ may: ANY_USER, request: () => ({}) }],
    memberAdd: [{ may: ROOT, request: () => ({ peerURLs: ['http://127.0.0.1:1'] }) }],
    memberRemove: [{ may: ROOT, request: () => ({ ID: 99n }) }],
    memberUpdate: [{ may: ROOT, request: () => ({ ID: 99n, peerURLs: ['http://127.0.0.1:1'] }) }],
    memberPromote: [{ may: ROOT, request: () => ({ ID: 99n }) }],
  },
  'etcdserverpb.Maintenance': {
    alarm: [
      { may: ANY_USER, request: () => ({ action: 0 }) },
      { name: 'disarm', may: ROOT, request: () => ({ action: 2, alarm: 1 }) },
    ],
    status: [{ may: ANY_USER, request: () => ({}) }],
    defragment: [{ may: ROOT, request: () => ({}) }],
    hash: [{ may: ROOT, request: () => ({}) }],
    hashKv: [{ may: ROOT, request: () => ({}) }],
    snapshot: [{ may: ROOT, request: () => ({}) }],
    moveLeader: [{ may: ROOT, request: () => ({ targetID: 99n }) }],
    // It is not there, for anybody.
    downgrade: [{ may: EVERYBODY, request: () => ({}) }],
  },
  'etcdserverpb.Auth': {
    authEnable: [{ may: ROOT, request: () => ({}) }],
    authDisable: [{ may: ROOT, request: () => ({}), after: signIn }],
    authStatus: [{ may: ROOT, request: () => ({}) }],
    authenticate: [{ may: EVERYBODY, request: () => ({ name: 'stranger', password: 'stranger-pw' }) }],
    userAdd: [
      {
        may: ROOT,
        request: (world) => ({
          name: world.fresh('user').toString(),
          options: pb.UserAddOptions.fromPartial({ noPassword: true }),
        }),
      },
    ],
    userGet: [
      { may: WRITER_ITSELF, request: () => ({ name: 'writer' }) },
      { name: 'root', may: ROOT, request: () => ({ name: 'root' }) },
    ],
    userList: [{ may: ROOT, request: () => ({}) }],
    userDelete: [{ may: ROOT, request: () => ({ name: 'nobody' }) }],
    userChangePassword: [{ may: ROOT, request: () => ({ name: 'nobody', password: 'other' }) }],
    userGrantRole: [{ may: ROOT, request: () => ({ user: 'nobody', role: 'reader' }) }],
    userRevokeRole: [{ may: ROOT, request: () => ({ name: 'nobody', role: 'reader' }) }],
    roleAdd: [{ may: ROOT, request: (world) => ({ name: world.fresh('role').toString() }) }],
    roleGet: [
      { may: WRITER_ITSELF, request: () => ({ role: 'writer' }) },
      { name: 'root', may: ROOT, request: () => ({ role: 'root' }) },
    ],
    roleList: [{ may: ROOT, request: () => ({}) }],
    roleDelete: [{ may: ROOT, request: () => ({ role: 'nothing' }) }],
    roleGrantPermission: [
      {
        may: ROOT,
        request: () => ({ name: 'nothing', perm: pb.Permission.fromPartial({ key: b('x') }) }),
      },
    ],
    roleRevokePermission: [{ may: ROOT, request: () => ({ role: 'nothing', key: b('x') }) }],
  },
  'v3lockpb.Lock': {
    lock: [{ may: KEY_EDITORS, request: (world) => ({ name: world.fresh('a/lock') }) }],
    unlock: [{ may: KEY_WRITERS, request: (world) => ({ key: world.fresh('a/lock') }) }],
  },
  'v3electionpb.Election': {
    campaign: [{ may: KEY_EDITORS, request: (world) => ({ name: world.fresh('a/election'), value: b('v') }) }],
    proclaim: [{ may: KEY_EDITORS, request: () => ({ leader: notLeader(), value: b('v') }) }],
    leader: [{ may: KEY_READERS, request: () => ({ name: b('a/elected') }) }],
    observe: [{ may: KEY_READERS, request: () => ({ name: b('a/elected') }) }],
    resign: [{ may: KEY_EDITORS, request: () => ({ leader: notLeader() }) }],
  },
};

function watched(span: { readonly key: Buffer; readonly rangeEnd: Buffer }): pb.WatchRequest {
  return pb.WatchRequest.fromPartial({ requestUnion: { $case: 'createRequest', value: span } });
}
