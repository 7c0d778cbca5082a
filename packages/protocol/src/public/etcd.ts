/**
 * The etcd v3 API as generated code: messages, codecs and service definitions. It stands apart from the package's main
 * entry because it is large.
 */
export { Permission, Permission_Type, Role, User, UserAddOptions } from '../gen/etcd/authpb/auth.ts';
export * from '../gen/etcd/etcdserverpb/rpc.ts';
export { Event, Event_EventType, KeyValue } from '../gen/etcd/mvccpb/kv.ts';
export { ETCD_SCHEMA } from '../gen/etcd/schema.ts';
export * as v3electionpb from '../gen/etcd/v3electionpb/v3election.ts';
export * as v3lockpb from '../gen/etcd/v3lockpb/v3lock.ts';
export * as health from '../gen/grpc/health/v1/health.ts';
export type * from './etcd-schema.ts';
