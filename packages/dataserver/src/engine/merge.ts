/**
 * Reads a span through the layers of the engine, newest first.
 *
 * M1. For each key the newest layer decides; its tombstone hides every older layer.
 * M2. Rows of a layer within its `hidden` ranges are ignored (they are being cleared, or another layer holds them).
 * M3. Everything read was pinned before the first await.
 */
import { assert, type Clock, type Row, type ScanOptions } from '@remora/base';
import { anyRangeHolds, keyOf, type Name, type NameRange, nameOf, rangeOf } from './latin1.ts';
import type { Picture, PicturedCell } from './ordered-table.ts';
import type { StoreCursor, StoreRange } from './store.ts';

const BATCH_ROWS_MAX = 512;
const BATCH_BYTES_MAX = 512 * 1024;
const PAGE_ROWS_MAX = 256;
/** Keys examined, including deleted ones, before other work gets its turn. */
const STEPS_PER_TURN_MAX = 4096;

export interface PinnedLayer {
  readonly picture: Picture;
  readonly hidden: readonly NameRange[];
}

/** A span's layers in memory, newest first, and a cursor over its rows on disk (absent when memory holds all rows). */
export interface PinnedSpan {
  readonly layers: readonly PinnedLayer[];
  readonly disk: StoreCursor | undefined;
  readonly hiddenOnDisk: readonly NameRange[];
}

export function storeRange(options: ScanOptions): StoreRange {
  return { start: options.start, end: options.end, reverse: options.reverse === true };
}

/**
 * Yields the visible rows of a span in batches of bounded size. Closes the cursor at the end, also when the reader
 * stops early.
 */
export async function* readMerged(pinned: PinnedSpan, options: ScanOptions, clock: Clock): AsyncGenerator<Row[]> {
  const limit = options.limit === undefined || options.limit === 0 ? Number.POSITIVE_INFINITY : options.limit;
  const reverse = options.reverse === true;
  const layers = pinned.layers.map((layer) => new LayerReader(layer, rangeOf(options), reverse));
  const disk = new DiskReader(pinned.disk, pinned.hiddenOnDisk, Math.min(limit, PAGE_ROWS_MAX));
  const sources: readonly Source[] = [...layers, disk];
  let [batch, bytes, taken, steps]: [Row[], number, number, number] = [[], 0, 0, 0];
  try {
    while (taken < limit) {
      if (disk.drained) await disk.fill();
      const row = takeNext(sources, reverse);
      if (row === 'end') break;
      if (row !== 'deleted') {
        batch.push(row);
        bytes += row.key.length + row.value.length;
        taken++;
      }
      if (batch.length >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX) {
        yield batch;
        [batch, bytes] = [[], 0];
      }
      if (++steps % STEPS_PER_TURN_MAX === 0) await nextTurn(clock);
    }
    if (batch.length > 0) yield batch;
  } finally {
    await pinned.disk?.close();
  }
}

/** Returns the rows of one picture, synchronously, without those of the hidden ranges (M2). */
export function readPicture(picture: Picture, options: ScanOptions, hidden: readonly NameRange[]): Row[] {
  const rows: Row[] = [];
  const limit = options.limit === undefined || options.limit === 0 ? Number.POSITIVE_INFINITY : options.limit;
  const reader = new LayerReader({ picture, hidden }, rangeOf(options), options.reverse === true);
  while (rows.length < limit && reader.name !== undefined) {
    if (reader.value !== undefined) rows.push({ key: keyOf(reader.name), value: reader.value });
    reader.advance();
  }
  return rows;
}

/** Yields to all work that waits for the event loop. */
export function nextTurn(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.setImmediate(resolve));
}

interface Source {
  /** The current key; absent at the end. */
  readonly name: Name | undefined;
  row(): Row | 'deleted';
  advance(): void;
}

function takeNext(sources: readonly Source[], reverse: boolean): Row | 'deleted' | 'end' {
  let first: Source | undefined;
  let name: Name | undefined;
  for (const source of sources) {
    const candidate = source.name;
    if (candidate === undefined) continue;
    if (name === undefined || (reverse ? candidate > name : candidate < name)) {
      first = source;
      name = candidate;
    }
  }
  if (first === undefined) return 'end';
  const row = first.row();
  for (const source of sources) if (source.name === name) source.advance(); // M1
  return row;
}

class LayerReader implements Source {
  readonly #pairs: Iterator<[Name, PicturedCell]>;
  readonly #range: NameRange;
  readonly #reverse: boolean;
  readonly #hidden: readonly NameRange[];
  name: Name | undefined;
  value: Row['value'] | undefined;

  constructor(layer: PinnedLayer, range: NameRange, reverse: boolean) {
    const pair: [Name, PicturedCell] | [] = [];
    this.#pairs = reverse
      ? layer.picture.entriesReversed(range.end === '' ? undefined : range.end, pair, true)
      : layer.picture.entries(range.start, pair);
    this.#range = range;
    this.#reverse = reverse;
    this.#hidden = layer.hidden;
    this.advance();
  }

  row(): Row | 'deleted' {
    return this.value === undefined ? 'deleted' : { key: keyOf(this.name ?? ''), value: this.value };
  }

  advance(): void {
    for (;;) {
      const step = this.#pairs.next();
      if (step.done === true) break;
      const [name, cell] = step.value;
      if (this.#reverse ? name < this.#range.start : this.#range.end !== '' && name >= this.#range.end) break;
      if (anyRangeHolds(this.#hidden, name)) continue;
      this.name = name;
      this.value = cell.value;
      return;
    }
    this.name = undefined;
    this.value = undefined;
  }
}

class DiskReader implements Source {
  readonly #cursor: StoreCursor | undefined;
  readonly #hidden: readonly NameRange[];
  readonly #pageRows: number;
  #page: readonly Row[] = [];
  #at = 0;
  #ended: boolean;
  name: Name | undefined;

  constructor(cursor: StoreCursor | undefined, hidden: readonly NameRange[], pageRows: number) {
    this.#cursor = cursor;
    this.#hidden = hidden;
    this.#pageRows = pageRows;
    this.#ended = cursor === undefined;
  }

  /** Whether a further page must be read before `name` means anything. */
  get drained(): boolean {
    return this.name === undefined && !this.#ended;
  }

  async fill(): Promise<void> {
    while (this.drained) {
      this.#page = (await this.#cursor?.next(this.#pageRows)) ?? [];
      this.#ended = this.#page.length === 0;
      this.#at = -1;
      this.advance();
    }
  }

  row(): Row {
    const row = this.#page[this.#at];
    assert(row !== undefined, 'M1: the disk reader stands at a row');
    return row;
  }

  advance(): void {
    for (this.#at++; this.#at < this.#page.length; this.#at++) {
      const row = this.#page[this.#at];
      const name = row === undefined ? '' : nameOf(row.key);
      if (anyRangeHolds(this.#hidden, name)) continue;
      this.name = name;
      return;
    }
    this.name = undefined;
  }
}
