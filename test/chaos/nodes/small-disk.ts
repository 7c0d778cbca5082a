/** A file system in memory, small enough to be filled, for the data of one node. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const PIECE = Buffer.alloc(1 << 20);

export class SmallDisk {
  /** Whose data is on it. */
  readonly node: number;
  readonly dataDir: string;
  readonly #mountPoint: string;

  private constructor(node: number, mountPoint: string) {
    this.node = node;
    this.#mountPoint = mountPoint;
    this.dataDir = join(mountPoint, 'data');
  }

  /** Mounts it, which takes an administrator's rights; undefined where that is not allowed. */
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

  /** Takes all the room that is left. */
  fill(): void {
    const fd = openSync(this.#ballast, 'a');
    try {
      // Smaller and smaller pieces, until not a byte fits.
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

  /** Takes room until so much is left. */
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

  /** Whatever was on it is gone. */
  unmount(): void {
    try {
      // Even if a process that is just ending still has a file open.
      execFileSync('umount', ['-l', this.#mountPoint], { stdio: 'ignore' });
    } catch {
      // It is unmounted already.
    }
  }

  get #ballast(): string {
    return join(this.#mountPoint, 'ballast');
  }
}
