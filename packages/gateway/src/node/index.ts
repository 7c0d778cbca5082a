export { createPipeService, type PipeService, type PipeServiceOptions } from '../pipe/node/grpc-pipe.ts';
export * from './grpc/client-server.ts';
export { type EtcdServicesDeps, etcdServices } from './grpc/etcd-services.ts';
