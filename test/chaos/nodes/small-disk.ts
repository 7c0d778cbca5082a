/** An in-memory file system for the data of one node, small enough to be filled. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const PIECE = Buffer.alloc(1 << 20);

export class SmallDisk {
  /** The node whose data is on it. */
  readonly node: number;
  readonly dataDir: string;
  readonly #mountPoint: string;

  private constructor(node: number, mountPoint: string) {
    this.node = node;
    this.#mountPoint = mountPoint;
    this.dataDir = join(mountPoint, 'data');
  }

  /** Mounts it, which needs administrator rights. Undefined where that is not allowed. */
  static mount(given: {
    readonly node: number;
    readonly dir: string;
    readonly megabytes: number;
  }): SmallDisk | undefined {
    const mountPoint = join(given.dir, `disk-n${given.node}`);
    mkdirSync(mountPoint);
    try {
      const options = ['-t', 'tmpfs', '-o', `size=${given.megabytes}m`, 'remora-chaos', mountPoint];
      execFileSync('mount', options, { stdio: 'ignore' });
    } catch {
      return undefined;
    }
    const disk = new SmallDisk(given.node, mountPoint);
    mkdirSync(disk.dataDir);
    process.on('exit', () => disk.unmount());
    return disk;
  }

  /** Takes all free space. */
  fill(): void {
    const fd = openSync(this.#ballast, 'a');
    try {
      // Smaller and smaller pieces, until not even a byte fits.
      for (let bytes = PIECE.length; bytes > 0; ) {
        try {
          writeSync(fd, PIECE, 0, bytes);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          bytes >>= 1;
        }
      }
    } finally {
      closeSync(fd);
    }
  }

  /** Takes space until this much is left. */
  fillBut(megabytes: number): void {
    const { bavail, bsize } = statfsSync(this.#mountPoint);
    const fd = openSync(this.#ballast, 'a');
    try {
      for (let left = bavail * bsize - megabytes * PIECE.length; left > 0; left -= PIECE.length) writeSync(fd, PIECE);
    } finally {
      closeSync(fd);
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  /** All data on it is lost. */
  unmount(): void {
    try {
      // Works even if an ending process still has a file open.
      execFileSync('umount', ['-l', this.#mountPoint], { stdio: 'ignore' });
    } catch {
      // It is already unmounted.
    }
  }

  get #ballast(): string {
    return join(this.#mountPoint, 'ballast');
  }
}
