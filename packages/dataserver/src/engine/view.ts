import { assert, type Bytes, type Clock, type EngineView, type Row, type ScanOptions } from '@remora/base';
import { anyRangeHolds, type NameRange, nameOf, rangeCovers, rangeOf } from './latin1.ts';
import { nextTurn, type PinnedLayer, readMerged, storeRange } from './merge.ts';
import type { StoreSnapshot } from './store.ts';
import { StoreDamagedError } from './store-errors.ts';

export interface ViewParts {
  readonly layers: readonly PinnedLayer[];
  readonly hiddenOnDisk: readonly NameRange[];
  readonly residentRanges: readonly NameRange[];
  readonly snapshot: StoreSnapshot;
  readonly clock: Clock;
  readonly onError: (error: unknown) => Error;
}

/** The engine as it was at one moment: the layers that were pinned then, in memory and on disk. */
export class View implements EngineView {
  readonly #parts: ViewParts;
  #released = false;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  get(key: Bytes): Bytes | undefined {
    this.#checkOpen();
    const name = nameOf(key);
    for (const { picture, hidden } of this.#parts.layers) {
      const cell = anyRangeHolds(hidden, name) ? undefined : picture.get(name);
      if (cell !== undefined) return cell.value;
    }
    if (anyRangeHolds(this.#parts.hiddenOnDisk, name)) return undefined;
    try {
      return this.#parts.snapshot.get(key);
    } catch (error) {
      throw this.#parts.onError(error);
    }
  }

  async *scan(options: ScanOptions): AsyncGenerator<readonly Row[]> {
    this.#checkOpen();
    const { layers, hiddenOnDisk, snapshot, clock } = this.#parts;
    const range = rangeOf(options);
    const inMemory = this.#parts.residentRanges.some((resident) => rangeCovers(resident, range));
    const disk = inMemory ? undefined : snapshot.cursor(storeRange(options));
    try {
      for await (const batch of readMerged({ layers, disk, hiddenOnDisk }, options, clock)) {
        yield batch;
        this.#checkOpen();
        await nextTurn(clock);
      }
    } catch (error) {
      // A read that its release cut short is not a failure. Damage always is, even if the reader has gone.
      const cutShort = this.#released && !(error instanceof StoreDamagedError);
      throw cutShort ? error : this.#parts.onError(error);
    }
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#parts.snapshot.release();
  }

  #checkOpen(): void {
    assert(!this.#released, 'a view is not used after its release');
  }
}
