import type { Clock, Random, ServiceError } from '@remora/base';
import type * as pb from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import {
  type CallerInfo,
  type StreamHandler,
  type StreamService,
  type StreamSink,
  TIMEOUT_LIMITS,
  type UnaryHandler,
  type WaitingHandler,
} from '../calls.ts';
import { HeartbeatStream } from '../heartbeat-stream.ts';
import { EtcdAuth } from './auth-service.ts';
import { EtcdCluster } from './cluster-service.ts';
import { type EtcdStatus, etcdStatus, recipeStatus } from './errors.ts';
import type { EtcdNode } from './etcd-node.ts';
import { Headers } from './headers.ts';
import { keepAliveCodec } from './keepalive-codec.ts';
import { EtcdKv } from './kv-service.ts';
import { EtcdLease } from './lease-service.ts';
import { ETCD_LIMITS, type EtcdLimits } from './limits.ts';
import { EtcdMaintenance } from './maintenance/maintenance-service.ts';
import { BackendCalls } from './recipes/backend-calls.ts';
import { EtcdElection } from './recipes/election-service.ts';
import { KeyLine } from './recipes/key-line.ts';
import { EtcdLock } from './recipes/lock-service.ts';
import { unsupported } from './unsupported.ts';
import { WatchStream } from './watch-stream.ts';

export interface EtcdApiDeps {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: Random;
  /** How clients reach the nodes: part of the URLs in member lists. */
  readonly scheme: 'http' | 'https';
  readonly limits?: EtcdLimits;
  readonly node: EtcdNode;
}

/** Turns the error of a call into what clients get. */
type StatusOf = (error: ServiceError) => EtcdStatus;

/** A method of etcd's API, as each transport calls it. */
export interface Unary<Request, Response> {
  readonly kind: 'unary';
  readonly statusOf: StatusOf;
  /** Whether it takes no notice of who calls, so that a token which is not valid is no reason to refuse the call. */
  readonly forAll?: true;
  readonly handle: UnaryHandler<Request, Response>;
}

/** One that may wait for as long as its client does. */
export interface Waiting<Request, Response> {
  readonly kind: 'waiting';
  readonly statusOf: StatusOf;
  readonly handle: WaitingHandler<Request, Response>;
}

/** One with a stream of requests and a stream of responses. */
export interface Duplex<Request, Response> {
  readonly kind: 'duplex';
  readonly statusOf: StatusOf;
  readonly open: StreamService<Request, Response>;
  /** Whether it answers requests of callers whose token is not valid: the stream does not end then. */
  readonly answersRefusals?: boolean;
}

/** One with one request and a stream of responses. */
export interface ServerStream<Request, Response> {
  readonly kind: 'serverStream';
  readonly statusOf: StatusOf;
  readonly open: (sink: StreamSink<Response>, caller: CallerInfo) => StreamHandler<Request>;
}

export type EtcdApi = ReturnType<typeof etcdApi>;

/**
 * All methods of etcd's API by service and method, without a transport: gRPC (`node/grpc/etcd-services.ts`) and JSON
 * over HTTP (`json/json-gateway.ts`) call the same handlers.
 *
 * `isAbandoned`: whether no call is answered any more; background work may end then.
 */
export function etcdApi(deps: EtcdApiDeps, isAbandoned: () => boolean) {
  const headers = new Headers(deps.backend);
  return {
    kv: kvMethods(deps, headers),
    watch: { watch: watchMethod(deps, headers) },
    lease: leaseMethods(deps, headers),
    cluster: clusterMethods(deps, headers),
    maintenance: maintenanceMethods(deps, headers),
    auth: authMethods(deps, headers),
    ...recipeMethods(deps, headers, isAbandoned),
  };
}

function kvMethods(deps: EtcdApiDeps, headers: Headers) {
  const kv = new EtcdKv(deps.backend, headers, deps.limits ?? ETCD_LIMITS);
  return {
    range: unary(kv.range.bind(kv)),
    put: unary(kv.put.bind(kv)),
    deleteRange: unary(kv.deleteRange.bind(kv)),
    txn: unary(kv.txn.bind(kv)),
    compact: unary(kv.compact.bind(kv)),
  };
}

function watchMethod(deps: EtcdApiDeps, headers: Headers): Duplex<pb.WatchRequest, pb.WatchResponse> {
  const services = { backend: deps.backend, headers, clock: deps.clock };
  const limits = deps.limits ?? ETCD_LIMITS;
  const watch = duplex<pb.WatchRequest, pb.WatchResponse>(
    (sink, resume, caller) => new WatchStream({ ...services, caller }, limits, sink, resume),
  );
  return { ...watch, answersRefusals: true };
}

function leaseMethods(deps: EtcdApiDeps, headers: Headers) {
  const lease = new EtcdLease(deps.backend, headers, deps.random);
  const { keepAlivesPendingMax: pendingMax } = deps.limits ?? ETCD_LIMITS;
  const limits = { pendingMax, timeouts: TIMEOUT_LIMITS };
  const keepAlive = (
    sink: StreamSink<pb.LeaseKeepAliveResponse>,
    resumeReading: () => void,
    caller: CallerInfo,
  ): StreamHandler<pb.LeaseKeepAliveRequest> =>
    new HeartbeatStream(deps.backend, keepAliveCodec(headers, caller.seen), limits, { sink, resumeReading, caller });
  return {
    leaseGrant: unary(lease.grant.bind(lease)),
    leaseRevoke: unary(lease.revoke.bind(lease)),
    leaseKeepAlive: duplex(keepAlive),
    leaseTimeToLive: unary(lease.timeToLive.bind(lease)),
    leaseLeases: unary(lease.leases.bind(lease)),
  };
}

