import type { RangeRequest } from '@remora/protocol';
import { heatBorder } from '@remora/protocol';
import { keyOfRequest } from '../state/request-keys.ts';

/** The part of a request that names its key. */
export type KeyedRequest = Pick<RangeRequest, 'body'>;

interface Sample {
  /** A border of columns (protocol/heat/heat-key.ts). */
  readonly key: string;
  readonly bytes: number;
}

/** What one sampled key stands for: a part of all requests, and of all their bytes. */
export interface KeyLoad {
  readonly key: string;
  /** In how many samples it was. */
  readonly samples: number;
  readonly requests: number;
  readonly bytes: number;
}

/** Above this number, every other sample is dropped. */
export const KEY_SAMPLES_MAX = 64;
/** The fractional parts of its multiples lie evenly between 0 and 1, whichever multiples are left out. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/**
 * The reads of a range, or its writes: how many there were since the last `take`, and for which keys.
 *
 * SL1. All are counted, and the keys of some are sampled: all at first, then on average every second, every fourth and
 *      so on, in bounded memory. A request that is not sampled costs three additions and a comparison.
 * SL2. Multiples of the golden ratio choose the distance to the next sample, between 1 and about twice the average. So
 *      no pattern of clients, such as each key in turn, can coincide with it (load-split-decider.ts RH2).
 * SL3. The sampled keys share what was counted exactly: requests evenly, and bytes as the samples had them.
 */
export class SampledLoad {
  #requests = 0;
  #bytes = 0;
  #untilNext = 1;
  /** The average distance of samples. */
  #distance = 1;
  #taken = 0;
  #samples: Sample[] = [];

  get requests(): number {
    return this.#requests;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `samplesMax`: how many samples there may be now. SL1. */
  count(request: KeyedRequest, bytes: number, samplesMax: () => number): void {
    this.#requests++;
    this.#bytes += bytes;
    if (--this.#untilNext <= 0) this.#sample(request, bytes, samplesMax());
  }

  #sample(request: KeyedRequest, bytes: number, max: number): void {
    this.#taken++;
    this.#untilNext = 1 + Math.floor(((this.#taken * GOLDEN) % 1) * (2 * this.#distance - 1)); // SL2
    const key = keyOfRequest(request);
    if (key === undefined) return;
    this.#samples.push({ key: heatBorder(key), bytes });
    while (this.#samples.length > max && this.#samples.length > 1) {
      this.#samples = this.#samples.filter((_sample, i) => i % 2 === 0);
      this.#distance *= 2;
    }
  }

  /** Returns what was counted, by key and in their order, and begins again. Empty if no request named a key. */
  take(): readonly KeyLoad[] {
    const [samples, requests, bytes] = [this.#samples, this.#requests, this.#bytes];
    this.#requests = 0;
    this.#bytes = 0;
    this.#untilNext = 1;
    this.#distance = 1;
    this.#taken = 0;
    this.#samples = [];
    return shared(samples, requests, bytes);
  }
}

/** SL3. Each share is the difference of two rounded sums, so all of them together are exact. */
function shared(samples: readonly Sample[], requests: number, bytes: number): readonly KeyLoad[] {
  const sorted = [...samples].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const sampledBytes = sorted.reduce((sum, sample) => sum + sample.bytes, 0);
  const loads: { key: string; samples: number; requests: number; bytes: number }[] = [];
  let [seen, seenBytes, given, givenBytes] = [0, 0, 0, 0];
  for (const sample of sorted) {
    seen++;
    seenBytes += sample.bytes;
    const upTo = Math.round((requests * seen) / sorted.length);
    const part = sampledBytes > 0 ? seenBytes / sampledBytes : seen / sorted.length;
    const bytesUpTo = Math.round(bytes * part);
    let load = loads.at(-1);
    if (load?.key !== sample.key) {
      load = { key: sample.key, samples: 0, requests: 0, bytes: 0 };
      loads.push(load);
    }
    load.samples++;
    load.requests += upTo - given;
    load.bytes += bytesUpTo - givenBytes;
    [given, givenBytes] = [upTo, bytesUpTo];
  }
  return loads;
}
