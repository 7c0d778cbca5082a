import type { Clock } from '@remora/base';
import type { RangeHeat } from '../../heat/range-heat.ts';
import type { KeyedRequest } from '../../heat/sampled-load.ts';

/** Without events, a rate falls by half in about seven seconds. */
const SMOOTHING_MS = 10_000;
/** Shorter time spans are not evaluated separately: a count over one says little. */
const SPAN_MIN_MS = 500;

/** Events per second, smoothed exponentially. Counting costs an addition. */
class Rate {
  #counted = 0;
  #sinceMs: number;
  #perS = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  count(amount: number): void {
    this.#counted += amount;
  }

  get quiet(): boolean {
    return this.#counted === 0 && this.#perS < QUIET_PER_S;
  }

  perS(nowMs: number): number {
    const spanMs = nowMs - this.#sinceMs;
    if (spanMs < SPAN_MIN_MS) return this.#perS;
    const weight = 1 - Math.exp(-spanMs / SMOOTHING_MS);
    this.#perS += weight * ((this.#counted * 1_000) / spanMs - this.#perS);
    this.#counted = 0;
    this.#sinceMs = nowMs;
    return this.#perS;
  }
}

/** Rates approach 0 without end: when all are below this, they count as 0. */
const QUIET_PER_S = 0.01;

interface Rates {
  readonly reads: Rate;
  readonly readBytes: Rate;
  readonly writes: Rate;
  readonly writeBytes: Rate;
}

const NO_LOAD = { readsPerS: 0, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0 };

/** The load on a range's leader. A range that nobody uses keeps no rates. */
export class RangeLoad {
  readonly #clock: Clock;
  readonly #heat: Pick<RangeHeat, 'read' | 'wrote'>;
  readonly #onBegin: () => void;
  #rates: Rates | undefined;

  /** `heat` learns the keys of requests. `onBegin`: there is load where there was none. */
  constructor(clock: Clock, heat: Pick<RangeHeat, 'read' | 'wrote'>, onBegin: () => void = () => {}) {
    this.#clock = clock;
    this.#heat = heat;
    this.#onBegin = onBegin;
  }

  /** There is no load, and there has been none for a while. */
  get quiet(): boolean {
    return this.#rates === undefined;
  }

  read(request: KeyedRequest, bytes: number): void {
    const { reads, readBytes } = this.#rates ?? this.#begin();
    reads.count(1);
    readBytes.count(bytes);
    this.#heat.read(request, bytes);
  }

  wrote(request: KeyedRequest, bytes: number): void {
    const { writes, writeBytes } = this.#rates ?? this.#begin();
    writes.count(1);
    writeBytes.count(bytes);
    this.#heat.wrote(request, bytes);
  }

  #begin(): Rates {
    const nowMs = this.#clock.monotonicMs();
    const [reads, readBytes] = [new Rate(nowMs), new Rate(nowMs)];
    this.#rates = { reads, readBytes, writes: new Rate(nowMs), writeBytes: new Rate(nowMs) };
    this.#onBegin();
    return this.#rates;
  }

  rates() {
    if (this.#rates === undefined) return NO_LOAD;
    const { reads, readBytes, writes, writeBytes } = this.#rates;
    const nowMs = this.#clock.monotonicMs();
    const rates = {
      readsPerS: reads.perS(nowMs),
      readBytesPerS: readBytes.perS(nowMs),
      writesPerS: writes.perS(nowMs),
      writeBytesPerS: writeBytes.perS(nowMs),
    };
    if (reads.quiet && readBytes.quiet && writes.quiet && writeBytes.quiet) this.#rates = undefined;
    return rates;
  }
}
