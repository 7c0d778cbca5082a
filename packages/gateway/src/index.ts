export { AdminApi, type AdminApiDeps } from './admin/admin-api.ts';
export { ClusterCalls, type MasterCaller } from './admin/cluster-calls.ts';
export type { ClusterNode } from './admin/recovery/recovery-api.ts';
export { Admission, type AdmissionOptions, type AdmissionStats } from './admission/admission.ts';
export { AdmittedBackend } from './admission/admitted-backend.ts';
export { AuthAdmin, type AuthAdminDeps } from './authorisation/auth-admin.ts';
export { AuthorisedBackend, type AuthorisedBackendDeps } from './authorisation/authorised-backend.ts';
export * from './backend.ts';
export { BackendDecorator } from './backend-decorator.ts';
export { TIMEOUT_LIMITS, type TimeoutLimits } from './calls.ts';
export { type EtcdApi, type EtcdApiDeps, etcdApi } from './etcd/etcd-api.ts';
export type { EtcdNode } from './etcd/etcd-node.ts';
export { ETCD_LIMITS, type EtcdLimits } from './etcd/limits.ts';
export type { ApiAnswer } from './http/api-types.ts';
export { HttpApi, type HttpApiDeps } from './http/http-api.ts';
export { OPENAPI } from './http/openapi/document.ts';
export { errorAnswer } from './http/statuses.ts';
export { adminService } from './node/grpc/admin-services.ts';
export { authService } from './node/grpc/auth-services.ts';
export { CallGuard, type CallLimits } from './node/grpc/call-guard.ts';
export {
  CLIENT_SERVER_LIMITS,
  ClientServer,
  type ClientServerDeps,
  type ClientServerLimits,
  ListenError,
} from './node/grpc/client-server.ts';
export { etcdServices } from './node/grpc/etcd-services.ts';
export { healthService } from './node/grpc/health-service.ts';
export { type LockServiceDeps, lockService } from './node/grpc/lock-services.ts';
export { type GrpcService, grpcService } from './node/grpc/service.ts';
export { createHttpEndpoint, type HttpEndpoint } from './node/http/http-endpoint.ts';
export { hostName, type RequestHead, requestRefusal } from './node/http/request-guard.ts';
export { createPipeService, type PipeService, type PipeServiceOptions } from './pipe/node/pipe-service.ts';
export { createPipeRegistry, PIPE_LIMITS, servePipe } from './pipe/pipe-server.ts';
export { REQUEST_LIMITS, type RequestLimits } from './request-limits.ts';
export type { BackendInFlight } from './routing/calls/in-flight.ts';
export { type BackendDeps, RangeBackend } from './routing/calls/range-backend.ts';
export { RequestMeter, type RequestSort, sortOfKind } from './routing/calls/request-meter.ts';
export { REQUEST_TIMEOUT_MAX_MS } from './routing/calls/routed-query.ts';
export { WaitSlots } from './routing/calls/wait-slots.ts';
export type { RouteLookupStats } from './routing/routes/route-lookup-stats.ts';
export { type Span, type SpanSink, TracedBackend } from './tracing/traced-backend.ts';
