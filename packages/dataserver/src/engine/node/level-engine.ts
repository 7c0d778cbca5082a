import type { Engine } from '@remora/base';
import type { EngineDeps, EngineOptions } from '../engine-deps.ts';
import { openStore } from '../open-store.ts';
import { OverlayEngine } from '../overlay-engine.ts';
import { LevelStore } from './level-store.ts';

export interface LevelEngineOptions extends EngineOptions {
  /** Bytes of LevelDB's cache of uncompressed blocks; 64 MiB when absent. */
  readonly cacheBytes?: number;
  /** Bytes of LevelDB's own table in memory, of which there may be two; 16 MiB when absent. */
  readonly writeBufferBytes?: number;
}

export interface LevelEngineDeps extends EngineDeps {
  /** The directory of the database; created if it does not exist. No other process may have it open. */
  readonly dir: string;
  readonly options: LevelEngineOptions;
}

/**
 * Opens the engine of a data server on LevelDB. Throws a `StoreOpenError` or a `StoreDamagedError` when the directory
 * cannot be used.
 */
export async function openLevelEngine(deps: LevelEngineDeps): Promise<Engine> {
  const { dir, options } = deps;
  const store = await LevelStore.open(dir, {
    cacheBytes: options.cacheBytes ?? 32 * 1024 * 1024,
    writeBufferBytes: options.writeBufferBytes ?? 8 * 1024 * 1024,
  });
  try {
    return await OverlayEngine.open(await openStore(store, dir, deps.logger), deps);
  } catch (error) {
    await store.close();
    throw error;
  }
}
