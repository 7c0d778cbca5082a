import type { Random } from '@remora/base';

/** Draws from a seeded source. */
export class Draw {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  int(bound: number): number {
    return this.#random.int(bound);
  }

  /** True in so many of a hundred. */
  percent(chance: number): boolean {
    return this.#random.int(100) < chance;
  }

  of<T>(all: readonly T[]): T {
    const drawn = all[this.#random.int(all.length)];
    if (drawn === undefined) throw new Error('there is nothing to draw from');
    return drawn;
  }

  /** By weights, which are whole numbers. */
  weighted<T>(all: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.#random.int(all.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, value] of all) {
      left -= weight;
      if (left < 0) return value;
    }
    throw new Error('there is nothing to draw from');
  }

  times<T>(count: number, make: (i: number) => T): readonly T[] {
    return Array.from({ length: count }, (_, i) => make(i));
  }
}