function clusterMethods(deps: EtcdApiDeps, headers: Headers) {
  const cluster = new EtcdCluster(deps.backend, headers, deps.scheme);
  return {
    memberList: unary(cluster.memberList.bind(cluster)),
    memberAdd: unary<pb.MemberAddRequest, pb.MemberAddResponse>(cluster.memberAdd.bind(cluster)),
    memberRemove: unary<pb.MemberRemoveRequest, pb.MemberRemoveResponse>(cluster.memberRemove.bind(cluster)),
    memberUpdate: unary<pb.MemberUpdateRequest, pb.MemberUpdateResponse>(cluster.memberUpdate.bind(cluster)),
    memberPromote: unary<pb.MemberPromoteRequest, pb.MemberPromoteResponse>(cluster.memberPromote.bind(cluster)),
  };
}

function maintenanceMethods(deps: EtcdApiDeps, headers: Headers) {
  const maintenance = new EtcdMaintenance({ ...deps, headers });
  const downgrade = refused<pb.DowngradeRequest, pb.DowngradeResponse>;
  return {
    status: unary(maintenance.status.bind(maintenance)),
    alarm: unary(maintenance.alarm.bind(maintenance)),
    defragment: unary(maintenance.defragment.bind(maintenance)),
    hash: unary(maintenance.hash.bind(maintenance)),
    hashKv: unary(maintenance.hashKv.bind(maintenance)),
    snapshot: serverStream(maintenance.snapshot.bind(maintenance), etcdStatus),
    moveLeader: unary(maintenance.moveLeader.bind(maintenance)),
    downgrade: downgrade('Downgrade', 'install the older version node by node'),
  };
}

/** etcd's lock and election recipes, run by the server. */
function recipeMethods(deps: EtcdApiDeps, headers: Headers, isAbandoned: () => boolean) {
  const calls = new BackendCalls(deps.backend, headers, deps.limits ?? ETCD_LIMITS, undefined);
  const line = new KeyLine(calls, deps.clock, isAbandoned);
  const lock = new EtcdLock(calls, line, deps.random);
  const election = new EtcdElection(calls, line, deps.random);
  return {
    lock: {
      lock: waiting(lock.lock.bind(lock)),
      unlock: unary(lock.unlock.bind(lock), recipeStatus),
    },
    election: {
      campaign: waiting(election.campaign.bind(election)),
      proclaim: unary(election.proclaim.bind(election), recipeStatus),
      leader: unary(election.leader.bind(election), recipeStatus),
      observe: serverStream(election.observe.bind(election), recipeStatus),
      resign: unary(election.resign.bind(election), recipeStatus),
    },
  };
}

function authMethods(deps: EtcdApiDeps, headers: Headers) {
  const auth = new EtcdAuth(headers, deps.node.auth);
  return {
    authStatus: unary(auth.authStatus.bind(auth)),
    authEnable: unary(auth.authEnable.bind(auth)),
    authDisable: unary(auth.authDisable.bind(auth)),
    authenticate: { ...unary(auth.authenticate.bind(auth)), forAll: true as const },
    userAdd: unary(auth.userAdd.bind(auth)),
    userGet: unary(auth.userGet.bind(auth)),
    userList: unary(auth.userList.bind(auth)),
    userDelete: unary(auth.userDelete.bind(auth)),
    userChangePassword: unary(auth.userChangePassword.bind(auth)),
    userGrantRole: unary(auth.userGrantRole.bind(auth)),
    userRevokeRole: unary(auth.userRevokeRole.bind(auth)),
    roleAdd: unary(auth.roleAdd.bind(auth)),
    roleGet: unary(auth.roleGet.bind(auth)),
    roleList: unary(auth.roleList.bind(auth)),
    roleDelete: unary(auth.roleDelete.bind(auth)),
    roleGrantPermission: unary(auth.roleGrantPermission.bind(auth)),
    roleRevokePermission: unary(auth.roleRevokePermission.bind(auth)),
  };
}

function unary<Q, A>(handle: UnaryHandler<Q, A>, statusOf: StatusOf = etcdStatus): Unary<Q, A> {
  return { kind: 'unary', handle, statusOf };
}

function waiting<Q, A>(handle: WaitingHandler<Q, A>): Waiting<Q, A> {
  return { kind: 'waiting', handle, statusOf: recipeStatus };
}

function duplex<Q, A>(open: StreamService<Q, A>): Duplex<Q, A> {
  return { kind: 'duplex', open, statusOf: etcdStatus };
}

function serverStream<Q, A>(open: ServerStream<Q, A>['open'], statusOf: StatusOf): ServerStream<Q, A> {
  return { kind: 'serverStream', open, statusOf };
}

function refused<Q, A>(method: string, instead: string): Unary<Q, A> {
  const error: ServiceError = unsupported(method, instead);
  return unary(() => {
    throw error;
  });
}
