import type { Clock, Engine, Logger } from '@remora/base';
import type { Epoch } from '@remora/protocol';
import type { RangeState } from '../state/range-state.ts';
import { type Measured, measure } from './measure.ts';

/** At what sizes a range is looked at, and split; rows with their keys, older versions included. */
export interface SplitSizes {
  /** From here on its size is measured, again and again as it grows. */
  readonly checkBytes: number;
  /** A range of this size asks to be split. */
  readonly splitBytes: number;
  /** A range above this size says so, as it ought to have been split before. */
  readonly maxBytes: number;
}

export const SPLIT_SIZES: SplitSizes = Object.freeze({
  checkBytes: 32 * 1024 * 1024,
  splitBytes: 64 * 1024 * 1024,
  maxBytes: 128 * 1024 * 1024,
});

/** A range that is to be split, and where. */
export interface SplitCandidate extends Pick<Measured, 'bytes'> {
  readonly rangeId: number;
  /** As of when it was measured: a split of any other epoch is refused. */
  readonly epoch: Epoch;
  readonly middle: NonNullable<Measured['middle']>;
}

export interface RangeSizeDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: Pick<RangeState, 'rangeId' | 'descriptor' | 'bounds' | 'bytes'>;
  /** Absent: sizes are not watched. */
  readonly sizes: SplitSizes | undefined;
}

/** Measured again when the range may have grown by this share of the check size. */
const GROWTH_SHARE = 4;

/**
 * A leader's watch over the size of its range.
 *
 * SZ1. What was written since is counted, and only that costs anything on the way of a write. From the check size on the
 *      range is measured in the background (measure.ts), one measurement at a time.
 * SZ2. A candidate is of the epoch that it was measured in; with any other one it is forgotten.
 */
export class RangeSize {
  readonly #deps: RangeSizeDeps;
  #measured: Measured | undefined;
  #measuredIn: Epoch | undefined;
  /** Bytes of log entries since the last measurement began. */
  #written = 0;
  /** Grows with each new beginning: what was measured before counts no more. */
  #life = 0;
  #running = false;

  constructor(deps: RangeSizeDeps) {
    this.#deps = deps;
  }

  /** An entry of this size was applied. */
  written(bytes: number): void {
    this.#written += bytes;
  }

  /** The range is another one than was measured, or is led by another. */
  reset(): void {
    this.#life++;
    this.#measured = undefined;
    this.#measuredIn = undefined;
    this.#written = 0;
  }

  /** About how large the range is: what was measured last, and all that was written since. */
  get estimate(): number {
    return (this.#measured?.bytes ?? this.#deps.state.bytes) + this.#written;
  }

  /** Called now and then, on the leader. */
  tick(): void {
    const { sizes } = this.#deps;
    if (sizes === undefined || this.#running) return;
    const grownTo = (this.#measured?.bytes ?? 0) + sizes.checkBytes / GROWTH_SHARE;
    if (this.estimate >= Math.max(sizes.checkBytes, grownTo)) void this.#measure(sizes);
  }

  async #measure(sizes: SplitSizes): Promise<void> {
    const { engine, clock, logger, state } = this.#deps;
    const { rangeId, bounds, descriptor } = state;
    const life = this.#life;
    this.#running = true;
    this.#written = 0;
    try {
      const measured = await measure(engine, bounds, { clock, stopped: () => life !== this.#life });
      if (life !== this.#life) return;
      this.#measured = measured;
      this.#measuredIn = descriptor.epoch;
      const bytes = measured?.bytes ?? 0;
      if (bytes > sizes.maxBytes) logger.warn({ range: rangeId, bytes }, 'the range is larger than it should be');
    } catch (error) {
      if (life === this.#life) logger.error({ range: rangeId, error: String(error) }, 'could not measure the range');
    } finally {
      this.#running = false;
    }
  }

  /** SZ2. Undefined while the range is small enough, or has no place to be cut at. */
  get candidate(): SplitCandidate | undefined {
    const { sizes, state } = this.#deps;
    const { rangeId, descriptor } = state;
    const [measured, epoch] = [this.#measured, this.#measuredIn];
    if (sizes === undefined || measured?.middle === undefined || epoch === undefined) return undefined;
    if (measured.bytes < sizes.splitBytes || !isSame(epoch, descriptor.epoch)) return undefined;
    return { rangeId, epoch, bytes: measured.bytes, middle: measured.middle };
  }
}

function isSame(a: Epoch, b: Epoch): boolean {
  return a.version === b.version && a.confVersion === b.confVersion;
}
