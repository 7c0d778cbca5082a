import type { Bytes, Disk, DiskFile } from '@remora/base';

/** Suffix of the name of an incomplete file (F3). */
const UNFINISHED = '.part';
/** The file is synced after this many bytes, so that the last sync does not block the disk for long. */
const SYNC_BYTES = 8 * 1024 * 1024;
const READ_BYTES = 256 * 1024;

/**
 * The files of incoming snapshots, in one directory of the node.
 *
 * F1. A file belongs to one transfer and is named once per life of the process; `discardExcept` removes everything
 *     older from the directory before the first file is made.
 * F2. Once `commit` resolves, the file is durable, name and contents.
 * F3. Until then it has another name, and nothing depends on a file with such a name. So a node whose disk was filled
 *     by a snapshot frees that room before it opens anything that needs some (`discardUnfinished`).
 */
export class StagedFiles {
  readonly #disk: Disk;
  readonly #dir: string;
  #next = 1;

  constructor(disk: Disk, dir: string) {
    this.#disk = disk;
    this.#dir = dir;
  }

  /** Removes the files of earlier lives of the process, except the named files (F1). */
  async discardExcept(kept: ReadonlySet<string>): Promise<readonly string[]> {
    await this.#disk.makeDir(this.#dir);
    await this.#disk.syncDir('');
    const stale = (await this.#disk.list(this.#dir)).filter((name) => !kept.has(name));
    for (const name of stale) await this.#disk.remove(this.#path(name));
    for (const name of kept) this.#next = Math.max(this.#next, numberOf(name) + 1);
    return stale;
  }

  async create(rangeId: number): Promise<StagedFile> {
    const name = `${rangeId}-${this.#next++}.snapshot`;
    const path = this.#path(name);
    const file = await this.#disk.open(path + UNFINISHED, { create: true });
    try {
      await file.truncate(0); // a removal that was not durable may have come undone
    } catch (error) {
      await file.close();
      throw error;
    }
    return new StagedFile(name, file, async () => {
      await this.#disk.rename({ from: path + UNFINISHED, to: path });
      await this.#disk.syncDir(this.#dir);
    });
  }

  async has(name: string): Promise<boolean> {
    return (await this.#disk.list(this.#dir)).includes(name);
  }

  /** The bytes of a file in pieces of bounded size. */
  async *read(name: string): AsyncGenerator<Bytes> {
    const file = await this.#disk.open(this.#path(name), { create: false });
    try {
      for (let at = 0; ; ) {
        const piece = await file.read(at, READ_BYTES);
        if (piece.length === 0) return;
        yield piece;
        at += piece.length;
      }
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await this.#disk.remove(this.#path(name));
  }

  #path(name: string): string {
    return `${this.#dir}/${name}`;
  }
}

/** F3. Called before any other part of a node is opened: its disk may be full. */
export async function discardUnfinished(disk: Disk, dir: string): Promise<void> {
  for (const name of await disk.list(dir)) if (name.endsWith(UNFINISHED)) await disk.remove(`${dir}/${name}`);
}

function numberOf(name: string): number {
  const number = Number(/-(\d+)\.snapshot$/.exec(name)?.[1]);
  return Number.isSafeInteger(number) ? number : 0;
}

/** A file that is being written from beginning to end. One call at a time. */
export class StagedFile {
  readonly name: string;
  readonly #file: DiskFile;
  /** Gives the file its final name, durably. */
  readonly #named: () => Promise<void>;
  #bytes = 0;
  #unsynced = 0;
  #isNamed = false;

  constructor(name: string, file: DiskFile, named: () => Promise<void>) {
    this.name = name;
    this.#file = file;
    this.#named = named;
  }

  /** The current name (F3). */
  get nameNow(): string {
    return this.#isNamed ? this.name : this.name + UNFINISHED;
  }

  get bytes(): number {
    return this.#bytes;
  }

  async append(bytes: Bytes): Promise<void> {
    await settled((done) => this.#file.write(this.#bytes, [bytes], done));
    this.#bytes += bytes.length;
    this.#unsynced += bytes.length;
    if (this.#unsynced >= SYNC_BYTES) await this.#sync();
  }

  /** F2. */
  async commit(): Promise<void> {
    await this.#sync();
    await this.#file.close();
    await this.#named();
    this.#isNamed = true;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #sync(): Promise<void> {
    await settled((done) => this.#file.sync(done));
    this.#unsynced = 0;
  }
}

function settled(call: (done: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => call((error) => (error === null ? resolve() : reject(error))));
}
