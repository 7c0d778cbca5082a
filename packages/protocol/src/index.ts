export * from './internal/command.ts';
export * from './internal/descriptor.ts';
export * from './internal/kv-types.ts';
export * from './internal/master-api.ts';
export * from './internal/range-api.ts';
export * from './rpc/rpc.ts';
