/** Splits, merges and moves ranges, and transfers leaderships, all at the same time, until the signal aborts. */
import { type Random, ServiceError } from '@remora/base';
import { drawChange, type Layout } from './draw.ts';
import { CHANGES, type ChangeKind, type RangeDesk } from './range-desk.ts';

export interface ChangingDeps {
  readonly desk: RangeDesk;
  readonly random: Random;
  /** Aborts when ranges must not change any more. */
  readonly signal: AbortSignal;
  /** Waits for this long, or less if the signal aborts. */
  pause(ms: number): Promise<void>;
}

/** How many changes of each kind run at a time. Slower kinds get more, so that equally many complete. */
const HANDS: Readonly<Record<ChangeKind, number>> = { split: 4, merge: 4, move: 3, transfer: 1 };
/** The longest pause between two changes of one hand. The average is half of it. */
const REST_MS_MAX = 1_000;

/** Resolves when the signal has aborted and no change is in progress any more. */
export async function keepChanging(deps: ChangingDeps): Promise<void> {
  const hands = CHANGES.flatMap((kind) => Array.from({ length: HANDS[kind] }, () => keepOn(kind, deps)));
  await Promise.all(hands);
}

async function keepOn(kind: ChangeKind, { desk, random, signal, pause }: ChangingDeps): Promise<void> {
  while (!signal.aborted) {
    await changeOnce(kind, desk, random);
    await pause(random.int(REST_MS_MAX));
  }
}

/** What became of a change: nothing is begun if no node answers, or if the ranges do not allow such a change now. */
export type ChangeOutcome = 'done' | 'failed' | 'unanswered' | 'impossible';

export async function changeOnce(kind: ChangeKind, desk: RangeDesk, random: Random): Promise<ChangeOutcome> {
  const layout = await layoutOf(desk);
  if (layout === undefined) return 'unanswered';
  const wanted = drawChange(kind, layout, random);
  if (wanted === undefined) return 'impossible';
  return (await desk.carryOut(wanted)) ? 'done' : 'failed';
}

/** Undefined: no node can answer now. */
async function layoutOf(desk: RangeDesk): Promise<Layout | undefined> {
  try {
    const [ranges, stores] = await Promise.all([desk.ranges(), desk.stores()]);
    return { round: desk.round, ranges, stores, isFree: (range) => desk.isFree(range) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return undefined;
  }
}
