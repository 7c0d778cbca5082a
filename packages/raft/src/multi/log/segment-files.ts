/**
 * The files of the log: prepared ahead of need, and reused when their records are dead.
 *
 * S1. A file has its new name durably before anything is written to it; its old name is gone durably before that.
 * S2. A spare keeps the generation of its last use in its name, so that generations are never given twice.
 */
import type { Disk, DiskFile } from '@remora/base';

/** Files kept for reuse; more are deleted. */
const SPARES_MAX = 2;

export interface Segment {
  readonly generation: number;
  readonly path: string;
  readonly file: DiskFile;
  /** The offset of the next frame; 0 before the header is written. */
  position: number;
  /** Reads in progress: the file must not be removed. */
  readers: number;
}

export interface SegmentFileName {
  readonly name: string;
  readonly generation: number;
  readonly kind: 'segment' | 'spare';
}

/** The log's files in `dir`, oldest generation first. */
export async function listSegmentFiles(disk: Disk, dir: string): Promise<SegmentFileName[]> {
  const found: SegmentFileName[] = [];
  for (const name of await disk.list(dir)) {
    const match = /^(\d{15})\.(log|spare)$/.exec(name);
    if (match === null) continue;
    found.push({ name, generation: Number(match[1]), kind: match[2] === 'log' ? 'segment' : 'spare' });
  }
  return found.sort((a, b) => a.generation - b.generation);
}

export function segmentPath(dir: string, generation: number): string {
  return `${dir}/${String(generation).padStart(15, '0')}.log`;
}

function sparePath(dir: string, generation: number): string {
  return `${dir}/${String(generation).padStart(15, '0')}.spare`;
}

/** Makes what was written to `file` durable. */
export function syncFile(file: DiskFile): Promise<void> {
  return new Promise((resolve, reject) => {
    file.sync((error) => (error === null ? resolve() : reject(error)));
  });
}

export class SegmentFiles {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #segmentBytes: number;
  readonly #spares: string[];
  #nextGeneration: number;

  constructor(options: {
    readonly disk: Disk;
    readonly dir: string;
    readonly segmentBytes: number;
    readonly spares: readonly string[];
    readonly nextGeneration: number;
  }) {
    this.#disk = options.disk;
    this.#dir = options.dir;
    this.#segmentBytes = options.segmentBytes;
    this.#spares = [...options.spares];
    this.#nextGeneration = options.nextGeneration;
  }

  /** Prepares a file of the full size under a new generation. It contains zeros or dead frames. */
  async prepare(): Promise<Segment> {
    const generation = this.#nextGeneration++;
    const path = segmentPath(this.#dir, generation);
    const spare = this.#spares.pop();
    if (spare !== undefined) {
      await this.#disk.rename({ from: spare, to: path });
      await this.#disk.syncDir(this.#dir);
    }
    const file = await this.#disk.open(path, { create: spare === undefined });
    if (spare === undefined) {
      await file.preallocate(this.#segmentBytes);
      await syncFile(file);
      await this.#disk.syncDir(this.#dir);
    }
    return { generation, path, file, position: 0, readers: 0 };
  }

  /** Removes a segment from the log, durably. */
  async retire(segment: Segment): Promise<void> {
    const reusable = this.#spares.length < SPARES_MAX && (await segment.file.size()) === this.#segmentBytes;
    await segment.file.close();
    if (reusable) {
      const to = sparePath(this.#dir, segment.generation);
      await this.#disk.rename({ from: segment.path, to });
      await this.#disk.syncDir(this.#dir);
      this.#spares.push(to);
    } else {
      await this.#disk.remove(segment.path);
      await this.#disk.syncDir(this.#dir);
    }
  }
}
