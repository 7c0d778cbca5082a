/**
 * What goes from one node to another beside the core's messages: in its own time, in any order, more than once, or
 * never.
 */

const UNDER_WAY_MAX = 400;

export class LateCalls {
  readonly #calls: (() => void)[] = [];

  get count(): number {
    return this.#calls.length;
  }

  add(arrive: () => void): void {
    this.#calls.push(arrive);
    if (this.#calls.length > UNDER_WAY_MAX) this.#calls.shift();
  }

  /** Some call arrives; it may do so again later. */
  deliver(pick: number, again: boolean): void {
    if (this.#calls.length === 0) return;
    const index = pick % this.#calls.length;
    const arrive = this.#calls[index] as () => void;
    if (!again) this.#calls.splice(index, 1);
    arrive();
  }

  drop(pick: number): void {
    if (this.#calls.length > 0) this.#calls.splice(pick % this.#calls.length, 1);
  }
}
