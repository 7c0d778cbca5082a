export * from './exit-codes.ts';
export * from './node/data-dir.ts';
export * from './node/http-server.ts';
export * from './node/running-node.ts';
export * from './node-options.ts';
