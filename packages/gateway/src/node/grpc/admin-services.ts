import { admin } from '@remora/protocol/remora';
import { type AdminApi, asUnary } from '../../admin/admin-api.ts';
import { ADMINISTERS, CHECKS, LOOKS, RESCUES } from '../../admin/admin-needs.ts';
import { UsersApi } from '../../admin/users-api.ts';
import type { AuthAdmin } from '../../authorisation/auth-admin.ts';
import type { Backend } from '../../backend.ts';
import type { CallInfo } from '../../calls.ts';
import { remoraStatus } from '../../etcd/errors.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

interface AdminServiceDeps {
  readonly api: AdminApi;
  readonly auth: AuthAdmin;
  readonly backend: Pick<Backend, 'check'>;
}

/** `remora.v1.Admin`, to be added to a gRPC server. */
export function adminService({ api, auth, backend }: AdminServiceDeps, guard: CallGuard): GrpcService {
  // Every method is the root's, before anything is done or looked up.
  const unaryOf =
    (of: object, needs = ADMINISTERS) =>
    <Request, Response>(work: (request: Request, call: CallInfo) => Promise<Response>) =>
      guard.unary<Request, Response>((request, call, done) => {
        backend.check(call.principal, needs, work.name);
        return asUnary<Request, Response>(work.bind(of))(request, call, done);
      }, remoraStatus);
  const { steering, recovery } = api;
  const looks = unaryOf(api, LOOKS);
  const acts = unaryOf(api);
  const steers = unaryOf(steering);
  const looksAtSteering = unaryOf(steering, LOOKS);
  const users = new UsersApi(auth);
  return grpcService(admin.AdminService, {
    listNodes: looks(api.listNodes),
    listRanges: looks(api.listRanges),
    listHotRanges: looks(api.listHotRanges),
    checkCluster: unaryOf(api, CHECKS)(api.checkCluster),
    listSettings: looks(api.listSettings),
    setSetting: acts(api.setSetting),
    getUpgrade: looks(api.getUpgrade),
    finalizeUpgrade: acts(api.finalizeUpgrade),
    transferLeader: acts(api.transferLeader),
    compact: acts(api.compact),
    beginRestore: acts(api.beginRestore),
    endRestore: acts(api.endRestore),
    exportUsers: unaryOf(users)(users.exportUsers),
    importUsers: unaryOf(users)(users.importUsers),
    changeRange: steers(steering.changeRange),
    scatter: steers(steering.scatter),
    rebalance: steers(steering.rebalance),
    listOperators: looksAtSteering(steering.listOperators),
    cancelOperator: steers(steering.cancelOperator),
    listSchedulers: looksAtSteering(steering.listSchedulers),
    pauseScheduler: steers(steering.pauseScheduler),
    setNodeDuty: steers(steering.setNodeDuty),
    setLogLevel: acts(api.setLogLevel),
    recoverMajority: unaryOf(recovery, RESCUES)(recovery.recoverMajority),
    why: looksAtSteering(steering.why),
  });
}
