import type { RangeRequest } from '@remora/protocol';
import { RangeHeat, type RangeHeatDeps } from '../range/range-heat.ts';
import { RangeSize, type RangeSizeDeps } from '../range/range-size.ts';
import type { SplitWish } from './split-wish.ts';

/** Why the leader of a range would have it split. */
export class SplitReasons {
  readonly #size: RangeSize;
  readonly #heat: RangeHeat;

  constructor(deps: RangeSizeDeps & RangeHeatDeps) {
    this.#size = new RangeSize(deps);
    this.#heat = new RangeHeat(deps);
  }

  get wish(): SplitWish | undefined {
    const place = this.#size.candidate;
    if (place !== undefined) return { cause: 'size', ...place };
    const at = this.#heat.candidate;
    return at && { cause: 'load', at };
  }

  /** An entry of this size was applied; by the leader, or by a follower. */
  written(bytes: number, leading: boolean): void {
    this.#size.written(bytes, leading);
  }

  asked(request: Pick<RangeRequest, 'body'>): void {
    this.#heat.asked(request);
  }

  /** Called about every second, on the leader. */
  tick(): void {
    this.#size.tick();
    this.#heat.tick();
  }

  /** The range is another one now, or is led by another: what was seen of it counts no more. */
  reset(): void {
    this.#size.reset();
    this.#heat.reset();
  }
}
