import type { Clock, Engine, Logger } from '@remora/base';
import type { SplitPlace } from '../splitting/split-wish.ts';
import type { RangeState } from '../state/range-state.ts';
import { type Measured, measure } from './measure.ts';

/** At what sizes a range is looked at, and split; rows with their keys, older versions included. */
export interface SplitSizes {
  /** From here on its size is measured rather than counted. */
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

export interface RangeSizeDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: Pick<RangeState, 'rangeId' | 'descriptor' | 'bounds' | 'bytes'>;
  /** Absent: sizes are not watched. */
  readonly sizes: SplitSizes | undefined;
  /** There is a candidate. */
  readonly onCandidate: () => void;
}

/** Measured again when the range may have grown by this share of the check size. */
const GROWTH_SHARE = 4;

/**
 * A leader's watch over the size of its range.
 *
 * SZ1. What was written since is counted, and only that costs anything on the way of a write. From the check size on the
 *      range is measured in the background (measure.ts), one measurement at a time.
 * SZ2. A candidate is of the bounds that were measured, as their version says; with any other it is forgotten.
 * SZ3. A measurement reads all of the range. So it is measured at the check size, where what was counted may be far off,
 *      and again when it may have grown to the split size: twice between two splits, mostly.
 */
export class RangeSize {
  readonly #deps: RangeSizeDeps;
  #measured: Measured | undefined;
  #measuredIn: number | undefined;
  /** Bytes of log entries since the last measurement began. */
  #written = 0;
  /** Grows with each new beginning: what was measured before counts no more. */
  #life = 0;
  #running = false;

  constructor(deps: RangeSizeDeps) {
    this.#deps = deps;
  }

  /** An entry of this size was applied; by the leader, or by a follower. */
  written(bytes: number, leading: boolean): void {
    this.#written += bytes;
    if (leading) this.tick();
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

  /** Called now and then, on the leader. Costs a comparison, mostly. */
  tick(): void {
    const { sizes } = this.#deps;
    if (sizes === undefined || this.#running) return;
    if (this.estimate >= this.#measureFrom(sizes)) void this.#measure(sizes);
  }

  /** SZ3. */
  #measureFrom({ checkBytes, splitBytes }: SplitSizes): number {
    if (this.#measured === undefined) return checkBytes;
    return Math.max(splitBytes, this.#measured.bytes + checkBytes / GROWTH_SHARE);
  }

  async #measure(sizes: SplitSizes): Promise<void> {
    const { engine, clock, logger, state } = this.#deps;
    const { rangeId, bounds } = state;
    const { version } = state.descriptor.epoch;
    const life = this.#life;
    this.#running = true;
    this.#written = 0;
    try {
      const measured = await measure(engine, bounds, { clock, stopped: () => life !== this.#life });
      if (life !== this.#life) return;
      this.#measured = measured;
      this.#measuredIn = version;
      const bytes = measured?.bytes ?? 0;
      if (bytes > sizes.maxBytes) logger.warn({ range: rangeId, bytes }, 'the range is larger than it should be');
      if (this.candidate !== undefined) this.#deps.onCandidate();
    } catch (error) {
      if (life === this.#life) logger.error({ range: rangeId, error: String(error) }, 'could not measure the range');
    } finally {
      this.#running = false;
    }
  }

  /** SZ2. Where it is to be split. Undefined while the range is small enough, or has no place to be cut at. */
  get candidate(): SplitPlace | undefined {
    const { sizes, state } = this.#deps;
    const measured = this.#measured;
    if (sizes === undefined || measured === undefined || measured.bytes < sizes.splitBytes) return undefined;
    return this.#measuredIn === state.descriptor.epoch.version ? measured.middle : undefined;
  }
}
