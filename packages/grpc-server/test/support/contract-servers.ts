/** The servers that the contract suite runs against. */
import type { ContractServer } from './contract-service.ts';
import { startGrpcJs } from './grpc-js-server.ts';
import { startOwnServer } from './own-server.ts';

interface ContractServerKind {
  readonly name: string;
  start(): Promise<ContractServer>;
}

export const SERVERS: readonly ContractServerKind[] = [
  { name: 'grpc-js', start: startGrpcJs },
  { name: 'GrpcServer', start: () => startOwnServer() },
];
