export { addressKey } from './address-key.ts';
export { Crowd } from './crowd.ts';
export * from './frame-port.ts';
export * from './frame-stream.ts';
export * from './input-budget.ts';
export * from './output-budget.ts';
