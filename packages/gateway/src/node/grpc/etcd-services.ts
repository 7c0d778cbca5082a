import type { Clock, Random } from '@remora/base';
import type { UnaryMethod } from '@remora/grpc-server';
import * as pb from '@remora/protocol/etcd';
import type { Backend } from '../../backend.ts';
import { TIMEOUT_LIMITS } from '../../calls.ts';
import { EtcdAuth } from '../../etcd/auth-service.ts';
import { EtcdCluster } from '../../etcd/cluster-service.ts';
import { etcdStatus, recipeStatus } from '../../etcd/errors.ts';
import type { EtcdNode } from '../../etcd/etcd-node.ts';
import { Headers } from '../../etcd/headers.ts';
import { keepAliveCodec } from '../../etcd/keepalive-codec.ts';
import { EtcdKv } from '../../etcd/kv-service.ts';
import { EtcdLease } from '../../etcd/lease-service.ts';
import { ETCD_LIMITS, type EtcdLimits } from '../../etcd/limits.ts';
import { EtcdMaintenance } from '../../etcd/maintenance/maintenance-service.ts';
import { BackendCalls } from '../../etcd/recipes/backend-calls.ts';
import { EtcdElection } from '../../etcd/recipes/election-service.ts';
import { KeyLine } from '../../etcd/recipes/key-line.ts';
import { EtcdLock } from '../../etcd/recipes/lock-service.ts';
import { unsupported } from '../../etcd/unsupported.ts';
import { WatchStream } from '../../etcd/watch-stream.ts';
import { HeartbeatStream } from '../../heartbeat-stream.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

export interface EtcdServicesDeps {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: Random;
  /** How clients reach the nodes: part of the URLs in member lists. */
  readonly scheme: 'http' | 'https';
  readonly limits?: EtcdLimits;
  readonly node: EtcdNode;
}

/** The etcd v3 API, to be added to a gRPC server. */
export function etcdServices(deps: EtcdServicesDeps, guard: CallGuard): readonly GrpcService[] {
  const headers = new Headers(deps.backend);
  return [
    kvService(deps, headers, guard),
    watchService(deps, headers, guard),
    leaseService(deps, headers, guard),
    clusterService(deps, headers, guard),
    maintenanceService(deps, headers, guard),
    authService(headers, guard),
    ...recipeServices(deps, headers, guard),
  ];
}

function kvService(deps: EtcdServicesDeps, headers: Headers, guard: CallGuard): GrpcService {
  const kv = new EtcdKv(deps.backend, headers, deps.limits ?? ETCD_LIMITS);
  return grpcService(pb.KVService, {
    range: guard.unary(kv.range.bind(kv), etcdStatus),
    put: guard.unary(kv.put.bind(kv), etcdStatus),
    deleteRange: guard.unary(kv.deleteRange.bind(kv), etcdStatus),
    txn: guard.unary(kv.txn.bind(kv), etcdStatus),
    compact: guard.unary(kv.compact.bind(kv), etcdStatus),
  });
}

function watchService(deps: EtcdServicesDeps, headers: Headers, guard: CallGuard): GrpcService {
  const services = { backend: deps.backend, headers, clock: deps.clock };
  const limits = deps.limits ?? ETCD_LIMITS;
  return grpcService(pb.WatchService, {
    watch: guard.stream((sink, resume) => new WatchStream(services, limits, sink, resume), etcdStatus),
  });
}

function leaseService(deps: EtcdServicesDeps, headers: Headers, guard: CallGuard): GrpcService {
  const lease = new EtcdLease(deps.backend, headers, deps.random);
  const { keepAlivesPendingMax: pendingMax } = deps.limits ?? ETCD_LIMITS;
  const limits = { pendingMax, timeouts: TIMEOUT_LIMITS };
  return grpcService(pb.LeaseService, {
    leaseGrant: guard.unary(lease.grant.bind(lease), etcdStatus),
    leaseRevoke: guard.unary(lease.revoke.bind(lease), etcdStatus),
    leaseKeepAlive: guard.stream(
      (sink, resumeReading, seen) =>
        new HeartbeatStream(deps.backend, keepAliveCodec(headers, seen), limits, { sink, resumeReading }),
      etcdStatus,
    ),
    leaseTimeToLive: guard.unary(lease.timeToLive.bind(lease), etcdStatus),
    leaseLeases: guard.unary(lease.leases.bind(lease), etcdStatus),
  });
}

