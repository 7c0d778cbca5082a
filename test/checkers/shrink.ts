/**
 * Removes from a history without an explanation everything that is irrelevant for that.
 *
 * Z1. Each step only relaxes the history: if the result has no explanation, the previous history had none either. A
 *     step removes operations that only observe (D2), gives completed operations an unknown outcome (H2: everything
 *     that explains the former explains the latter), and removes what the model knows to make no difference (`narrow`).
 *     A write that a read depends on is never simply removed: that would make the read look wrong.
 * Z2. It terminates: the number of tries is limited, and an undecided try counts as one with an explanation.
 */
import type { HistoryRecord } from './history.ts';
import type { Model } from './models.ts';
import { search } from './search.ts';

export interface ShrinkOptions {
  readonly statesMax: number;
}

/** Limits of the search: steps in total, steps for one try, and passes over the history. */
const STEPS_MAX = 1_500_000;
const TRY_STEPS_MAX = 30_000;
const TRIES_MAX = 2_000;

/**
 * The remaining part of a history without an explanation, in the order of beginnings. No single step makes it smaller
 * (Z2).
 */
export function shrink<S>(
  model: Model<S>,
  history: readonly HistoryRecord[],
  { statesMax }: ShrinkOptions,
): readonly HistoryRecord[] {
  const byBegin = history.toSorted((a, b) => a.t0 - b.t0);
  let left = model.narrow?.(byBegin).ops ?? byBegin;
  let tries = 0;
  let steps = 0;
  for (let size = left.length; size >= 1; size = Math.floor(size / 2)) {
    for (let end = left.length; end > 0; end -= size) {
      if (tries >= TRIES_MAX || steps >= STEPS_MAX) return left;
      const begin = Math.max(0, end - size);
      const fewer = without(model, left, { begin, end });
      if (fewer === undefined) continue;
      tries += 1;
      const found = search(model, fewer, { statesMax, stepsMax: TRY_STEPS_MAX });
      steps += found.steps;
      if (found.result === 'violation') left = fewer;
    }
  }
  return left;
}

/** Z1, for the operations from `begin` to `end`. Undefined if nothing would change. */
function without<S>(
  model: Model<S>,
  ops: readonly HistoryRecord[],
  { begin, end }: { readonly begin: number; readonly end: number },
): readonly HistoryRecord[] | undefined {
  let changed = false;
  const kept = ops.flatMap((op, i) => {
    if (i < begin || i >= end) return [op];
    const open = openAgain(op);
    const droppable = model.observes(op) || model.observes(open);
    changed ||= droppable || op.t1 !== null;
    return droppable ? [] : [open];
  });
  return changed ? (model.narrow?.(kept).ops ?? kept) : undefined;
}

/** An operation as it was known before its answer arrived. */
export function openAgain(op: HistoryRecord): HistoryRecord {
  const { out: _, ...asked } = op;
  return op.t1 === null ? op : { ...asked, ok: false, t1: null };
}
