import type { Bytes, Row } from '@remora/base';

/** `[start, end)` of a store; an empty `end` is unbounded. */
export interface StoreRange {
  readonly start: Bytes;
  readonly end: Bytes;
  readonly reverse: boolean;
}

/** Reads the rows of a range as they were when the cursor was made. */
export interface StoreCursor {
  /** Returns up to `rowsMax` further rows; none means the end. Fewer than `rowsMax` rows do not mean the end. */
  next(rowsMax: number): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** The store as it was at one moment. */
export interface StoreSnapshot {
  get(key: Bytes): Bytes | undefined;
  cursor(range: StoreRange): StoreCursor;
  release(): void;
}

/** Changes that become durable all together or not at all. A batch is used once. */
export interface StoreBatch {
  put(key: Bytes, value: Bytes): void;
  delete(key: Bytes): void;
  /** Resolves when the batch is on disk. */
  write(): Promise<void>;
}

/**
 * The engine's port to a disk store, implemented by LevelDB and in memory.
 *
 * P1. `get`, `cursor` and `snapshot` take their picture of the store synchronously, in the call.
 * P2. A batch is atomic, and durable once `write` resolves.
 * P3. The empty key is not a row: it belongs to the store itself and never appears in a cursor.
 */
export interface PersistentStore {
  get(key: Bytes): Bytes | undefined;
  cursor(range: StoreRange): StoreCursor;
  snapshot(): StoreSnapshot;
  batch(): StoreBatch;
  close(): Promise<void>;
}
