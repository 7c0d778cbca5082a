export type { EngineDeps, EngineOptions } from './engine-deps.ts';
export { ENGINE_FORMAT_VERSION } from './format.ts';
export { type LevelEngineDeps, type LevelEngineOptions, openLevelEngine } from './node/level-engine.ts';
export { StoreDamagedError, type StoreOpenCode, StoreOpenError } from './store-errors.ts';
