import type { Clock, Engine, Logger } from '@remora/base';
import type { SplitSizes } from '@remora/protocol';
import type { SplitPlace } from '../../splitting/split-wish.ts';
import type { RangeFields } from '../../state/range-fields.ts';
import { type SizeSample, sampleSize } from './size-sampler.ts';

export interface RangeSizeDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: Pick<RangeFields, 'rangeId' | 'descriptor' | 'bounds' | 'bytes'>;
  /** Undefined: sizes are not watched now. */
  readonly sizes: () => SplitSizes | undefined;
  /** There is a candidate. */
  readonly onCandidate: () => void;
}

/** SizeSample again when the range may have grown by this share of the check size. */
const GROWTH_SHARE = 4;

/**
 * A leader's watch over the size of its range.
 *
 * SZ1. What was written since is counted, and only that costs anything on the way of a write. From the check size on
 *      the range is measured in the background (size-sampler.ts), one measurement at a time.
 * SZ2. A candidate is of the bounds that were measured, as their version says; with any other it is forgotten.
 * SZ3. A measurement reads all of the range. So it is measured at the check size, where what was counted may be far
 *      off, and again when it may have grown to the split size: twice between two splits, mostly.
 * SZ4. It presses (holds writers back, split-backpressure.ts) only while that helps: a measurement is under way, or the
 *      range can be split. One key, lock or lease that is larger than any range may be cannot: it never presses for
 *      long.
 */
export class RangeSize {
  readonly #deps: RangeSizeDeps;
  #measured: SizeSample | undefined;
  #measuredIn: number | undefined;
  /** Bytes of log entries since the last measurement began. */
  #written = 0;
  /** The same from the measurement before until then, while it is under way. */
  #writtenBefore = 0;
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
    this.#writtenBefore = 0;
  }

  /** About how large the range is, rather too much: what was measured last, and all that was written since. */
  get estimate(): number {
    return (this.#measured?.bytes ?? this.#deps.state.bytes) + this.#writtenBefore + this.#written;
  }

  /**
   * How far the range is on its way from half between the split size and its maximum (0) to the maximum (1), and
   * beyond; 0 as well where that is nobody's concern (SZ4).
   */
  get pressure(): number {
    const sizes = this.#deps.sizes();
    if (sizes === undefined) return 0;
    const from = (sizes.splitBytes + sizes.maxBytes) / 2;
    const { estimate } = this;
    if (estimate <= from || this.#isUndividable(sizes) || (!this.#running && this.candidate === undefined)) return 0;
    return (estimate - from) / (sizes.maxBytes - from);
  }

  /** What is the matter with its size, for people; undefined: nothing, or writers are being held back for it. */
  get remark(): string | undefined {
    const sizes = this.#deps.sizes();
    if (sizes === undefined || !this.#isUndividable(sizes)) return undefined;
    const bytes = mib(this.#measured?.bytes ?? 0);
    return `it has ${bytes}, and is not split: one key, lock or lease has all of it. Writers are not held back for that`;
  }

  /** SZ4: it was found to be due for a split, and to have no place for one. */
  #isUndividable({ splitBytes }: SplitSizes): boolean {
    if (this.#measured === undefined || this.#measuredIn !== this.#deps.state.descriptor.epoch.version) return false;
    return this.#measured.bytes >= splitBytes && this.#measured.middle === undefined;
  }

  /** Called now and then, on the leader. Costs a comparison, mostly. */
  tick(): void {
    const sizes = this.#deps.sizes();
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
    this.#writtenBefore += this.#written;
    this.#written = 0;
    try {
      const measured = await sampleSize(engine, bounds, { clock, stopped: () => life !== this.#life });
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
      if (life === this.#life) this.#writtenBefore = 0;
    }
  }

  /** SZ2. Where it is to be split. Undefined while the range is small enough, or has no place to be cut at. */
  get candidate(): SplitPlace | undefined {
    const { state } = this.#deps;
    const sizes = this.#deps.sizes();
    const measured = this.#measured;
    if (sizes === undefined || measured === undefined || measured.bytes < sizes.splitBytes) return undefined;
    return this.#measuredIn === state.descriptor.epoch.version ? measured.middle : undefined;
  }
}

export function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
