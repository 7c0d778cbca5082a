import type { PlainNeed } from '@remora/auth';
import { admin } from '@remora/protocol/remora';
import { AdminApi, type AdminApiDeps, asUnary } from '../../admin/admin-api.ts';
import { UsersApi } from '../../admin/users-api.ts';
import type { AuthAdmin } from '../../authorisation/auth-admin.ts';
import type { CallInfo } from '../../calls.ts';
import { remoraStatus } from '../../etcd/errors.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

const ADMINISTERS: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster' }];
/** To see what is wrong, and to recover, when the masters are lost. */
const RESCUES: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster', withoutMasters: true }];

/** `remora.v1.Admin`, to be added to a gRPC server. */
export function adminService(deps: AdminApiDeps & { readonly auth: AuthAdmin }, guard: CallGuard): GrpcService {
  const api = new AdminApi(deps);
  // Every method is the root's, before anything is done or looked up.
  const unaryOf =
    (of: object, needs = ADMINISTERS) =>
    <Request, Response>(work: (request: Request, call: CallInfo) => Promise<Response>) =>
      guard.unary<Request, Response>((request, call, done) => {
        deps.backend.check(call.principal, needs);
        return asUnary<Request, Response>(work.bind(of))(request, call, done);
      }, remoraStatus);
  const unary = unaryOf(api);
  const { steering, recovery } = api;
  const steers = unaryOf(steering);
  const users = new UsersApi(deps.auth);
  return grpcService(admin.AdminService, {
    listNodes: unary(api.listNodes),
    listRanges: unary(api.listRanges),
    listHotRanges: unary(api.listHotRanges),
    checkCluster: unaryOf(api, RESCUES)(api.checkCluster),
    listSettings: unary(api.listSettings),
    setSetting: unary(api.setSetting),
    transferLeader: unary(api.transferLeader),
    compact: unary(api.compact),
    beginRestore: unary(api.beginRestore),
    exportUsers: unaryOf(users)(users.exportUsers),
    importUsers: unaryOf(users)(users.importUsers),
    changeRange: steers(steering.changeRange),
    scatter: steers(steering.scatter),
    rebalance: steers(steering.rebalance),
    listOperators: steers(steering.listOperators),
    cancelOperator: steers(steering.cancelOperator),
    listSchedulers: steers(steering.listSchedulers),
    pauseScheduler: steers(steering.pauseScheduler),
    setNodeDuty: steers(steering.setNodeDuty),
    recoverMajority: unaryOf(recovery, RESCUES)(recovery.recoverMajority),
    why: steers(steering.why),
  });
}
