import {
  Server,
  ServerCredentials,
  type ServerOptions,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';

export interface PeerService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

export interface PeerServer {
  readonly port: number;
  stop(): void;
}

/** Listens for other nodes: one port carries the Raft streams and the calls between roles. */
export function startPeerServer(given: {
  readonly host: string;
  readonly port: number;
  readonly services: readonly PeerService[];
  readonly options?: ServerOptions;
}): Promise<PeerServer> {
  const server = new Server(given.options);
  for (const { definition, implementation } of given.services) server.addService(definition, implementation);
  const address = `${given.host.includes(':') ? `[${given.host}]` : given.host}:${given.port}`;
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve({ port, stop: () => server.forceShutdown() });
      else reject(new Error(`cannot listen for peers on ${address}: ${error.message}`, { cause: error }));
    });
  });
}
