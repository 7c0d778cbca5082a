/** One direction of the network between two parties, and what is wrong with it at the moment. */
import type { Random } from '@remora/base';

export interface LinkFaults {
  /** Nothing gets through; it is delivered when the link is whole again, as TCP does with lost packets. */
  readonly blocked?: boolean;
  /** Connections are closed and new ones refused, so that both ends notice at once. */
  readonly refused?: boolean;
  readonly delayMs?: number;
  /** At most this much more, drawn for each piece. */
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

  /** How long the next piece takes. */
  drawDelayMs(): number {
    let ms = 0;
    for (const { delayMs = 0, jitterMs = 0 } of this.#faults) ms += delayMs + this.#random.int(jitterMs + 1);
    return ms;
  }

  /** The returned function takes the fault away again. */
  add(faults: LinkFaults): () => void {
    const own = { ...faults };
    this.#faults.add(own);
    this.#changed();
    return () => {
      if (this.#faults.delete(own)) this.#changed();
    };
  }

  /** `listener` is called after each change, until the returned function is. */
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
