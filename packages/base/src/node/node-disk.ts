import * as fs from 'node:fs';
import { join, normalize, sep } from 'node:path';
import { assert } from '../assert.ts';
import { type Disk, type DiskFile, writeThenSync } from '../disk.ts';
import { OWN_DIR_MODE, OWN_FILE_MODE } from './file-modes.ts';
import { SyncPlace } from './sync-place.ts';

export interface NodeDiskOptions {
  /**
   * Write and sync on the event loop (true) or in the thread pool (false). Absent, it follows the device (`SyncPlace`).
   * Measured with 4 KiB per sync on an NVMe disk and two cores: in place 100 µs (60 µs of CPU), in the pool
   * 160 µs (110 µs of CPU); with three nodes on those cores CPU is what runs out first.
   */
  readonly syncInPlace?: boolean;
  /** Called after each sync, and each synced write, with the time that it took. */
  readonly onSynced?: (tookMs: number) => void;
}

/**
 * Only on Linux does a write to a file that was opened with O_DSYNC reach the medium, as after fdatasync (macOS: its
 * cache).
 */
const HAS_SYNCED_WRITES = process.platform === 'linux';

const ZEROS = Buffer.alloc(1 << 20);

/** Files under `root` (an absolute path), through Node's `fs`. */
export function nodeDisk(root: string, options: NodeDiskOptions = {}): Disk {
  function resolve(path: string): string {
    const inside = normalize(path);
    assert(inside !== '..' && !inside.startsWith(`..${sep}`), `a path may not leave the disk's root: ${path}`);
    return join(root, inside);
  }

  return {
    async list(dir) {
      try {
        const found = await fs.promises.readdir(resolve(dir), { withFileTypes: true });
        return found
          .filter((item) => item.isFile())
          .map((item) => item.name)
          .sort();
      } catch (error) {
        if (isNotFound(error)) return [];
        throw error;
      }
    },
    async makeDir(dir) {
      await fs.promises.mkdir(resolve(dir), { recursive: true, mode: OWN_DIR_MODE });
    },
    async open(path, { create }) {
      const flags = fs.constants.O_RDWR | (create ? fs.constants.O_CREAT : 0);
      return new NodeFile(await fs.promises.open(resolve(path), flags, OWN_FILE_MODE), options);
    },
    rename: ({ from, to }) => fs.promises.rename(resolve(from), resolve(to)),
    remove: (path) => fs.promises.unlink(resolve(path)),
    async syncDir(dir) {
      const handle = await fs.promises.open(resolve(dir), 'r');
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
  };
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

class NodeFile implements DiskFile {
  readonly #handle: fs.promises.FileHandle;
  readonly #fd: number;
  /** Undefined: decided by the duration of recent syncs in place. */
  readonly #inPlace: boolean | undefined;
  readonly #onSynced: ((tookMs: number) => void) | undefined;
  readonly #place = new SyncPlace();
  /** The same file, opened so that each write is synced when it returns. Undefined before its first use. */
  #syncedFd: number | undefined;

  constructor(handle: fs.promises.FileHandle, { syncInPlace, onSynced }: NodeDiskOptions) {
    this.#handle = handle;
    this.#fd = handle.fd;
    this.#inPlace = syncInPlace;
    this.#onSynced = onSynced;
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  async read(position: number, length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#handle.read(buffer, filled, length - filled, position + filled);
      if (bytesRead === 0) return buffer.subarray(0, filled);
      filled += bytesRead;
    }
    return buffer;
  }

  write(position: number, chunks: readonly Uint8Array[], done: (error: Error | null) => void): void {
    if (!this.#isInPlace()) {
      writeAll(this.#fd, position, chunks, done);
      return;
    }
    const failure = attempt(() => writeAllSync(this.#fd, position, chunks));
    queueMicrotask(() => done(failure));
  }

  sync(done: (error: Error | null) => void): void {
    if (!this.#isInPlace()) {
      this.#place.pooled();
      fs.fdatasync(this.#fd, this.#timed(done));
      return;
    }
    // In the next turn of the loop. By then the messages of this turn are on their way, and others work on them. And a
    // caller that writes again in its callback does not block everything else.
    setImmediate(() => {
      const startMs = performance.now();
      const failure = attempt(() => fs.fdatasyncSync(this.#fd));
      const tookMs = performance.now() - startMs;
      this.#place.measured(tookMs);
      this.#onSynced?.(tookMs);
      done(failure);
    });
  }

  writeSynced(position: number, chunks: readonly Uint8Array[], done: (error: Error | null) => void): void {
    if (this.#isInPlace() || !HAS_SYNCED_WRITES) {
      writeThenSync(this, position, chunks, done);
      return;
    }
    this.#place.pooled();
    try {
      // Opened by its descriptor: this is the file, whatever its name is by now.
      this.#syncedFd ??= fs.openSync(`/proc/self/fd/${this.#fd}`, fs.constants.O_WRONLY | fs.constants.O_DSYNC);
    } catch {
      writeThenSync(this, position, chunks, done); // no /proc, or no descriptor left
      return;
    }
    writeAll(this.#syncedFd, position, chunks, this.#timed(done));
  }

  /** Reports the time from now on until `done` is called. */
  #timed(done: (error: Error | null) => void): (error: Error | null) => void {
    const onSynced = this.#onSynced;
    if (onSynced === undefined) return done;
    const startMs = performance.now();
    return (error) => {
      onSynced(performance.now() - startMs);
      done(error);
    };
  }

  #isInPlace(): boolean {
    return this.#inPlace ?? this.#place.inPlace;
  }

  /**
   * Writes zeros where the file ends short of `size`: unlike reserved extents, written blocks need no journal entry at
   * the next sync.
   */
  async preallocate(size: number): Promise<void> {
    for (let at = await this.size(); at < size; ) {
      const piece = ZEROS.subarray(0, Math.min(ZEROS.length, size - at));
      const { bytesWritten } = await this.#handle.write(piece, 0, piece.length, at);
      at += bytesWritten;
    }
  }

  truncate(size: number): Promise<void> {
    return this.#handle.truncate(size);
  }

  async close(): Promise<void> {
    if (this.#syncedFd !== undefined) fs.closeSync(this.#syncedFd);
    this.#syncedFd = undefined;
    await this.#handle.close();
  }
}

function attempt(work: () => void): Error | null {
  try {
    work();
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function writeAll(
  fd: number,
  position: number,
  chunks: readonly Uint8Array[],
  done: (error: Error | null) => void,
): void {
  fs.writev(fd, chunks, position, (error, written) => {
    if (error !== null) return done(error);
    const rest = withoutFirst(chunks, written);
    if (rest.length === 0) return done(null);
    if (written === 0) return done(new Error('the file system accepted no bytes of a write'));
    writeAll(fd, position + written, rest, done);
  });
}

function writeAllSync(fd: number, position: number, chunks: readonly Uint8Array[]): void {
  let at = position;
  for (let rest = chunks; rest.length > 0; ) {
    const written = fs.writevSync(fd, rest, at);
    if (written === 0) throw new Error('the file system accepted no bytes of a write');
    at += written;
    rest = withoutFirst(rest, written);
  }
}

/** The rest of `chunks` after their first `count` bytes: a write may stop early. */
function withoutFirst(chunks: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  let left = count;
  for (let i = 0; i < chunks.length; i++) {
    const chunk = chunks[i];
    if (chunk === undefined) break;
    if (left < chunk.length) return [chunk.subarray(left), ...chunks.slice(i + 1)];
    left -= chunk.length;
  }
  return [];
}
