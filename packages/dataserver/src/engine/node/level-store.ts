/**
 * LevelDB behind the engine's store port. The one place that touches `level`.
 *
 * L1. The empty key holds the format version and is no row (P3): cursors begin above it.
 * L2. Iterators and snapshots are created natively in the call, so they show the database of that moment (P1).
 */
import { type Bytes, EMPTY_BYTES, type Row } from '@remora/base';
import { Level } from 'level';
import type { PersistentStore, StoreBatch, StoreCursor, StoreRange, StoreSnapshot } from '../store.ts';

/**
 * Of everything under the engine: keys, records, their encodings. Raised when an older program could not read them.
 *
 *   2  markers of snapshots that are being installed: a program that does not know them would run half a state
 *   1  the first
 *
 * A directory of an older format is read as it is, and is of this format from then on.
 */
export const ENGINE_FORMAT_VERSION = 2;
const OLDEST_READABLE = 1;

const FORMAT_KEY = Buffer.alloc(0);
const ONE_ZERO = Buffer.from([0]);
const PAGE_BYTES = 256 * 1024;
const SYNCED = { sync: true };

export type StoreOpenCode = 'LOCKED' | 'NEWER_FORMAT' | 'UNREADABLE';

/** The data directory cannot be used; `message` says what the operator can do. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError';
  readonly code: StoreOpenCode;

  constructor(code: StoreOpenCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
  }
}

export interface LevelTuning {
  /** LevelDB's cache of uncompressed blocks. */
  readonly cacheBytes: number;
  /** LevelDB's own table in memory; up to two are held. */
  readonly writeBufferBytes: number;
}

type Database = Level<Buffer, Buffer>;
type DatabaseSnapshot = ReturnType<Database['snapshot']>;

export class LevelStore implements PersistentStore {
  readonly #db: Database;

  private constructor(db: Database) {
    this.#db = db;
  }

  /** Throws a `StoreOpenError`. */
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
    try {
      await checkFormat(dir, db);
    } catch (error) {
      await db.close();
      throw error;
    }
    return new LevelStore(db);
  }

  get(key: Bytes): Bytes | undefined {
    return this.#db.getSync(asKey(key));
  }

  cursor(range: StoreRange): StoreCursor {
    return openCursor(this.#db, range, undefined);
  }

  snapshot(): StoreSnapshot {
    const db = this.#db;
    const snapshot = db.snapshot();
    return {
      get: (key) => db.getSync(asKey(key), { snapshot }),
      cursor: (range) => openCursor(db, range, snapshot),
      // A snapshot waits for the cursors on it, and its closing cannot fail otherwise.
      release: () => void snapshot.close().catch(() => {}),
    };
  }

  batch(): StoreBatch {
    const batch = this.#db.batch();
    return {
      put: (key, value) => void batch.put(asKey(key), asKey(value)),
      delete: (key) => void batch.del(asKey(key)),
      write: () => batch.write(SYNCED),
    };
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

function openCursor(db: Database, range: StoreRange, snapshot: DatabaseSnapshot | undefined): StoreCursor {
  const iterator = db.iterator({
    gte: range.start.length === 0 ? ONE_ZERO : asKey(range.start), // L1
    ...(range.end.length === 0 ? {} : { lt: asKey(range.end) }),
    reverse: range.reverse,
    highWaterMarkBytes: PAGE_BYTES,
    ...(snapshot === undefined ? {} : { snapshot }),
  });
  return {
    async next(rowsMax) {
      const pairs = await iterator.nextv(rowsMax);
      return pairs.map(([key, value]): Row => ({ key, value }));
    },
    close: () => iterator.close(),
  };
}

async function checkFormat(dir: string, db: Database): Promise<void> {
  const found = await db.get(FORMAT_KEY);
  if (found === undefined) {
    const [foreign] = await db.keys({ limit: 1 }).all();
    if (foreign !== undefined)
      throw new StoreOpenError('UNREADABLE', `${dir} holds a database that Remora did not make`);
    return writeFormat(db);
  }
  const version = Number(found.toString('latin1'));
  if (version === ENGINE_FORMAT_VERSION) return;
  if (version >= OLDEST_READABLE && version < ENGINE_FORMAT_VERSION) return writeFormat(db);
  if (version > ENGINE_FORMAT_VERSION) {
    throw new StoreOpenError(
      'NEWER_FORMAT',
      `${dir} was written in format ${version} by a newer Remora; this one reads up to ${ENGINE_FORMAT_VERSION}: upgrade it`,
    );
  }
  throw new StoreOpenError('UNREADABLE', `${dir} has an unknown format version "${found.toString('latin1')}"`);
}

function writeFormat(db: Database): Promise<void> {
  return db.put(FORMAT_KEY, Buffer.from(String(ENGINE_FORMAT_VERSION)), SYNCED);
}

function openError(dir: string, error: unknown): StoreOpenError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (cause instanceof Error && 'code' in cause && cause.code === 'LEVEL_LOCKED') {
    return new StoreOpenError(
      'LOCKED',
      `${dir} is in use by another process: stop it, or use another directory`,
      error,
    );
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StoreOpenError('UNREADABLE', `${dir} cannot be opened: ${reason}`, error);
}

/** LevelDB takes any byte array; the cast-free way to say so in its types is a Buffer over the same memory. */
function asKey(bytes: Bytes): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return bytes.length === 0 ? Buffer.from(EMPTY_BYTES) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
