/**
 * Which faults befall the cluster, one after another, drawn from the seed.
 *
 * D1. Kinds come up equally often: they are dealt like cards, and shuffled when all are dealt.
 * D2. Now and then two faults of different categories come at the same time.
 * D3. The next one comes when the cluster is whole again, and has rested for a moment.
 */
import type { Random } from '@remora/base';
import { drawMs, type Fault, type FaultWorld } from './faults/fault.ts';

/** One in so many comes with another. */
const TOGETHER = 4;
const OVERLAP_MS_MAX = 1_500;
const REST_MS_MIN = 200;
const REST_MS_MAX = 2_000;

export interface Befallen {
  readonly kind: string;
  readonly what: string;
  readonly fromMs: number;
  /** When everything about it was as before. */
  readonly toMs: number;
}

export interface ScheduleDeps {
  readonly world: FaultWorld;
  readonly faults: readonly Fault[];
  readonly random: Random;
  readonly nowMs: () => number;
  readonly befallen: (fault: Befallen) => void;
}

/** Until `world.signal` aborts. @throws Error when the cluster does not come back after a fault. */
export async function runFaults({ world, faults, random, nowMs, befallen }: ScheduleDeps): Promise<void> {
  const { signal, cluster } = world;
  const deck = new Deck(faults, random);
  const one = async (fault: Fault): Promise<void> => {
    const fromMs = nowMs();
    const what = await fault.befall(world, random);
    befallen({ kind: fault.kind, what, fromMs, toMs: nowMs() });
  };
  while (!signal.aborted) {
    const fault = deck.deal();
    const other = random.int(TOGETHER) === 0 ? deck.dealOtherThan(fault.category) : undefined;
    const second = async (): Promise<void> => {
      if (other === undefined) return;
      await world.pause(random.int(OVERLAP_MS_MAX));
      await one(other);
    };
    await Promise.all([one(fault), second()]);
    await cluster.untilHealthy();
    await world.pause(drawMs(random, REST_MS_MIN, REST_MS_MAX));
  }
}

/** D1. */
class Deck {
  readonly #faults: readonly Fault[];
  readonly #random: Random;
  #cards: Fault[] = [];

  constructor(faults: readonly Fault[], random: Random) {
    this.#faults = faults;
    this.#random = random;
  }

  deal(): Fault {
    if (this.#cards.length === 0) this.#shuffle();
    const card = this.#cards.pop();
    if (card === undefined) throw new Error('there are no faults');
    return card;
  }

  /** The next one of another category, if there is one in the rest of the deck. */
  dealOtherThan(category: Fault['category']): Fault | undefined {
    const at = this.#cards.findLastIndex((card) => card.category !== category);
    return at < 0 ? undefined : this.#cards.splice(at, 1)[0];
  }

  #shuffle(): void {
    this.#cards = [...this.#faults];
    for (let i = this.#cards.length - 1; i > 0; i--) {
      const j = this.#random.int(i + 1);
      const [a, b] = [this.#cards[i], this.#cards[j]];
      if (a === undefined || b === undefined) continue;
      this.#cards[i] = b;
      this.#cards[j] = a;
    }
  }
}
