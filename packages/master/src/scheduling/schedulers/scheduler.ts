import type { RangeSettings } from '../../admin/range-settings.ts';
import type { Plan } from '../operator.ts';
import type { SettingName } from '../settings.ts';
import type { SchedulingView } from '../view.ts';

/**
 * Proposes plans, the best first. The plans of one proposal are admitted together or not at all. The scheduler learns
 * whether they were, so that its next proposals take this into account. Returns why it proposes no more, for people.
 */
export type Proposals = Generator<readonly Plan[], string, boolean>;

/**
 * Balances one kind of load over the nodes.
 *
 * B1. Every proposal improves the scheduler's metric by more than a threshold, and the scheduler starts only above a
 *     larger threshold. So while the load of the cluster does not change, the proposals terminate, and no new ones
 *     follow.
 * B2. A scheduler does not push a metric with priority over its own out of the band in which the scheduler of that
 *     metric is idle. So one scheduler never creates work for another.
 */
export interface Scheduler {
  readonly name: string;
  readonly desc: string;
  /** The cluster settings that it uses. */
  readonly settings: readonly (SettingName | keyof RangeSettings)[];
  propose(view: SchedulingView): Proposals;
  /** Returns a copy for dry runs; absent: it has no memory, and can be asked itself. */
  copy?(): Scheduler;
}

/** This many refusals in a row end a round: limits are reached. */
export const REFUSALS_MAX = 16;

/**
 * The smallest difference in counts that justifies a move: above the tolerance, and never 1, which may be unavoidable.
 */
export function countGap(mean: number, tolerancePercent: number): number {
  return Math.max(2, Math.floor((mean * tolerancePercent) / 100) + 1);
}

export function meanOf(values: Iterable<number>): number {
  let [sum, count] = [0, 0];
  for (const value of values) {
    sum += value;
    count += 1;
  }
  return count === 0 ? 0 : sum / count;
}
