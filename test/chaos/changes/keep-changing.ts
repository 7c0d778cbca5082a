/** Ranges are split, merged, moved, and handed to other leaders, all at the same time, for as long as it is to last. */
import { type Random, ServiceError } from '@remora/base';
import { drawChange, type Layout } from './draw.ts';
import { CHANGES, type ChangeKind, type RangeDesk } from './range-desk.ts';

export interface ChangingDeps {
  readonly desk: RangeDesk;
  readonly random: Random;
  /** Aborted when ranges are to stay as they are. */
  readonly signal: AbortSignal;
  /** At most so long; less when the signal aborts. */
  pause(ms: number): Promise<void>;
}

/**
 * Changes of a kind under way at a time: those that take longer are begun more often, so that as many come to their
 * end.
 */
const HANDS: Readonly<Record<ChangeKind, number>> = { split: 4, merge: 4, move: 3, transfer: 1 };
/** Between two changes of one hand, on average half of it. */
const REST_MS_MAX = 1_000;

/** Resolves when the signal has aborted and nothing is under way any more. */
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

/** Whether something was done, and came to its end. */
export async function changeOnce(kind: ChangeKind, desk: RangeDesk, random: Random): Promise<boolean> {
  const layout = await layoutOf(desk);
  const wanted = layout && drawChange(kind, layout, random);
  return wanted !== undefined && desk.carryOut(wanted);
}

/** Undefined: nobody can tell now. */
async function layoutOf(desk: RangeDesk): Promise<Layout | undefined> {
  try {
    const [ranges, stores] = await Promise.all([desk.ranges(), desk.stores()]);
    return { round: desk.round, ranges, stores, isFree: (range) => desk.isFree(range) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return undefined;
  }
}
