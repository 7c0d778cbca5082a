/** One direction of the network between two parties, with its current faults. */
import type { Random } from '@remora/base';

export interface LinkFaults {
  /** Nothing gets through. The data is delivered once the link is intact again, as TCP does with lost packets. */
  readonly blocked?: boolean;
  /** Connections are closed and new ones refused, so that both ends notice at once. */
  readonly refused?: boolean;
  readonly delayMs?: number;
  /** The largest additional delay. It is drawn for each piece. */
  readonly jitterMs?: number;
}

export class Link {
  readonly #random: Random;
  readonly #faults = new Set<LinkFaults>();
  readonly #listeners = new Set<() => void>();

  constructor(random: Random) {
    this.#random = random;
  }

  get blocked(): boolean {
    return this.#some(({ blocked }) => blocked);
  }

  get refused(): boolean {
    return this.#some(({ refused }) => refused);
  }

  /** The delay of the next piece. */
  drawDelayMs(): number {
    let ms = 0;
    for (const { delayMs = 0, jitterMs = 0 } of this.#faults) ms += delayMs + this.#random.int(jitterMs + 1);
    return ms;
  }

  /** The returned function removes the fault. */
  add(faults: LinkFaults): () => void {
    const own = { ...faults };
    this.#faults.add(own);
    this.#changed();
    return () => {
      if (this.#faults.delete(own)) this.#changed();
    };
  }

  /** Calls `listener` after each change, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #some(is: (faults: LinkFaults) => boolean | undefined): boolean {
    for (const faults of this.#faults) if (is(faults)) return true;
    return false;
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
