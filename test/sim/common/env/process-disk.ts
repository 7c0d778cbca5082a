/**
 * A disk as one process sees it.
 *
 * K1. Answers reach the process through its door: not while it is paused, never after its end.
 * K2. While the disk is stalled nothing is done; pending operations are done in order when it continues.
 * K3. Observers of the medium are notified of every completed sync, before the process is.
 */
import { type Disk, type DiskFile, writeThenSync } from '@remora/base';

type Done = (error: Error | null) => void;
type Door = (fn: () => void) => void;

/** The state of a machine's disk that outlives its processes. */
export class DiskStall {
  #stalled = false;
  #waiting: (() => void)[] = [];

  get stalled(): boolean {
    return this.#stalled;
  }

  begin(): void {
    this.#stalled = true;
  }

  end(): void {
    this.#stalled = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const fn of waiting) fn();
  }

  /** Drops waiting operations: their process is gone. */
  clear(): void {
    this.#waiting = [];
  }

  run(fn: () => void): void {
    if (this.#stalled) this.#waiting.push(fn);
    else fn();
  }
}

export interface ProcessDiskOptions {
  readonly disk: Disk;
  readonly door: Door;
  readonly stall: DiskStall;
  /** A file was synced, up to what had been written by then. */
  readonly onSynced: (path: string) => void;
  /** A directory was synced. */
  readonly onDirSynced: () => void;
}

export class ProcessDisk implements Disk {
  readonly #given: ProcessDiskOptions;

  constructor(given: ProcessDiskOptions) {
    this.#given = given;
  }

  list(dir: string): Promise<readonly string[]> {
    return this.#through(() => this.#given.disk.list(dir));
  }

  makeDir(dir: string): Promise<void> {
    return this.#through(() => this.#given.disk.makeDir(dir));
  }

  async open(path: string, options: { readonly create: boolean }): Promise<DiskFile> {
    const file = await this.#through(() => this.#given.disk.open(path, options));
    return this.#file(path, file);
  }

  rename(change: { readonly from: string; readonly to: string }): Promise<void> {
    return this.#through(() => this.#given.disk.rename(change));
  }

  remove(path: string): Promise<void> {
    return this.#through(() => this.#given.disk.remove(path));
  }

  syncDir(dir: string): Promise<void> {
    return this.#through(async () => {
      await this.#given.disk.syncDir(dir);
      this.#given.onDirSynced();
    });
  }

  #file(path: string, file: DiskFile): DiskFile {
    const { stall, onSynced } = this.#given;
    const seen: DiskFile = {
      size: () => this.#through(() => file.size()),
      read: (position, length) => this.#through(() => file.read(position, length)),
      write: (position, chunks, done) => stall.run(() => file.write(position, chunks, this.#gated(done))),
      sync: (done) => {
        const gated = this.#gated(done);
        stall.run(() =>
          file.sync((error) => {
            if (error === null) onSynced(path); // K3
            gated(error);
          }),
        );
      },
      preallocate: (size) => this.#through(() => file.preallocate(size)),
      truncate: (size) => this.#through(() => file.truncate(size)),
      writeSynced: (position, chunks, done) => writeThenSync(seen, position, chunks, done),
      close: () => this.#through(() => file.close()),
    };
    return seen;
  }

  #gated(done: Done): Done {
    return (error) => this.#given.door(() => done(error));
  }

  #through<T>(work: () => Promise<T>): Promise<T> {
    const { door, stall } = this.#given;
    return new Promise((resolve, reject) => {
      stall.run(() => {
        work().then(
          (value) => door(() => resolve(value)),
          (error: unknown) => door(() => reject(error)),
        );
      });
    });
  }
}
