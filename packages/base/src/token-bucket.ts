export interface TokenBucketOptions {
  readonly ratePerSecond: number;
  /** The largest number of tokens that accumulate; at least 1. */
  readonly burst: number;
}

/**
 * A token bucket: it starts with `burst` tokens, gains `ratePerSecond` tokens per second, and never holds more than
 * `burst`.
 *
 * T1. In any span of t seconds, `tryTake` succeeds at most `burst + rate · t` times.
 * T2. A single caller that was refused succeeds if it tries again once the time of one token has passed.
 * T3. `take` always succeeds. Tokens that it takes beyond the balance are owed, up to `burst`: `tryTake` succeeds again
 *     at the latest `(burst + 1) / rate` seconds after the last `take`.
 */
export class TokenBucket {
  readonly #ratePerMs: number;
  readonly #burst: number;
  #tokens: number;
  #countedMs: number;

  constructor({ ratePerSecond, burst }: TokenBucketOptions, nowMs: number) {
    this.#ratePerMs = ratePerSecond / 1_000;
    this.#burst = Math.max(1, burst);
    this.#tokens = this.#burst;
    this.#countedMs = nowMs;
  }

  /** Takes a token if there is one. `nowMs` is monotonic. */
  tryTake(nowMs: number): boolean {
    this.#count(nowMs);
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Takes a token, owing it if there is none (T3). */
  take(nowMs: number): void {
    this.#count(nowMs);
    this.#tokens = Math.max(-this.#burst, this.#tokens - 1);
  }

  #count(nowMs: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#countedMs) * this.#ratePerMs);
    this.#countedMs = nowMs;
  }
}
