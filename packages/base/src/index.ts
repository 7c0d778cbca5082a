export * from './assert.ts';
export * from './bytes.ts';
export * from './clock.ts';
export * from './disk.ts';
export * from './engine.ts';
export * from './errors.ts';
export * from './logger.ts';
export * from './random.ts';
