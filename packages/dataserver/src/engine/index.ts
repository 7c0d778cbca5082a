export { MemoryEngine, type MemoryEngineDeps } from './memory-engine.ts';
export { type LevelEngineDeps, type LevelEngineOptions, openLevelEngine } from './node/level-engine.ts';
export { ENGINE_FORMAT_VERSION, type StoreOpenCode, StoreOpenError } from './node/level-store.ts';
export type { EngineDeps, EngineOptions } from './overlay-engine.ts';
