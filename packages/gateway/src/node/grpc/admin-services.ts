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
const LOOKS: readonly PlainNeed[] = [{ type: 'root', what: 'look at the cluster', looks: true }];
/** To see what is wrong, and to recover, when the masters are lost. */
const RESCUES: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster', withoutMasters: true }];
const CHECKS: readonly PlainNeed[] = [{ type: 'root', what: 'look at the cluster', withoutMasters: true, looks: true }];

/** `remora.v1.Admin`, to be added to a gRPC server. */
export function adminService(deps: AdminApiDeps & { readonly auth: AuthAdmin }, guard: CallGuard): GrpcService {
  const api = new AdminApi(deps);
  // Every method is the root's, before anything is done or looked up.
  const unaryOf =
    (of: object, needs = ADMINISTERS) =>
    <Request, Response>(work: (request: Request, call: CallInfo) => Promise<Response>) =>
      guard.unary<Request, Response>((request, call, done) => {
        deps.backend.check(call.principal, needs, work.name);
        return asUnary<Request, Response>(work.bind(of))(request, call, done);
      }, remoraStatus);
  const { steering, recovery } = api;
  const looks = unaryOf(api, LOOKS);
  const acts = unaryOf(api);
  const steers = unaryOf(steering);
  const looksAtSteering = unaryOf(steering, LOOKS);
  const users = new UsersApi(deps.auth);
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
