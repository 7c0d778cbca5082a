/**
 * Takes away from a history that has no explanation what has nothing to do with that.
 *
 * Z1. Each step only gives the rest more room: if what is left has no explanation, neither had what was there before.
 *     A step leaves out operations that only observe (D2), turns ended ones into ones of unknown outcome (H2: whatever
 *     explains the first explains the second), and leaves out what the model knows to make no difference (`narrow`). A
 *     write that a read depends on is never just left out: that would blame the read.
 * Z2. It ends: tries are bounded, and one that is undecided counts as one that has an explanation.
 */
import type { HistoryRecord } from './history.ts';
import type { Model } from './models.ts';
import { search } from './search.ts';

export interface ShrinkOptions {
  readonly statesMax: number;
}

/** Of the search, in all and for one try; and how often the history is gone through. */
const STEPS_MAX = 1_500_000;
const TRY_STEPS_MAX = 30_000;
const TRIES_MAX = 2_000;

/** The part of a history without explanation that is left, by begin; as small as it gets in single steps (Z2). */
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

/** Z1, for the operations from `begin` to `end`; undefined where nothing would change. */
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

/** An operation as it was known before its answer came. */
export function openAgain(op: HistoryRecord): HistoryRecord {
  const { out: _, ...asked } = op;
  return op.t1 === null ? op : { ...asked, ok: false, t1: null };
}
