/** Reads a journal while it grows. */
import { closeSync, openSync, readSync } from 'node:fs';
import type { Line } from './lines.ts';

const READ_BYTES = 1 << 20;

export class JournalTail {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(READ_BYTES);
  #rest: Buffer = Buffer.alloc(0);
  #closed = false;

  constructor(file: string) {
    this.#fd = openSync(file, 'r');
  }

  /** The complete lines since the last call, at most about a megabyte. Empty if it has caught up. */
  read(): readonly Line[] {
    if (this.#closed) return [];
    const bytes = readSync(this.#fd, this.#buffer, 0, READ_BYTES, null);
    const text = Buffer.concat([this.#rest, this.#buffer.subarray(0, bytes)]);
    const end = text.lastIndexOf(0x0a) + 1;
    this.#rest = text.subarray(end);
    // An incomplete last line is not written yet. Or its process was killed while it wrote it, and the operation never
    // began.
    return text
      .toString('utf8', 0, end)
      .split('\n')
      .filter((line) => line !== '')
      .map((line): Line => JSON.parse(line));
  }

  close(): void {
    if (!this.#closed) closeSync(this.#fd);
    this.#closed = true;
  }
}
