import type { EtcdApi } from '../etcd-api.ts';

/** The paths of a service's methods, which are all POST. Some methods have an older path as well. */
interface ServicePaths<Methods> {
  /** Its full name in the protobuf files. */
  readonly service: string;
  readonly paths: { readonly [Method in keyof Methods]: readonly string[] };
}

/**
 * The paths of etcd's JSON gateway, from the `google.api.http` options of etcd's protobuf files (3.6,
 * `api/etcdserverpb/rpc.proto`, `server/etcdserver/api/v3lock` and `v3election`).
 */
export const ETCD_PATHS: { readonly [Service in keyof EtcdApi]: ServicePaths<EtcdApi[Service]> } = {
  kv: {
    service: 'etcdserverpb.KV',
    paths: {
      range: ['/v3/kv/range'],
      put: ['/v3/kv/put'],
      deleteRange: ['/v3/kv/deleterange'],
      txn: ['/v3/kv/txn'],
      compact: ['/v3/kv/compaction'],
    },
  },
  watch: { service: 'etcdserverpb.Watch', paths: { watch: ['/v3/watch'] } },
  lease: {
    service: 'etcdserverpb.Lease',
    paths: {
      leaseGrant: ['/v3/lease/grant'],
      leaseRevoke: ['/v3/lease/revoke', '/v3/kv/lease/revoke'],
      leaseKeepAlive: ['/v3/lease/keepalive'],
      leaseTimeToLive: ['/v3/lease/timetolive', '/v3/kv/lease/timetolive'],
      leaseLeases: ['/v3/lease/leases', '/v3/kv/lease/leases'],
    },
  },
  cluster: {
    service: 'etcdserverpb.Cluster',
    paths: {
      memberAdd: ['/v3/cluster/member/add'],
      memberRemove: ['/v3/cluster/member/remove'],
      memberUpdate: ['/v3/cluster/member/update'],
      memberList: ['/v3/cluster/member/list'],
      memberPromote: ['/v3/cluster/member/promote'],
    },
  },
  maintenance: {
    service: 'etcdserverpb.Maintenance',
    paths: {
      alarm: ['/v3/maintenance/alarm'],
      status: ['/v3/maintenance/status'],
      defragment: ['/v3/maintenance/defragment'],
      hash: ['/v3/maintenance/hash'],
      hashKv: ['/v3/maintenance/hashkv'],
      snapshot: ['/v3/maintenance/snapshot'],
      moveLeader: ['/v3/maintenance/transfer-leadership'],
      downgrade: ['/v3/maintenance/downgrade'],
    },
  },
  auth: {
    service: 'etcdserverpb.Auth',
    paths: {
      authEnable: ['/v3/auth/enable'],
      authDisable: ['/v3/auth/disable'],
      authStatus: ['/v3/auth/status'],
      authenticate: ['/v3/auth/authenticate'],
      userAdd: ['/v3/auth/user/add'],
      userGet: ['/v3/auth/user/get'],
      userList: ['/v3/auth/user/list'],
      userDelete: ['/v3/auth/user/delete'],
      userChangePassword: ['/v3/auth/user/changepw'],
      userGrantRole: ['/v3/auth/user/grant'],
      userRevokeRole: ['/v3/auth/user/revoke'],
      roleAdd: ['/v3/auth/role/add'],
      roleGet: ['/v3/auth/role/get'],
      roleList: ['/v3/auth/role/list'],
      roleDelete: ['/v3/auth/role/delete'],
      roleGrantPermission: ['/v3/auth/role/grant'],
      roleRevokePermission: ['/v3/auth/role/revoke'],
    },
  },
  lock: { service: 'v3lockpb.Lock', paths: { lock: ['/v3/lock/lock'], unlock: ['/v3/lock/unlock'] } },
  election: {
    service: 'v3electionpb.Election',
    paths: {
      campaign: ['/v3/election/campaign'],
      proclaim: ['/v3/election/proclaim'],
      leader: ['/v3/election/leader'],
      observe: ['/v3/election/observe'],
      resign: ['/v3/election/resign'],
    },
  },
};
