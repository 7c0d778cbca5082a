export { addressKey } from './address-key.ts';
export * from './connector.ts';
export { Crowd } from './crowd.ts';
export * from './frame-port.ts';
export * from './frame-stream.ts';
export * from './input-budget.ts';
export * from './output-budget.ts';
export type { SecurePort } from './secure-port.ts';
export { verifiedName } from './verified-name.ts';
