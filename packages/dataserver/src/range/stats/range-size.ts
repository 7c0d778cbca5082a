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
  /** Called when there is a candidate. */
  readonly onCandidate: () => void;
}

/** The range is measured again when it may have grown by this share of the check size. */
const GROWTH_SHARE = 4;

/**
 * A leader's watch over the size of its range.
 *
 * SZ1. Bytes written since the last measurement are counted, and only that adds cost to a write. From the check size on
 *      the range is measured in the background (size-sampler.ts), one measurement at a time.
 * SZ2. A candidate belongs to the bounds that were measured, identified by their version; with any other version it is
 *      dropped.
 * SZ3. A measurement reads the whole range. So the range is measured at the check size, where the count may be far off,
 *      and again when it may have grown to the split size: usually twice between two splits.
 * SZ4. Size holds writers back (split-backpressure.ts) only while that helps: while a measurement is in progress, or
 *      the range can be split. A single key, lock or lease that is larger than the maximum cannot be split: it never
 *      holds writers back for long.
 */
export class RangeSize {
  readonly #deps: RangeSizeDeps;
  #measured: SizeSample | undefined;
  #measuredIn: number | undefined;
  /** Bytes of log entries since the last measurement began. */
  #written = 0;
  /** Bytes of log entries between the previous measurement and the one in progress. */
  #writtenBefore = 0;
  /** Grows with each new beginning: earlier measurements no longer count. */
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

  /** The range was changed since it was measured, or another replica leads it. */
  reset(): void {
    this.#life++;
    this.#measured = undefined;
    this.#measuredIn = undefined;
    this.#written = 0;
    this.#writtenBefore = 0;
  }

  get measuring(): boolean {
    return this.#running;
  }

  /** The approximate size of the range, rather too high: the last measurement plus everything written since. */
  get estimate(): number {
    return (this.#measured?.bytes ?? this.#deps.state.bytes) + this.#writtenBefore + this.#written;
  }

  /**
   * How far the size is on its way from halfway between the split size and the maximum (0) to the maximum (1), and
   * beyond; also 0 where size does not hold writers back (SZ4).
   */
  get pressure(): number {
    const sizes = this.#deps.sizes();
    if (sizes === undefined) return 0;
    const from = (sizes.splitBytes + sizes.maxBytes) / 2;
    const { estimate } = this;
    if (estimate <= from || this.#isUndividable(sizes) || (!this.#running && this.candidate === undefined)) return 0;
    return (estimate - from) / (sizes.maxBytes - from);
  }

  /** A remark for operators about the size; undefined: there is none, or writers are being held back already. */
  get remark(): string | undefined {
    const sizes = this.#deps.sizes();
    if (sizes === undefined || !this.#isUndividable(sizes)) return undefined;
    const bytes = mib(this.#measured?.bytes ?? 0);
    return `it has ${bytes}, and is not split: one key, lock or lease has all of it. Writers are not held back for that`;
  }

  /** SZ4: the range was due for a split, but had no place for one. */
  #isUndividable({ splitBytes }: SplitSizes): boolean {
    if (this.#measured === undefined || this.#measuredIn !== this.#deps.state.descriptor.epoch.version) return false;
    return this.#measured.bytes >= splitBytes && this.#measured.middle === undefined;
  }

  /** Called periodically, on the leader. Usually costs a comparison. */
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

  /** SZ2. Where the range should be split. Undefined while the range is small enough, or has no place to be cut at. */
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
