/**
 * A random source that favours the smallest value of one kind of draw: random election waits are often the shortest
 * possible.
 */
import type { Random } from '@remora/base';

export class HastyRandom implements Random {
  readonly #random: Random;
  readonly #bound: number;

  /** `bound` identifies the kind of draw. */
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
