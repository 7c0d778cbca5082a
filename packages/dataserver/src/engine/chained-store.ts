/**
 * A store that detects, when it is opened, whether batches are missing among those that were written to it.
 *
 * LevelDB keeps its latest writes in a log of its own. When it is opened, it silently drops every record of that log
 * whose checksum is wrong, and the rest of the same block, and reads the records behind.
 *
 * B1. A batch's mark is a row whose key is the batch's number. Each batch sets its own mark and removes that of the
 *     batch before it, so only the last batch's mark exists. If batches are missing before another one, the mark that
 *     the first of them would have removed is still there, beside the last.
 * B2. Batches are written one after another, in the order of their numbers, and none after a failed one.
 * B3. The first mark is written in one batch with the row of the format (format.ts, F4), so that neither exists alone.
 * B4. Marks belong to the store itself: the engine has no keys there, and readers do not receive them.
 *
 * The store cannot detect that the *last* batches are missing: without them it looks as it did before them. Components
 * that deleted something because a batch held it detect that (docs/decisions/0012).
 */
import { asBuffer, assert, type Bytes, EMPTY_BYTES } from '@remora/base';
import type { PersistentStore, StoreBatch, StoreCursor, StoreRange, StoreSnapshot } from './store.ts';
import { StoreDamagedError } from './store-errors.ts';

/** First byte of the keys of marks; the batch's number follows. */
const MARK_SPACE = 0xff;
const MARK_BYTES = 9;
const MARKS_START = Buffer.from([MARK_SPACE]);
/** The first mark of a new store (B3). */
export const FIRST_MARK = markKey(0);

export class ChainedStore implements PersistentStore {
  readonly #inner: PersistentStore;
  /** The number of the last batch. */
  #number: number;
  /** Settles when all batches so far are written (B2). */
  #written: Promise<void> = Promise.resolve();

  private constructor(inner: PersistentStore, number: number) {
    this.#inner = inner;
    this.#number = number;
  }

  /** Throws a `StoreDamagedError` if a batch is missing. `place` names the location of the rows in messages. */
  static async open(inner: PersistentStore, place: string): Promise<ChainedStore> {
    const [first, second] = await firstMarks(inner);
    if (first === undefined) throw new StoreDamagedError(place, 'the mark of the last batch written to it is gone');
    if (second === undefined) return new ChainedStore(inner, first);
    const missing =
      second === first + 2 ? `batch ${first + 1}` : `one or more of the batches ${first + 1} to ${second - 1}`;
    throw new StoreDamagedError(place, `${missing} written to it is missing, and later ones are there`);
  }

  get(key: Bytes): Bytes | undefined {
    return this.#inner.get(key);
  }

  cursor(range: StoreRange): StoreCursor {
    return this.#inner.cursor(withoutMarks(range));
  }

  snapshot(): StoreSnapshot {
    const inner = this.#inner.snapshot();
    return {
      get: (key) => inner.get(key),
      cursor: (range) => inner.cursor(withoutMarks(range)),
      release: () => inner.release(),
    };
  }

  batch(): StoreBatch {
    const inner = this.#inner.batch();
    return {
      put: (key, value) => inner.put(notMark(key), value),
      delete: (key) => inner.delete(notMark(key)),
      write: () => {
        this.#written = this.#written.then(() => this.#write(inner)); // B2
        return this.#written;
      },
    };
  }

  #write(inner: StoreBatch): Promise<void> {
    inner.delete(markKey(this.#number)); // B1
    inner.put(markKey(++this.#number), EMPTY_BYTES);
    return inner.write();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

/** Whether a store has marks, whatever format it names. */
export async function hasMarks(store: PersistentStore): Promise<boolean> {
  return (await firstMarks(store)).length > 0;
}

/** The two lowest numbers of marks, or fewer if there are fewer. */
async function firstMarks(store: PersistentStore): Promise<readonly number[]> {
  const cursor = store.cursor({ start: MARKS_START, end: EMPTY_BYTES, reverse: false });
  const numbers: number[] = [];
  while (numbers.length < 2) {
    const rows = await cursor.next(2 - numbers.length);
    if (rows.length === 0) break;
    for (const { key } of rows) if (key.length === MARK_BYTES) numbers.push(numberOf(key));
  }
  await cursor.close();
  return numbers;
}

function markKey(number: number): Buffer {
  const key = Buffer.allocUnsafe(MARK_BYTES);
  key[0] = MARK_SPACE;
  key.writeBigUInt64BE(BigInt(number), 1);
  return key;
}

function numberOf(mark: Bytes): number {
  return Number(asBuffer(mark).readBigUInt64BE(1));
}

/** B4. */
function withoutMarks(range: StoreRange): StoreRange {
  return range.end.length === 0 ? { ...range, end: MARKS_START } : range;
}

/** B4. */
function notMark(key: Bytes): Bytes {
  assert(key[0] !== MARK_SPACE, 'B4: only marks have keys there');
  return key;
}
