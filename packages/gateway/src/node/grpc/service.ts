import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';

/** A service and what implements it, ready for `Server.addService`. */
export interface GrpcService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** Makes a service; the generated `…Server` type checks that no method is missing. */
export function grpcService<Implementation extends UntypedServiceImplementation>(
  definition: ServiceDefinition,
  implementation: Omit<Implementation, keyof UntypedServiceImplementation> & {
    readonly [Method in keyof Implementation as string extends Method ? never : Method]: Implementation[Method];
  },
): GrpcService {
  return { definition, implementation: implementation as UntypedServiceImplementation };
}
