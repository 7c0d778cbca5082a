import type { Random } from '@remora/base';

const RESOLUTION = 2 ** 30;

/**
 * When requests of an open-loop load are due: a Poisson process that depends only on the seed. Earlier requests never
 * delay later ones.
 */
export class Arrivals {
  readonly #random: Random;
  readonly #meanGapMs: number;
  #nextMs: number;

  constructor(random: Random, begin: { readonly ratePerSecond: number; readonly atMs: number }) {
    this.#random = random;
    this.#meanGapMs = 1_000 / begin.ratePerSecond;
    this.#nextMs = begin.atMs + this.#gapMs();
  }

  /** The next arrival, if it is due by now. */
  due(nowMs: number): number | undefined {
    if (this.#nextMs > nowMs) return undefined;
    const dueMs = this.#nextMs;
    this.#nextMs += this.#gapMs();
    return dueMs;
  }

  #gapMs(): number {
    const uniform = (this.#random.int(RESOLUTION) + 1) / RESOLUTION;
    return -Math.log(uniform) * this.#meanGapMs;
  }
}
