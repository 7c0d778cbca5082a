import { type Bytes, type Clock, compareBytes } from '@remora/base';
import type { RangeRequest, SplitLoads } from '@remora/protocol';
import { keyOfRequest } from '../../state/request-keys.ts';
import type { RangeLoad } from './range-load.ts';

export interface LoadSplitDeciderDeps {
  readonly clock: Clock;
  readonly load: Pick<RangeLoad, 'rates'>;
  /** Undefined: load is not a reason to split now. */
  readonly loads: () => SplitLoads | undefined;
}

interface Sample {
  readonly key: Bytes;
  readonly bytes: number;
}

const SAMPLES_MAX = 512;
/** With fewer samples, there is no statement about where the load is. */
const SAMPLES_MIN = 64;
/**
 * At least this share of the load must lie on either side. Otherwise a split gains nothing: one key or lock has most of
 * the load.
 */
const SIDE_SHARE_MIN = 0.25;
/** The fractional parts of its multiples lie evenly between 0 and 1, whichever multiples are left out. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/**
 * A leader's watch over the load of its range, and where in the range that load is.
 *
 * RH1. While a range is not hot, a request costs a comparison. While it is hot, keys of requests are sampled: all of
 *      them, then every second one and so on, in bounded memory.
 * RH2. Multiples of the golden ratio select the sampled requests. That needs no randomness, and no pattern of clients
 *      (each key in turn, say) can coincide with it.
 * RH3. The place divides the load, not the stored data: the requests, or the bytes that they read and write, whichever
 *      is further above its limit. The place is a key that was requested, and therefore a border (bounds.ts B2).
 */
export class LoadSplitDecider {
  readonly #deps: LoadSplitDeciderDeps;
  /** Since when the load has been above the limits. */
  #hotSinceMs: number | undefined;
  #samples: Sample[] = [];
  #seen = 0;
  /** The share of requests that is sampled. */
  #share = 1;
  #candidate: Bytes | undefined;

  constructor(deps: LoadSplitDeciderDeps) {
    this.#deps = deps;
  }

  /** Where to split; what lies behind is not known. */
  get candidate(): Bytes | undefined {
    return this.#candidate;
  }

  /** Whether requests should be reported now. */
  get watching(): boolean {
    return this.#hotSinceMs !== undefined;
  }

  /** `bytes`: what the request read or wrote. */
  asked(request: Pick<RangeRequest, 'body'>, bytes: number): void {
    if (this.#hotSinceMs === undefined) return; // RH1
    this.#seen++;
    if ((this.#seen * GOLDEN) % 1 >= this.#share) return; // RH2
    const key = keyOfRequest(request);
    if (key === undefined) return;
    this.#samples.push({ key, bytes });
    if (this.#samples.length < SAMPLES_MAX) return;
    this.#samples = this.#samples.filter((_key, i) => (i * GOLDEN) % 1 < 0.5);
    this.#share /= 2;
  }

  /** The range was changed since it was watched, or another replica leads it. */
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

  /** Called periodically, on the leader. */
  tick(): void {
    const { clock } = this.#deps;
    const loads = this.#deps.loads();
    const excess = loads && this.#excess(loads);
    if (loads === undefined || excess === undefined) return this.reset();
    const nowMs = clock.monotonicMs();
    this.#hotSinceMs ??= nowMs;
    if (nowMs - this.#hotSinceMs < loads.holdMs || this.#samples.length < SAMPLES_MIN) return;
    // Old samples say less and less about where the load is.
    this.#candidate = dividing(this.#samples, excess === 'bytes' ? ({ bytes }) => bytes : () => 1);
    this.#hotSinceMs = nowMs;
    this.#forget();
  }

  /** The rate that is further above its limit; undefined when neither is above it. */
  #excess({ requestsPerS, bytesPerS }: SplitLoads): 'requests' | 'bytes' | undefined {
    const rates = this.#deps.load.rates();
    const requests = shareOf(rates.readsPerS + rates.writesPerS, requestsPerS);
    const bytes = shareOf(rates.readBytesPerS + rates.writeBytesPerS, bytesPerS);
    if (Math.max(requests, bytes) < 1) return undefined;
    return bytes > requests ? 'bytes' : 'requests';
  }
}

function shareOf(rate: number, limit: number): number {
  return limit > 0 ? rate / limit : 0;
}

/** RH3. The sampled key that divides the weight of the samples best; undefined if none divides it well enough. */
function dividing(samples: readonly Sample[], weightOf: (sample: Sample) => number): Bytes | undefined {
  const sorted = [...samples].sort((a, b) => compareBytes(a.key, b.key));
  const total = sorted.reduce((sum, sample) => sum + weightOf(sample), 0);
  let before = 0;
  let best: { readonly at: Bytes; readonly off: number } | undefined;
  for (const [i, sample] of sorted.entries()) {
    const previous = sorted[i - 1];
    const off = Math.abs(before / total - 0.5);
    before += weightOf(sample);
    if (previous === undefined || compareBytes(previous.key, sample.key) === 0) continue;
    if (best === undefined || off < best.off) best = { at: sample.key, off };
  }
  return best !== undefined && best.off <= 0.5 - SIDE_SHARE_MIN ? best.at : undefined;
}
