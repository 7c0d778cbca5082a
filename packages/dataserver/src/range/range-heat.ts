import { type Bytes, type Clock, compareBytes } from '@remora/base';
import type { RangeRequest } from '@remora/protocol';
import { keyOfRequest } from '../state/request-keys.ts';
import type { RangeLoad } from './range-load.ts';

/** How much is asked of a range before its load is a reason to split it. */
export interface SplitLoads {
  /** Reads and writes; 0: however many. */
  readonly requestsPerS: number;
  /** Read and written; 0: however many. */
  readonly bytesPerS: number;
  /** For how long. */
  readonly holdMs: number;
}

export interface RangeHeatDeps {
  readonly clock: Clock;
  readonly load: Pick<RangeLoad, 'rates'>;
  /** Absent: load is no reason. */
  readonly loads: SplitLoads | undefined;
}

const SAMPLES_MAX = 512;
/** With fewer nothing is said about where the load is. */
const SAMPLES_MIN = 64;
/** At least this share of the load lies on either side: otherwise nothing is gained, one key or lock has most of it. */
const SIDE_SHARE_MIN = 0.25;
/** Multiples of it, without their whole part, lie evenly between 0 and 1, whichever of them are left out. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/**
 * A leader's watch over the load of its range, and where in the range that load is.
 *
 * RH1. While a range is not hot, a request costs a comparison. While it is, keys of requests are sampled: all of them, then
 *      every second and so on, in bounded memory.
 * RH2. Which requests are sampled follows the multiples of the golden ratio. It takes no chance, and no pattern of clients
 *      (each key in turn, say) falls in step with it.
 * RH3. The place divides the load, not the bytes. It is a key that was asked for, and so a border (bounds.ts B2).
 */
export class RangeHeat {
  readonly #deps: RangeHeatDeps;
  /** Since when the load is above the limits. */
  #hotSinceMs: number | undefined;
  #samples: Bytes[] = [];
  #seen = 0;
  /** The share of requests that is sampled. */
  #share = 1;
  #candidate: Bytes | undefined;

  constructor(deps: RangeHeatDeps) {
    this.#deps = deps;
  }

  /** Where to split; what lies behind is not known. */
  get candidate(): Bytes | undefined {
    return this.#candidate;
  }

  asked(request: Pick<RangeRequest, 'body'>): void {
    if (this.#hotSinceMs === undefined) return; // RH1
    this.#seen++;
    if ((this.#seen * GOLDEN) % 1 >= this.#share) return; // RH2
    const key = keyOfRequest(request);
    if (key === undefined) return;
    this.#samples.push(key);
    if (this.#samples.length < SAMPLES_MAX) return;
    this.#samples = this.#samples.filter((_key, i) => (i * GOLDEN) % 1 < 0.5);
    this.#share /= 2;
  }

  /** The range is another one than was watched, or is led by another. */
  reset(): void {
    this.#hotSinceMs = undefined;
    this.#candidate = undefined;
    this.#forget();
  }

  #forget(): void {
    this.#samples = [];
    this.#seen = 0;
    this.#share = 1;
  }

  /** Called now and then, on the leader. */
  tick(): void {
    const { loads, clock } = this.#deps;
    if (loads === undefined) return;
    if (!this.#isHot(loads)) return this.reset();
    const nowMs = clock.monotonicMs();
    this.#hotSinceMs ??= nowMs;
    if (nowMs - this.#hotSinceMs < loads.holdMs || this.#samples.length < SAMPLES_MIN) return;
    // Where the load was when it began says less with time.
    this.#candidate = dividing(this.#samples);
    this.#hotSinceMs = nowMs;
    this.#forget();
  }

  #isHot({ requestsPerS, bytesPerS }: SplitLoads): boolean {
    const rates = this.#deps.load.rates();
    const requests = rates.readsPerS + rates.writesPerS;
    const bytes = rates.readBytesPerS + rates.writeBytesPerS;
    return (requestsPerS > 0 && requests >= requestsPerS) || (bytesPerS > 0 && bytes >= bytesPerS);
  }
}

/** RH3. The sampled key that divides the samples best; undefined when none does well enough. */
function dividing(samples: readonly Bytes[]): Bytes | undefined {
  const sorted = [...samples].sort(compareBytes);
  let best: { readonly at: Bytes; readonly off: number } | undefined;
  for (const [i, at] of sorted.entries()) {
    const previous = sorted[i - 1];
    if (previous === undefined || compareBytes(previous, at) === 0) continue;
    const off = Math.abs(i / sorted.length - 0.5);
    if (best === undefined || off < best.off) best = { at, off };
  }
  return best !== undefined && best.off <= 0.5 - SIDE_SHARE_MIN ? best.at : undefined;
}
