export * from './frame-port.ts';
export * from './frame-stream.ts';
