export * from './exit-codes.ts';
export * from './node/files/data-dir.ts';
export * from './node/ports/http-server.ts';
export * from './node/running-node.ts';
export * from './node-options.ts';
