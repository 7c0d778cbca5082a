/**
 * The faults of the cluster, one after another, drawn from the seed.
 *
 * D1. All kinds happen equally often: they are dealt like cards, and reshuffled once all are dealt.
 * D2. Now and then two faults of different categories happen at the same time.
 * D3. The next fault comes after the cluster is healthy again and has rested for a moment.
 */
import type { Random } from '@remora/base';
import { Deck } from './deck.ts';
import { drawMs, type Fault, type FaultWorld } from './faults/fault.ts';

/** One in this many comes together with another. */
const TOGETHER = 4;
const OVERLAP_MS_MAX = 1_500;
const REST_MS_MIN = 200;
const REST_MS_MAX = 2_000;

export interface Befallen {
  readonly kind: string;
  readonly what: string;
  readonly fromMs: number;
  /** When everything about it was restored. */
  readonly toMs: number;
}

export interface ScheduleDeps {
  readonly world: FaultWorld;
  readonly faults: readonly Fault[];
  readonly random: Random;
  readonly nowMs: () => number;
  readonly befallen: (fault: Befallen) => void;
}

/** Runs until `world.signal` aborts. @throws Error if the cluster does not recover after a fault. */
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
