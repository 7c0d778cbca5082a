import type { StreamMethod, UnaryMethod } from '@remora/grpc-server';
import * as pb from '@remora/protocol/etcd';
import type { Duplex, EtcdApi, ServerStream, Unary, Waiting } from '../../etcd/etcd-api.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

/** The etcd v3 API, to be added to a gRPC server. */
export function etcdServices(api: EtcdApi, guard: CallGuard): readonly GrpcService[] {
  return [
    grpcService(pb.KVService, guarded(api.kv, guard)),
    grpcService(pb.WatchService, guarded(api.watch, guard)),
    grpcService(pb.LeaseService, guarded(api.lease, guard)),
    grpcService(pb.ClusterService, guarded(api.cluster, guard)),
    grpcService(pb.MaintenanceService, guarded(api.maintenance, guard)),
    grpcService(pb.AuthService, guarded(api.auth, guard)),
    grpcService(pb.v3lockpb.LockService, guarded(api.lock, guard)),
    grpcService(pb.v3electionpb.ElectionService, guarded(api.election, guard)),
  ];
}

type Method = Unary<never, unknown> | Waiting<never, unknown> | Duplex<never, unknown> | ServerStream<never, unknown>;

/** What runs a method of the API in the gRPC server. */
type Guarded<M> =
  M extends Unary<infer Q, infer A>
    ? UnaryMethod<Q, A>
    : M extends Waiting<infer Q, infer A>
      ? UnaryMethod<Q, A>
      : M extends Duplex<infer Q, infer A>
        ? StreamMethod<Q, A>
        : M extends ServerStream<infer Q, infer A>
          ? StreamMethod<Q, A>
          : never;

function guarded<Methods extends object>(
  methods: Methods,
  guard: CallGuard,
): { readonly [Name in keyof Methods]: Guarded<Methods[Name]> } {
  const entries = Object.entries(methods).map(([name, method]) => [name, guardedOne(method as Method, guard)]);
  return Object.fromEntries(entries) as { readonly [Name in keyof Methods]: Guarded<Methods[Name]> };
}

function guardedOne(method: Method, guard: CallGuard): unknown {
  switch (method.kind) {
    case 'unary':
      return guard.unary(method.handle, method.statusOf, method.forAll === true);
    case 'waiting':
      return guard.waiting(method.handle, method.statusOf);
    case 'duplex':
      return guard.stream(method.open, method.statusOf, method.answersRefusals === true);
    case 'serverStream':
      return guard.serverStream((sink, _resume, caller) => method.open(sink, caller), method.statusOf);
  }
}
