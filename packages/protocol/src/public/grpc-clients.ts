/**
 * Clients of both APIs by gRPC's own library, for tests and benchmarks. They stand apart because nothing that is
 * published contains that library.
 */
export * from '../gen/etcd/etcdserverpb/rpc.clients.ts';
export { ElectionClient } from '../gen/etcd/v3electionpb/v3election.clients.ts';
export { LockClient as EtcdLockClient } from '../gen/etcd/v3lockpb/v3lock.clients.ts';
export { LockClient as RemoraLockClient } from '../gen/remora/v1/lock.clients.ts';
