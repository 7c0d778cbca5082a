import {
  type ActivityReply,
  type HeatReply,
  type HeatRequest,
  masterActivity,
  masterHeat,
  masterRanges,
  type NodeNow,
  nodeNow,
  RANGES_PAGE_MAX,
  type RangeOverview,
} from '@remora/protocol';
import type { CallInfo } from '../calls.ts';
import type { ClusterCalls } from './cluster-calls.ts';

/** A node that is slower than this is left out of what happens now. */
const NOW_TIMEOUT_MS = 1_000;

/** What the masters' leader remembers of the last hours, and what nodes count now. */
export class HistoryApi {
  readonly #calls: ClusterCalls;

  constructor(calls: ClusterCalls) {
    this.#calls = calls;
  }

  activity(minutes: number, { timeoutMs }: Pick<CallInfo, 'timeoutMs'>): Promise<ActivityReply> {
    return this.#calls.master(masterActivity, { minutes }, timeoutMs);
  }

  heat(request: HeatRequest, { timeoutMs }: Pick<CallInfo, 'timeoutMs'>): Promise<HeatReply> {
    return this.#calls.master(masterHeat, request, timeoutMs);
  }

  /** What each of these nodes counts now; those that do not answer are missing. */
  async now(nodeIds: readonly number[]): Promise<readonly (NodeNow & { readonly nodeId: number })[]> {
    const answers = await Promise.all(
      nodeIds.map((nodeId) =>
        this.#calls.node(nodeId, nodeNow, undefined, NOW_TIMEOUT_MS).then(
          (now) => [{ nodeId, ...now }],
          () => [],
        ),
      ),
    );
    return answers.flat();
  }

  /** All ranges in the order of their keys, as the masters know them: their leaders are not asked. */
  async ranges({ timeoutMs }: Pick<CallInfo, 'timeoutMs'>): Promise<readonly RangeOverview[]> {
    const all: RangeOverview[] = [];
    let from: Uint8Array = new Uint8Array(0);
    for (;;) {
      const page = await this.#calls.master(masterRanges, { from, limit: RANGES_PAGE_MAX, rangeId: 0 }, timeoutMs);
      all.push(...page.ranges);
      const end = page.ranges.at(-1)?.descriptor.end;
      if (!page.more || end === undefined || end.length === 0) return all;
      from = end;
    }
  }
}
