import type { Clock } from '@remora/base';

/** Without events, a rate falls by half in about seven seconds. */
const SMOOTHING_MS = 10_000;
/** Shorter time spans are not evaluated separately: a count over one says little. */
const SPAN_MIN_MS = 500;

/** Events per second, smoothed exponentially. Counting costs an addition. */
export class Rate {
  #counted = 0;
  #sinceMs: number;
  #perS = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  count(amount: number): void {
    this.#counted += amount;
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

/** The load on a range's leader. */
export class RangeLoad {
  readonly #clock: Clock;
  readonly #reads: Rate;
  readonly #readBytes: Rate;
  readonly #writes: Rate;
  readonly #writeBytes: Rate;

  constructor(clock: Clock) {
    this.#clock = clock;
    const nowMs = clock.monotonicMs();
    this.#reads = new Rate(nowMs);
    this.#readBytes = new Rate(nowMs);
    this.#writes = new Rate(nowMs);
    this.#writeBytes = new Rate(nowMs);
  }

  read(bytes: number): void {
    this.#reads.count(1);
    this.#readBytes.count(bytes);
  }

  wrote(bytes: number): void {
    this.#writes.count(1);
    this.#writeBytes.count(bytes);
  }

  rates() {
    const nowMs = this.#clock.monotonicMs();
    return {
      readsPerS: this.#reads.perS(nowMs),
      readBytesPerS: this.#readBytes.perS(nowMs),
      writesPerS: this.#writes.perS(nowMs),
      writeBytesPerS: this.#writeBytes.perS(nowMs),
    };
  }
}
