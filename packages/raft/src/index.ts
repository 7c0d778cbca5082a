export * from './core/config.ts';
export * from './core/raft.ts';
export * from './core/types.ts';
export * from './multi/host-api.ts';
export * from './multi/log/index.ts';
export * from './multi/ports.ts';
