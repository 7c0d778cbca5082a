import type { Random } from '@remora/base';

/** Deals cards in random order. Each card is dealt once before all are shuffled again. */
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

  /** The next card in the rest of the deck that fits, if there is one. */
  dealIf(fits: (card: Card) => boolean): Card | undefined {
    const at = this.#cards.findLastIndex(fits);
    return at < 0 ? undefined : this.#cards.splice(at, 1)[0];
  }

  /** The card is dealt once more before all are shuffled again, after the remaining ones. */
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
