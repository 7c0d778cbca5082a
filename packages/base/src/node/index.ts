export * from './metrics.ts';
export * from './pino-logger.ts';
export { countSections, SectionMeter } from './section-metrics.ts';
export * from './tls/index.ts';
