/**
 * A node's disk and engine that can be stopped dead between any two of their steps. For tests.
 *
 * Steps are counted: the beginning and the end of every call of the disk and of every batch of the engine's store.
 */
import {
  type Disk,
  type DiskFile,
  type Engine,
  nodeClock,
  SeededRandom,
  silentLogger,
  writeThenSync,
} from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { OverlayEngine } from '../../src/engine/overlay-engine.ts';
import type { StoreBatch } from '../../src/engine/store.ts';
import { RESIDENT_SPANS } from '../../src/state/keys.ts';
import { MemoryMedium, MemoryStore } from '../../src/testing/memory-store.ts';

export class CrashWorld {
  readonly medium = new MemoryMedium();
  readonly sim: SimDisk;
  /** Batches that fail, from the first one on that is written when this is zero. */
  batchesUntilFull = Number.POSITIVE_INFINITY;
  readonly failures: Error[] = [];
  /** Most bytes of one batch, one write or one read of a file. */
  bytesAtOnceMax = 0;
  steps = 0;
  #crashAt = Number.POSITIVE_INFINITY;
  #life = 0;
  #store: MemoryStore | undefined;
  #onCrash: () => void = () => {};

  constructor(seed: number) {
    this.sim = new SimDisk({ random: new SeededRandom(seed) });
  }

  /** What a process that starts now has: `crashed` resolves when it dies, at its `step`th step. */
  async boot(
    crashAtStep = Number.POSITIVE_INFINITY,
  ): Promise<{ readonly engine: Engine; readonly disk: Disk; readonly crashed: Promise<'crashed'> }> {
    this.#life++;
    this.steps = 0;
    this.#crashAt = crashAtStep;
    const crashed = new Promise<'crashed'>((resolve) => {
      this.#onCrash = () => resolve('crashed');
    });
    const store = new MemoryStore(this.medium);
    this.#store = store;
    const makeBatch = store.batch.bind(store);
    store.batch = () => this.#batch(makeBatch());
    const engine = await OverlayEngine.open(store, {
      options: { resident: RESIDENT_SPANS },
      clock: nodeClock(),
      logger: silentLogger,
      onFailure: (error) => void this.failures.push(error),
    });
    return { engine, disk: this.#disk(this.sim.mount()), crashed };
  }

  /** The machine loses power. */
  crash(): void {
    this.#life++;
    this.#store?.crash();
    this.sim.crash();
    this.#onCrash();
  }

  async #step(): Promise<void> {
    this.steps++;
    if (this.steps === this.#crashAt) this.crash();
  }

  async #around<T>(work: () => Promise<T>): Promise<T> {
    const life = this.#life;
    const alive = async (): Promise<void> => {
      if (life === this.#life) await this.#step();
      if (life !== this.#life) await new Promise(() => {});
    };
    await alive();
    const result = await work();
    await alive();
    return result;
  }

  #saw(bytes: number): void {
    this.bytesAtOnceMax = Math.max(this.bytesAtOnceMax, bytes);
  }

  #batch(inner: StoreBatch): StoreBatch {
    let bytes = 0;
    return {
      put: (key, value) => {
        bytes += key.length + value.length;
        inner.put(key, value);
      },
      delete: (key) => inner.delete(key),
      write: () =>
        this.#around(async () => {
          this.#saw(bytes);
          if (--this.batchesUntilFull < 0) throw new Error('IO error: No space left on device');
          await inner.write();
        }),
    };
  }

  #disk(disk: Disk): Disk {
    return {
      list: (dir) => this.#around(() => disk.list(dir)),
      makeDir: (dir) => this.#around(() => disk.makeDir(dir)),
      open: (path, options) => this.#around(async () => this.#file(await disk.open(path, options))),
      rename: (change) => this.#around(() => disk.rename(change)),
      remove: (path) => this.#around(() => disk.remove(path)),
      syncDir: (dir) => this.#around(() => disk.syncDir(dir)),
    };
  }

  #file(file: DiskFile): DiskFile {
    const calling = (
      call: (done: (error: Error | null) => void) => void,
      done: (error: Error | null) => void,
    ): void => {
      const called = (): Promise<Error | null> => new Promise((resolve) => call(resolve));
      void this.#around(called).then(done);
    };
    const seen: DiskFile = {
      size: () => this.#around(() => file.size()),
      read: (position, length) =>
        this.#around(async () => {
          const bytes = await file.read(position, length);
          this.#saw(bytes.length);
          return bytes;
        }),
      write: (position, chunks, done) => {
        this.#saw(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
        calling((called) => file.write(position, chunks, called), done);
      },
      sync: (done) => calling((called) => file.sync(called), done),
      preallocate: (size) => this.#around(() => file.preallocate(size)),
      truncate: (size) => this.#around(() => file.truncate(size)),
      writeSynced: (position, chunks, done) => writeThenSync(seen, position, chunks, done),
      close: () => this.#around(() => file.close()),
    };
    return seen;
  }
}
