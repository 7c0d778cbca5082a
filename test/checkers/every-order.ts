import type { HistoryRecord } from './history.ts';
import type { Model } from './models.ts';

/** Tries every order of every selection of unknown operations, without pruning. */
export function hasExplanation<S>(model: Model<S>, ops: readonly HistoryRecord[]): boolean {
  const explore = (state: S, left: readonly HistoryRecord[]): boolean => {
    if (left.every(({ t1 }) => t1 === null)) return true;
    const firstEnd = Math.min(...left.map(({ t1 }) => t1 ?? Number.POSITIVE_INFINITY));
    return left.some((candidate) => {
      if (candidate.t0 > firstEnd) return false;
      const after = model.step(state, candidate);
      return (
        after !== undefined &&
        explore(
          after,
          left.filter((other) => other !== candidate),
        )
      );
    });
  };
  return explore(model.initial, ops);
}
