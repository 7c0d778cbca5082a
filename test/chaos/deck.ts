import type { Random } from '@remora/base';

/** Cards in random order: each is dealt once before all are shuffled again. */
export class Deck<Card> {
  readonly #all: readonly Card[];
  readonly #random: Random;
  #cards: Card[] = [];

  constructor(all: readonly Card[], random: Random) {
    this.#all = all;
    this.#random = random;
  }

  deal(): Card {
    if (this.#cards.length === 0) this.#shuffle();
    const card = this.#cards.pop();
    if (card === undefined) throw new Error('there are no cards');
    return card;
  }

  /** The next one of these, if there is one in the rest of the deck. */
  dealIf(fits: (card: Card) => boolean): Card | undefined {
    const at = this.#cards.findLastIndex(fits);
    return at < 0 ? undefined : this.#cards.splice(at, 1)[0];
  }

  /** It is dealt once more before all are shuffled again, behind those that are left. */
  putBack(card: Card): void {
    this.#cards.unshift(card);
  }

  #shuffle(): void {
    this.#cards = [...this.#all];
    for (let i = this.#cards.length - 1; i > 0; i--) {
      const j = this.#random.int(i + 1);
      const [a, b] = [this.#cards[i], this.#cards[j]];
      if (a === undefined || b === undefined) continue;
      this.#cards[i] = b;
      this.#cards[j] = a;
    }
  }
}