function clusterService(deps: EtcdServicesDeps, headers: Headers, guard: CallGuard): GrpcService {
  const cluster = new EtcdCluster(deps.backend, headers, deps.scheme);
  return grpcService(pb.ClusterService, {
    memberList: guard.unary(cluster.memberList.bind(cluster), etcdStatus),
    memberAdd: guard.unary(cluster.memberAdd.bind(cluster), etcdStatus),
    memberRemove: guard.unary(cluster.memberRemove.bind(cluster), etcdStatus),
    memberUpdate: guard.unary(cluster.memberUpdate.bind(cluster), etcdStatus),
    memberPromote: guard.unary(cluster.memberPromote.bind(cluster), etcdStatus),
  });
}

function maintenanceService(deps: EtcdServicesDeps, headers: Headers, guard: CallGuard): GrpcService {
  const maintenance = new EtcdMaintenance({ ...deps, headers });
  return grpcService(pb.MaintenanceService, {
    status: guard.unary(maintenance.status.bind(maintenance), etcdStatus),
    alarm: guard.unary(maintenance.alarm.bind(maintenance), etcdStatus),
    defragment: guard.unary(maintenance.defragment.bind(maintenance), etcdStatus),
    hash: guard.unary(maintenance.hash.bind(maintenance), etcdStatus),
    hashKv: guard.unary(maintenance.hashKv.bind(maintenance), etcdStatus),
    snapshot: guard.serverStream((sink) => maintenance.snapshot(sink), etcdStatus),
    moveLeader: guard.unary(maintenance.moveLeader.bind(maintenance), etcdStatus),
    downgrade: refusedUnary(guard, 'Downgrade', 'install the older version node by node'),
  });
}

/** etcd's lock and election recipes, run by the server. */
function recipeServices(deps: EtcdServicesDeps, headers: Headers, guard: CallGuard): readonly GrpcService[] {
  const calls = new BackendCalls(deps.backend, headers, deps.limits ?? ETCD_LIMITS);
  const line = new KeyLine(calls, deps.clock, () => guard.abandoned);
  const lock = new EtcdLock(calls, line, deps.random);
  const election = new EtcdElection(calls, line, deps.random);
  return [
    grpcService(pb.v3lockpb.LockService, {
      lock: guard.waiting(lock.lock.bind(lock), recipeStatus),
      unlock: guard.unary(lock.unlock.bind(lock), recipeStatus),
    }),
    grpcService(pb.v3electionpb.ElectionService, {
      campaign: guard.waiting(election.campaign.bind(election), recipeStatus),
      proclaim: guard.unary(election.proclaim.bind(election), recipeStatus),
      leader: guard.unary(election.leader.bind(election), recipeStatus),
      observe: guard.serverStream((sink) => election.observe(sink), recipeStatus),
      resign: guard.unary(election.resign.bind(election), recipeStatus),
    }),
  ];
}

function authService(headers: Headers, guard: CallGuard): GrpcService {
  const auth = new EtcdAuth(headers);
  const refused = <Q, A>(method: string): UnaryMethod<Q, A> =>
    refusedUnary(guard, method, 'this cluster has no users and roles');
  return grpcService(pb.AuthService, {
    authStatus: guard.unary(auth.authStatus.bind(auth), etcdStatus),
    authDisable: guard.unary(auth.authDisable.bind(auth), etcdStatus),
    authenticate: guard.unary(auth.authenticate.bind(auth), etcdStatus),
    authEnable: refused('AuthEnable'),
    userAdd: refused('UserAdd'),
    userGet: refused('UserGet'),
    userList: guard.unary(auth.userList.bind(auth), etcdStatus),
    userDelete: refused('UserDelete'),
    userChangePassword: refused('UserChangePassword'),
    userGrantRole: refused('UserGrantRole'),
    userRevokeRole: refused('UserRevokeRole'),
    roleAdd: refused('RoleAdd'),
    roleGet: refused('RoleGet'),
    roleList: guard.unary(auth.roleList.bind(auth), etcdStatus),
    roleDelete: refused('RoleDelete'),
    roleGrantPermission: refused('RoleGrantPermission'),
    roleRevokePermission: refused('RoleRevokePermission'),
  });
}

function refusedUnary<Request, Response>(
  guard: CallGuard,
  method: string,
  instead: string,
): UnaryMethod<Request, Response> {
  const error = unsupported(method, instead);
  return guard.unary(() => {
    throw error;
  }, etcdStatus);
}
