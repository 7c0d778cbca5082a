import { type Bytes, compareBytes, copyBytes, type EngineView, equalBytes, type Row } from '@remora/base';
import type { KeyValue, Query } from '@remora/protocol';
import { lowerEnd, type RangeBounds } from './bounds.ts';
import { currentSpan, historySpan, parseHistoryKey, userKeyOfCurrent } from './keys.ts';
import { decodeVersion, isDeletion, modRevisionOf, toKeyValue } from './record.ts';

/** Rows of the engine that one page looks at: they may be older versions, or newer ones, than what it gives. */
const ROWS_MAX = 20_000;

export interface ScanPage {
  readonly kvs: readonly KeyValue[];
  /** The key to go on from; undefined when the span is read whole. */
  readonly next: Bytes | undefined;
}

/**
 * One page of plain keys in order, as far as the range has them (see `Query` `scan`). Records and their older versions
 * lie in the same order: both are read side by side, and no further than the page reaches.
 */
export async function scanPlainKeys(
  view: EngineView,
  { key, end, revision, bytes }: Omit<Extract<Query, { type: 'scan' }>, 'type'>,
  bounds: Pick<RangeBounds, 'keys'>,
): Promise<ScanPage> {
  const span = { key, end: lowerEnd(end, bounds.keys?.end ?? end) };
  const sources = [new Source(view.scan(currentSpan(span)), asRecord)];
  // The newest versions are all in the records.
  if (revision > 0) sources.unshift(new Source(view.scan(historySpan(span)), asOlder));
  const kvs: KeyValue[] = [];
  try {
    for (let room = bytes, looked = 0; ; ) {
      const next = await lowestKey(sources);
      if (next === undefined) return { kvs, next: equalBytes(span.end, end) ? undefined : span.end };
      if (room <= 0 || looked >= ROWS_MAX) return { kvs, next: copyBytes(next) };
      const versions = await versionsOf(next, sources);
      looked += versions.length;
      const newest = versions.findLast((version) => revision === 0 || version.revision <= revision);
      if (newest === undefined || isDeletion(newest.row)) continue;
      const kv = toKeyValue(copyBytes(next), decodeVersion(newest.row));
      kvs.push(kv);
      room -= kv.key.length + kv.value.length;
    }
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}

/** A version of a key as it lies in the engine. */
interface StoredVersion {
  readonly key: Bytes;
  readonly revision: number;
  readonly row: Bytes;
}

function asRecord({ key, value }: Row): StoredVersion {
  return { key: userKeyOfCurrent(key), revision: modRevisionOf(value), row: value };
}

function asOlder({ key, value }: Row): StoredVersion {
  return { ...parseHistoryKey(key), row: value };
}

async function lowestKey(sources: readonly Source[]): Promise<Bytes | undefined> {
  let lowest: Bytes | undefined;
  for (const source of sources) {
    const version = await source.peek();
    if (version !== undefined && (lowest === undefined || compareBytes(version.key, lowest) < 0)) lowest = version.key;
  }
  return lowest;
}

/** Takes all versions of a key, the oldest first: a record is newer than all in the history. */
async function versionsOf(key: Bytes, sources: readonly Source[]): Promise<readonly StoredVersion[]> {
  const versions: StoredVersion[] = [];
  for (const source of sources) {
    for (;;) {
      const version = await source.peek();
      if (version === undefined || !equalBytes(version.key, key)) break;
      versions.push(version);
      source.take();
    }
  }
  return versions;
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

  /** The next one, which stays; undefined at the end. */
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
