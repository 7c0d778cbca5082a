/**
 * LevelDB behind the engine's store port. Only this file uses `level`.
 *
 * L1. The empty key is no row (P3): cursors begin above it.
 * L2. Iterators and snapshots are created natively in the call, so they show the database of that moment (P1).
 * L3. If LevelDB reports damaged files, the error is a `StoreDamagedError`. LevelDB does not verify the checksums of
 *     its tables, and has no option for it: checked-store.ts verifies its own.
 * L4. If LevelDB reports that the disk failed or is full, the error is a `DiskFailedError`.
 */
import { type Bytes, DiskFailedError, EMPTY_BYTES, type Row, saysFull } from '@remora/base';
import { Level } from 'level';
import type { PersistentStore, StoreBatch, StoreCursor, StoreRange, StoreSnapshot } from '../store.ts';
import { StoreDamagedError, StoreOpenError } from '../store-errors.ts';

const ONE_ZERO = Buffer.from([0]);
const PAGE_BYTES = 256 * 1024;
const SYNCED = { sync: true };

export interface LevelTuning {
  /** LevelDB's cache of uncompressed blocks. */
  readonly cacheBytes: number;
  /** The size of one of LevelDB's own tables in memory; up to two exist. */
  readonly writeBufferBytes: number;
}

type Database = Level<Buffer, Buffer>;
/** For a read: the database as it was at that moment, instead of now. */
interface ReadAt {
  readonly snapshot?: ReturnType<Database['snapshot']>;
}

export class LevelStore implements PersistentStore {
  readonly #db: Database;
  readonly #dir: string;

  private constructor(dir: string, db: Database) {
    this.#db = db;
    this.#dir = dir;
  }

  /** Throws a `StoreOpenError`, or a `StoreDamagedError`. */
  static async open(dir: string, tuning: LevelTuning): Promise<LevelStore> {
    const db: Database = new Level<Buffer, Buffer>(dir, {
      keyEncoding: 'buffer',
      valueEncoding: 'buffer',
      cacheSize: tuning.cacheBytes,
      writeBufferSize: tuning.writeBufferBytes,
    });
    try {
      await db.open();
    } catch (error) {
      throw openError(dir, error);
    }
    return new LevelStore(dir, db);
  }

  get(key: Bytes): Bytes | undefined {
    return this.#get(key, {});
  }

  cursor(range: StoreRange): StoreCursor {
    return this.#cursor(range, {});
  }

  snapshot(): StoreSnapshot {
    const snapshot = this.#db.snapshot();
    return {
      get: (key) => this.#get(key, { snapshot }),
      cursor: (range) => this.#cursor(range, { snapshot }),
      // A snapshot waits for the cursors on it; there is no other reason for its closing to fail.
      release: () => void snapshot.close().catch(() => {}),
    };
  }

  batch(): StoreBatch {
    const batch = this.#db.batch();
    return {
      put: (key, value) => void batch.put(asKey(key), asKey(value)),
      delete: (key) => void batch.del(asKey(key)),
      write: () =>
        batch.write(SYNCED).catch((error: unknown) => {
          throw asFailure(this.#dir, 'write', error);
        }),
    };
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  #get(key: Bytes, at: ReadAt): Bytes | undefined {
    try {
      return this.#db.getSync(asKey(key), at);
    } catch (error) {
      throw asFailure(this.#dir, 'read', error);
    }
  }

  #cursor(range: StoreRange, at: ReadAt): StoreCursor {
    const iterator = this.#db.iterator({
      gte: range.start.length === 0 ? ONE_ZERO : asKey(range.start), // L1
      ...(range.end.length === 0 ? {} : { lt: asKey(range.end) }),
      reverse: range.reverse,
      highWaterMarkBytes: PAGE_BYTES,
      ...at,
    });
    return {
      next: async (rowsMax) => {
        const pairs = await iterator.nextv(rowsMax).catch((error: unknown) => {
          throw asFailure(this.#dir, 'read', error);
        });
        return pairs.map(([key, value]): Row => ({ key, value }));
      },
      close: () => iterator.close(),
    };
  }
}

/** The error to report for one of LevelDB's (L3, L4). */
function asFailure(dir: string, what: 'read' | 'write', error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error)) return error;
  if (error.code === 'LEVEL_CORRUPTION') return new StoreDamagedError(dir, `LevelDB says "${error.message}"`, error);
  if (error.code !== 'LEVEL_IO_ERROR') return error;
  return new DiskFailedError(`${what} the storage engine in ${dir}`, error);
}

function openError(dir: string, error: unknown): unknown {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (cause instanceof Error && 'code' in cause && cause.code === 'LEVEL_LOCKED') {
    return new StoreOpenError(
      'LOCKED',
      `${dir} is in use by another process: stop it, or use another directory`,
      error,
    );
  }
  const failure = asFailure(dir, 'write', cause);
  if (failure instanceof StoreDamagedError || (cause instanceof Error && saysFull(cause))) return failure;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreOpenError('UNREADABLE', `${dir} cannot be opened: ${reason}`, error);
}

/** LevelDB takes any byte array. A Buffer over the same memory satisfies its types without a cast. */
function asKey(bytes: Bytes): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return bytes.length === 0 ? Buffer.from(EMPTY_BYTES) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
