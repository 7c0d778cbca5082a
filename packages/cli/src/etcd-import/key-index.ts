/**
 * Finds the newest version of each key in a list of changes that is ordered by revision, for any number of keys.
 *
 * KI1. At most `runKeysMax` keys, of at most `runKeyBytesMax` together, are in memory while changes are added.
 *      They are then sorted and written to a file, a run. Values stay in the snapshot; the index knows where.
 * KI2. At most `runsMax` runs exist; they are then merged to one. While they are read, each has a buffer of
 *      `READ_BYTES`.
 * KI3. Of several entries of a key, the one in the newest run counts. A deletion is an entry like any other, so it
 *      hides those before it; only the merged result leaves deletions out.
 *
 * Source: external merge sort (Knuth, The Art of Computer Programming, vol. 3, §5.4).
 */
import { compareBytes } from '@remora/base';
import { type IndexEntry, RunReader, type Runs } from './runs.ts';

export interface IndexLimits {
  readonly runKeysMax: number;
  readonly runKeyBytesMax: number;
  readonly runsMax: number;
}

export const INDEX_LIMITS: IndexLimits = {
  runKeysMax: 250_000,
  runKeyBytesMax: 32 * 1024 * 1024,
  runsMax: 16,
};

export class KeyIndex {
  readonly #runs: Runs;
  readonly #limits: IndexLimits;
  /** By their keys as latin1 text, whose order is that of the bytes. */
  #newest = new Map<string, IndexEntry>();
  #keyBytes = 0;
  #files: string[] = [];
  #sorted: readonly IndexEntry[] | undefined;

  constructor(runs: Runs, limits: IndexLimits = INDEX_LIMITS) {
    this.#runs = runs;
    this.#limits = limits;
  }

  /** Adds changes, in the order of their revisions. */
  async add(entries: readonly IndexEntry[]): Promise<void> {
    for (const entry of entries) {
      const key = entry.key.toString('latin1');
      if (!this.#newest.has(key)) this.#keyBytes += entry.key.length;
      this.#newest.set(key, entry);
    }
    const { runKeysMax, runKeyBytesMax, runsMax } = this.#limits;
    if (this.#newest.size < runKeysMax && this.#keyBytes < runKeyBytesMax) return;
    this.#files.push(await this.#runs.write(each(this.#take()))); // KI1
    if (this.#files.length < runsMax) return;
    const merged = await this.#runs.write(this.#merge([])); // KI2
    await this.#runs.remove(this.#files);
    this.#files = [merged];
  }

  /** The keys that exist, in their order. Can be read more than once, after everything was added. */
  async *live(): AsyncGenerator<IndexEntry> {
    this.#sorted ??= this.#take();
    for await (const entry of this.#merge(this.#sorted)) {
      if (!entry.deleted) yield entry;
    }
  }

  #take(): readonly IndexEntry[] {
    const sorted = [...this.#newest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
    this.#newest = new Map();
    this.#keyBytes = 0;
    return sorted;
  }

  /** KI3. `last` is newer than all runs. */
  async *#merge(last: readonly IndexEntry[]): AsyncGenerator<IndexEntry> {
    if (this.#files.length === 0) {
      yield* last;
      return;
    }
    const readers = [...this.#files.map((file) => this.#runs.open(file)), RunReader.of(last)];
    try {
      for (const reader of readers) await reader.advance();
      for (;;) {
        const first = smallest(readers);
        if (first === undefined) return;
        yield first;
        for (const reader of readers) {
          if (reader.head !== undefined && compareBytes(reader.head.key, first.key) === 0) await reader.advance();
        }
      }
    } finally {
      for (const reader of readers) await reader.close();
    }
  }
}

/** The entry with the smallest key; of equal ones that of the last reader. */
function smallest(readers: readonly RunReader[]): IndexEntry | undefined {
  let found: IndexEntry | undefined;
  for (const { head } of readers) {
    if (head !== undefined && (found === undefined || compareBytes(head.key, found.key) <= 0)) found = head;
  }
  return found;
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
