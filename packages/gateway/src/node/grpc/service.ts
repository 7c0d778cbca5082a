import type { Implementation, ServiceDefinition } from '@remora/grpc-server';

/** A service and what implements it, ready for `GrpcServer.addService`. */
export interface GrpcService {
  readonly definition: ServiceDefinition;
  readonly implementation: Implementation<ServiceDefinition>;
}

/** Makes a service; the types of the generated definition check that no method is missing. */
export function grpcService<Definition extends ServiceDefinition>(
  definition: Definition,
  implementation: Implementation<Definition>,
): GrpcService {
  return { definition, implementation: implementation as Implementation<ServiceDefinition> };
}
