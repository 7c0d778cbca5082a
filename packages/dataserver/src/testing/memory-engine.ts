import type {
  Bytes,
  Clock,
  Engine,
  EngineView,
  Link,
  Logger,
  Rebuild,
  ResidentValue,
  Row,
  ScanOptions,
  Span,
} from '@remora/base';
import type { EngineDeps, EngineOptions } from '../engine/engine-deps.ts';
import { OverlayEngine } from '../engine/overlay-engine.ts';
import { MemoryMedium, MemoryStore } from './memory-store.ts';

export interface MemoryEngineDeps {
  readonly options: EngineOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly logDurable?: () => Promise<void>;
  readonly onFailure: (error: Error) => void;
}

/**
 * The engine of tests and of the simulator: the same overlay as in production, over a store in memory that survives
 * `crash`. It uses no disk, and takes no time except turns of the event loop.
 */
export class MemoryEngine implements Engine {
  readonly #deps: EngineDeps;
  readonly #medium: MemoryMedium;
  #store: MemoryStore;
  #engine: OverlayEngine;

  /** `medium`: what an earlier engine has left. */
  constructor(deps: MemoryEngineDeps, medium = new MemoryMedium()) {
    this.#deps = deps;
    this.#medium = medium;
    [this.#store, this.#engine] = this.#start();
  }

  /** Loses everything since the last checkpoint, and every hook, like a restart of the process. */
  crash(): void {
    this.#store.crash();
    [this.#store, this.#engine] = this.#start();
  }

  #start(): [MemoryStore, OverlayEngine] {
    const store = new MemoryStore(this.#medium);
    return [store, OverlayEngine.openLoaded(store, this.#deps, this.#medium.all())];
  }

  get(key: Bytes): Bytes | undefined {
    return this.#engine.get(key);
  }

  put(key: Bytes, value: Bytes): void {
    this.#engine.put(key, value);
  }

  delete(key: Bytes): void {
    this.#engine.delete(key);
  }

  getResident(name: string): ResidentValue | undefined {
    return this.#engine.getResident(name);
  }

  putResident(name: string, value: ResidentValue): void {
    this.#engine.putResident(name, value);
  }

  deleteResident(name: string): void {
    this.#engine.deleteResident(name);
  }

  link(link: Link, isNew: boolean): void {
    this.#engine.link(link, isNew);
  }

  unlink(link: Link): void {
    this.#engine.unlink(link);
  }

  isLinked(link: Link): boolean {
    return this.#engine.isLinked(link);
  }

  scanResident(options: ScanOptions): readonly Row[] {
    return this.#engine.scanResident(options);
  }

  scan(options: ScanOptions): Promise<readonly Row[]> {
    return this.#engine.scan(options);
  }

  view(): EngineView {
    return this.#engine.view();
  }

  clearSpan(span: Span): Promise<void> {
    return this.#engine.clearSpan(span);
  }

  rebuild(plan: Rebuild): Promise<void> {
    return this.#engine.rebuild(plan);
  }

  onCheckpoint(hook: () => void): () => void {
    return this.#engine.onCheckpoint(hook);
  }

  checkpoint(): Promise<void> {
    return this.#engine.checkpoint();
  }

  pending(): { readonly bytes: number; readonly keys: number } {
    return this.#engine.pending();
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}
