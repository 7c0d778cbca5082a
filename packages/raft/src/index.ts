export * from './core/types.ts';
export * from './multi/host-api.ts';
export * from './multi/ports.ts';
