/**
 * Which faults befall the cluster, one after another, drawn from the seed.
 *
 * D1. Kinds come up equally often: they are dealt like cards, and shuffled when all are dealt.
 * D2. Now and then two faults of different categories come at the same time.
 * D3. The next one comes when the cluster is whole again, and has rested for a moment.
 */
import type { Random } from '@remora/base';
import { Deck } from './deck.ts';
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
  const deck = new Deck(faults, random); // D1.
  const one = async (fault: Fault): Promise<void> => {
    const fromMs = nowMs();
    const what = await fault.befall(world, random);
    befallen({ kind: fault.kind, what, fromMs, toMs: nowMs() });
  };
  while (!signal.aborted) {
    const fault = deck.deal();
    const other = random.int(TOGETHER) === 0 ? deck.dealIf(({ category }) => category !== fault.category) : undefined;
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
