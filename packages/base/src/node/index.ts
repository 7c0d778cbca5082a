export * from './metrics.ts';
export * from './pino-logger.ts';
