/** Chance that favours the least of one choice: random waits of an election are often the shortest possible. */
import type { Random } from '@remora/base';

export class HastyRandom implements Random {
  readonly #random: Random;
  readonly #bound: number;

  /** `bound` tells the choice from others. */
  constructor(random: Random, bound: number) {
    this.#random = random;
    this.#bound = bound;
  }

  int(bound: number): number {
    const drawn = this.#random.int(bound);
    return bound === this.#bound && this.#random.int(2) === 0 ? 0 : drawn;
  }

  bytes(length: number): Buffer {
    return this.#random.bytes(length);
  }
}
