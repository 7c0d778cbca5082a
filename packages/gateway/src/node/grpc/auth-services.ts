import { auth } from '@remora/protocol/remora';
import { asUnary } from '../../admin/admin-api.ts';
import type { AuthAdmin } from '../../authorisation/auth-admin.ts';
import { AuthApi } from '../../authorisation/auth-api.ts';
import type { CallInfo } from '../../calls.ts';
import { remoraStatus } from '../../etcd/errors.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

/** `remora.v1.Auth`, to be added to a gRPC server. */
export function authService(admin: AuthAdmin, guard: CallGuard): GrpcService {
  const api = new AuthApi(admin);
  const unary = <Request, Response>(work: (request: Request, call: CallInfo) => Promise<Response>) =>
    guard.unary<Request, Response>(asUnary<Request, Response>(work.bind(api)), remoraStatus);
  return grpcService(auth.AuthService, {
    whoAmI: unary(api.whoAmI),
    explain: unary(api.explain),
    getStatus: unary(api.getStatus),
    listUsers: unary(api.listUsers),
    getUser: unary(api.getUser),
    listRoles: unary(api.listRoles),
    getRole: unary(api.getRole),
    change: unary(api.change),
  });
}
