import { health } from '@remora/protocol/etcd';
import { etcdStatus } from '../../etcd/errors.ts';
import { HealthApi, type HealthApiDeps } from '../../health/health-api.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

/** `grpc.health.v1.Health`, to be added to a gRPC server. */
export function healthService(deps: HealthApiDeps, guard: CallGuard): GrpcService {
  const api = new HealthApi(deps);
  return grpcService(health.HealthService, {
    check: guard.unary(api.check.bind(api), etcdStatus),
    watch: guard.serverStream(api.watch.bind(api), etcdStatus),
  });
}
