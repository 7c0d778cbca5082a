/**
 * Reads the versions of plain keys, one key after the other: records and their older versions lie in the same order.
 */
import { type Bytes, compareBytes, type EngineView, equalBytes, type Row } from '@remora/base';
import type { KeyRange } from '@remora/protocol';
import { currentSpan, historySpan, parseHistoryKey, userKeyOfCurrent } from '../keys.ts';
import { modRevisionOf } from './record.ts';

/** A version of a key as it lies in the engine. */
export interface StoredVersion {
  readonly key: Bytes;
  readonly revision: number;
  readonly row: Bytes;
}

/** Reads both side by side, and no further than needed. */
export class VersionReader {
  readonly #sources: readonly Source[];

  /** `older`: includes older versions; the newest are all in the records. */
  constructor(view: EngineView, range: KeyRange, { older }: { readonly older: boolean }) {
    const records = new Source(view.scan(currentSpan(range)), asRecord);
    this.#sources = older ? [new Source(view.scan(historySpan(range)), asOlder), records] : [records];
  }

  /** The lowest key whose versions were not taken yet; undefined at the end. */
  async nextKey(): Promise<Bytes | undefined> {
    let lowest: Bytes | undefined;
    for (const source of this.#sources) {
      const version = source.looked ?? (await source.peek());
      if (version !== undefined && (lowest === undefined || compareBytes(version.key, lowest) < 0)) {
        lowest = version.key;
      }
    }
    return lowest;
  }

  /** Takes all versions of the next key, the oldest first: a record is newer than all versions in the history. */
  async versionsOf(key: Bytes): Promise<readonly StoredVersion[]> {
    const versions: StoredVersion[] = [];
    for (const source of this.#sources) {
      for (;;) {
        const version = source.looked ?? (await source.peek());
        if (version === undefined || !equalBytes(version.key, key)) break;
        versions.push(version);
        source.take();
      }
    }
    return versions;
  }

  async close(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
  }
}

function asRecord({ key, value }: Row): StoredVersion {
  return { key: userKeyOfCurrent(key), revision: modRevisionOf(value), row: value };
}

function asOlder({ key, value }: Row): StoredVersion {
  return { ...parseHistoryKey(key), row: value };
}

/** Rows of a span, one by one. */
class Source {
  readonly #batches: AsyncIterator<readonly Row[]>;
  readonly #read: (row: Row) => StoredVersion;
  #batch: readonly Row[] = [];
  #at = 0;
  #next: StoredVersion | undefined;

  constructor(rows: AsyncIterable<readonly Row[]>, read: (row: Row) => StoredVersion) {
    this.#batches = rows[Symbol.asyncIterator]();
    this.#read = read;
  }

  /** The next row, if it was peeked at. */
  get looked(): StoredVersion | undefined {
    return this.#next;
  }

  /** Returns the next row without taking it; undefined at the end. */
  async peek(): Promise<StoredVersion | undefined> {
    while (this.#next === undefined) {
      const row = this.#batch[this.#at++];
      if (row !== undefined) this.#next = this.#read(row);
      else {
        const { done, value } = await this.#batches.next();
        if (done === true) return undefined;
        this.#batch = value;
        this.#at = 0;
      }
    }
    return this.#next;
  }

  take(): void {
    this.#next = undefined;
  }

  async close(): Promise<void> {
    await this.#batches.return?.();
  }
}
