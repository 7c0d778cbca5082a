export * from './tls-acceptor.ts';
export * from './tls-connector.ts';
export * from './tls-files.ts';
export * from './tls-identity.ts';
export * from './trust.ts';
