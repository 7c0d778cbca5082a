import type { RangeRequest, SplitPolicy } from '@remora/protocol';
import { LoadSplitDecider, type LoadSplitDeciderDeps } from '../range/stats/load-split-decider.ts';
import { mib, RangeSize, type RangeSizeDeps } from '../range/stats/range-size.ts';
import type { SplitWish } from './split-wish.ts';

export interface SplitReasonsDeps extends Omit<RangeSizeDeps, 'sizes'>, Omit<LoadSplitDeciderDeps, 'loads'> {
  /** The current policy; undefined: ranges are never split automatically. */
  readonly splitPolicy: () => SplitPolicy | undefined;
}

/** Decides why the leader of a range should split it. */
export class SplitReasons {
  readonly #size: RangeSize;
  readonly #loadDecider: LoadSplitDecider;
  readonly #policy: () => SplitPolicy | undefined;
  /** Why the last attempt failed. */
  #refused: string | undefined;

  constructor(deps: SplitReasonsDeps) {
    const policy = (): SplitPolicy | undefined => {
      const now = deps.splitPolicy();
      return now?.automatic ? now : undefined;
    };
    this.#policy = policy;
    const { engine, clock, logger, state, load, onCandidate } = deps;
    this.#size = new RangeSize({ engine, clock, logger, state, onCandidate, sizes: () => policy()?.sizes });
    this.#loadDecider = new LoadSplitDecider({ clock, load, loads: () => policy()?.loads });
  }

  /** The range is being measured, or is to be split. */
  get pending(): boolean {
    return this.#size.measuring || this.wish !== undefined;
  }

  get wish(): SplitWish | undefined {
    const place = this.#size.candidate;
    if (place !== undefined) return { cause: 'size', ...place };
    const at = this.#loadDecider.candidate;
    return at && { cause: 'load', at };
  }

  /** Reports that an entry of this size was applied, by the leader or by a follower. */
  written(bytes: number, leading: boolean): void {
    this.#size.written(bytes, leading);
  }

  /** Whether `asked` must be called for requests. */
  get watching(): boolean {
    return this.#loadDecider.watching;
  }

  /** `bytes`: read or written. */
  asked(request: Pick<RangeRequest, 'body'>, bytes: number): void {
    this.#loadDecider.asked(request, bytes);
  }

  /**
   * Reports that an attempt to split the range failed. Until an attempt succeeds, writers are not held back for a split
   * that may never happen.
   */
  refused(reason: string): void {
    this.#refused = reason;
  }

  /** How hard writers are held back until the range is split (split-backpressure.ts). */
  get pressure(): number {
    return this.#refused === undefined ? this.#size.pressure : 0;
  }

  /** A remark for operators about the size of the range; empty: there is none. */
  get remark(): string {
    const { wish } = this;
    const own = this.#size.remark;
    if (own !== undefined) return own;
    if (this.#refused !== undefined && wish !== undefined)
      return `it should be split, but the split was refused: ${this.#refused}`;
    if (this.pressure <= 0) return '';
    const max = mib(this.#policy()?.sizes.maxBytes ?? 0);
    const how = this.pressure >= 1 ? 'refused for now' : 'slowed';
    return `writes are ${how}: it has about ${mib(this.#size.estimate)} of at most ${max}, and must be split first`;
  }

  /** Called about every second, on the leader. */
  tick(): void {
    this.#size.tick();
    this.#loadDecider.tick();
  }

  /** The range was changed, or another replica leads it: earlier measurements are dropped. */
  reset(): void {
    this.#refused = undefined;
    this.#size.reset();
    this.#loadDecider.reset();
  }
}
