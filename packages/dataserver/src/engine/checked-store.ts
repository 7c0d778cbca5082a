/**
 * A store whose rows carry checksums, over a store that may return other bytes than were written.
 *
 * C1. Every row is written with a checksum over its key and its value.
 * C2. A row with a wrong checksum is never returned: the read fails with a `StoreDamagedError`, which ends the engine.
 *
 * Checksums of rows do not detect a missing row, or an old version of a row, when an index no longer leads to its
 * newest version: a missing row looks like one that was never written. Batches that LevelDB drops at opening are
 * detected by chained-store.ts. LevelDB reports a block of its tables that it cannot decode, which ends the engine too.
 */
import { asBuffer, type Bytes, type Row } from '@remora/base';
import { openRow, sealRow } from './row-checksum.ts';
import type { PersistentStore, StoreBatch, StoreCursor, StoreRange, StoreSnapshot } from './store.ts';
import { StoreDamagedError, showKey } from './store-errors.ts';

export class CheckedStore implements PersistentStore {
  readonly #inner: PersistentStore;
  readonly #place: string;

  /** `place` names the location of the rows in messages. */
  constructor(inner: PersistentStore, place: string) {
    this.#inner = inner;
    this.#place = place;
  }

  get(key: Bytes): Bytes | undefined {
    return this.#checkedIfAny(key, this.#inner.get(key));
  }

  cursor(range: StoreRange): StoreCursor {
    return this.#checkedCursor(this.#inner.cursor(range));
  }

  snapshot(): StoreSnapshot {
    const inner = this.#inner.snapshot();
    return {
      get: (key) => this.#checkedIfAny(key, inner.get(key)),
      cursor: (range) => this.#checkedCursor(inner.cursor(range)),
      release: () => inner.release(),
    };
  }

  batch(): StoreBatch {
    const inner = this.#inner.batch();
    return {
      put: (key, value) => inner.put(key, sealRow(key, value)), // C1
      delete: (key) => inner.delete(key),
      write: () => inner.write(),
    };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #checkedCursor(inner: StoreCursor): StoreCursor {
    return {
      next: async (rowsMax) => {
        const rows = await inner.next(rowsMax);
        return rows.map(({ key, value }): Row => ({ key, value: this.#checked(key, value) }));
      },
      close: () => inner.close(),
    };
  }

  #checkedIfAny(key: Bytes, sealed: Bytes | undefined): Bytes | undefined {
    return sealed === undefined ? undefined : this.#checked(key, sealed);
  }

  #checked(key: Bytes, sealed: Bytes): Bytes {
    const value = openRow(key, asBuffer(sealed));
    if (value === undefined) {
      throw new StoreDamagedError(this.#place, `the checksum of row ${showKey(key)} is wrong`); // C2
    }
    return value;
  }
}
