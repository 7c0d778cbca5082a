/**
 * Sorted lists of keys in temporary files, for sorting more keys than fit in memory. A record is `length of the key(4)
 * deleted(1) lease(8) position(8) length(4) key`.
 */
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OWN_FILE_MODE } from '@remora/base';

/** A change of a key, with the place of its row in the snapshot. */
export interface IndexEntry {
  readonly key: Buffer;
  readonly deleted: boolean;
  /** 0n: none. */
  readonly lease: bigint;
  readonly at: number;
  readonly length: number;
}

const RECORD_BYTES = 25;
const WRITE_BYTES = 256 * 1024;
const READ_BYTES = 64 * 1024;

/** The files of one index, in a directory that only its user can read. */
export class Runs {
  readonly #parent: string;
  #dir: string | undefined;
  #written = 0;

  constructor(parent = tmpdir()) {
    this.#parent = parent;
  }

  /** Writes a file of sorted entries, and returns its name. */
  async write(entries: AsyncIterable<IndexEntry>): Promise<string> {
    this.#dir ??= await mkdtemp(join(this.#parent, 'remora-import-'));
    const path = join(this.#dir, String(this.#written++));
    const file = await open(path, 'wx', OWN_FILE_MODE);
    try {
      let [pieces, bytes] = [[] as Buffer[], 0];
      for await (const entry of entries) {
        const record = encode(entry);
        pieces.push(record);
        bytes += record.length;
        if (bytes < WRITE_BYTES) continue;
        await file.writeFile(Buffer.concat(pieces));
        [pieces, bytes] = [[], 0];
      }
      await file.writeFile(Buffer.concat(pieces));
    } finally {
      await file.close();
    }
    return path;
  }

  open(path: string): RunReader {
    return new RunReader(path);
  }

  async remove(paths: readonly string[]): Promise<void> {
    for (const path of paths) await rm(path, { force: true });
  }

  /** Removes all files. */
  async close(): Promise<void> {
    if (this.#dir !== undefined) await rm(this.#dir, { recursive: true, force: true });
    this.#dir = undefined;
  }
}

/** Reads one run from its beginning. */
export class RunReader {
  /** The present entry; undefined before the first `advance`, and after the last entry. */
  head: IndexEntry | undefined;
  readonly #path: string;
  readonly #given: Iterator<IndexEntry> | undefined;
  #file: FileHandle | undefined;
  #bytes = Buffer.alloc(0);
  #at = 0;

  constructor(path: string, given?: Iterator<IndexEntry>) {
    this.#path = path;
    this.#given = given;
  }

  /** A run in memory. */
  static of(entries: readonly IndexEntry[]): RunReader {
    return new RunReader('', entries[Symbol.iterator]());
  }

  async advance(): Promise<void> {
    if (this.#given !== undefined) {
      const { value, done } = this.#given.next();
      this.head = done ? undefined : value;
      return;
    }
    if (!(await this.#has(RECORD_BYTES))) {
      this.head = undefined;
      return;
    }
    const length = RECORD_BYTES + this.#bytes.readUInt32BE(this.#at);
    if (!(await this.#has(length))) throw new Error(`${this.#path} was truncated by another program`);
    this.head = decode(this.#bytes.subarray(this.#at, this.#at + length));
    this.#at += length;
  }

  async #has(bytes: number): Promise<boolean> {
    while (this.#bytes.length - this.#at < bytes) {
      this.#file ??= await open(this.#path, 'r');
      const more = Buffer.allocUnsafe(Math.max(READ_BYTES, bytes));
      const { bytesRead } = await this.#file.read(more, 0, more.length);
      if (bytesRead === 0) return false;
      this.#bytes = Buffer.concat([this.#bytes.subarray(this.#at), more.subarray(0, bytesRead)]);
      this.#at = 0;
    }
    return true;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}

function encode({ key, deleted, lease, at, length }: IndexEntry): Buffer {
  const record = Buffer.allocUnsafe(RECORD_BYTES + key.length);
  record.writeUInt32BE(key.length, 0);
  record.writeUInt8(deleted ? 1 : 0, 4);
  record.writeBigInt64BE(lease, 5);
  record.writeBigUInt64BE(BigInt(at), 13);
  record.writeUInt32BE(length, 21);
  record.set(key, RECORD_BYTES);
  return record;
}

function decode(record: Buffer): IndexEntry {
  return {
    key: Buffer.from(record.subarray(RECORD_BYTES)),
    deleted: record.readUInt8(4) === 1,
    lease: record.readBigInt64BE(5),
    at: Number(record.readBigUInt64BE(13)),
    length: record.readUInt32BE(21),
  };
}
