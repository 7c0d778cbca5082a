import type { Bytes, Clock } from '@remora/base';
import type { NodeHeartbeat, OrderResult, RangeOrder, RangeReport } from '@remora/protocol';
import { type Carried, NOT_LEADING } from './range/membership/member-orders.ts';
import type { RangeReplica } from './range/range-replica.ts';
import type { WantedMerge } from './range/reshape/merge-driver.ts';
import { isSameReport, mayHaveChanged, rangeReport } from './range/stats/range-report.ts';
import type { OrderedSplit } from './splitting/splitter.ts';

export interface StoreHeartbeatDeps {
  readonly clock: Clock;
  readonly replica: (rangeId: number) => RangeReplica | undefined;
  readonly replicas: () => Iterable<RangeReplica>;
  /** Splits a range that is led here; without a key, in the middle. A repeated call returns the state of the split. */
  readonly split: (replica: RangeReplica, at: Bytes | undefined) => OrderedSplit;
  /** Merges a range that is led here with the range behind it. A repeated call returns the state of the merge. */
  readonly merge: (wanted: WantedMerge) => Carried;
  /** Whether a neighbour is being merged with a range that is led here. */
  readonly isMerging: (rangeId: number) => boolean;
}

const MERGING: Carried = { outcome: 'underWay', reason: 'a neighbour is being merged with the range' };

/** Up to this many ranges, every heartbeat has the reports of all. */
const REPEATED_MIN = 64;
/** With more, each report is repeated at least once in this many heartbeats, changed or not. */
const REPEATED_WITHIN = 30;

/**
 * Builds a store's part of each heartbeat, and carries out the orders for leaders in the master's answer.
 *
 * HB1. A heartbeat has the reports that differ from what the masters know: those of the heartbeats before it, each of
 *      which was answered. After one that was not, all reports are sent.
 * HB2. Unchanged reports are repeated, a share of them in each heartbeat: the masters examine a range again whenever
 *      they hear of it.
 */
export class StoreHeartbeat {
  readonly #deps: StoreHeartbeatDeps;
  /** Ranges whose replica here has not heard a leader for long. */
  readonly #silent = new Set<number>();
  /** Results of orders since the last report. */
  readonly #results: OrderResult[] = [];
  /** The last report of each range. */
  readonly #told = new Map<number, RangeReport>();
  /** The number of the last heartbeat. */
  #number = 0;

  constructor(deps: StoreHeartbeatDeps) {
    this.#deps = deps;
  }

  /**
   * A replica has not heard a leader for long: the next report asks whether the replica still belongs to its range
   * (design §5 ▸, traps 11).
   */
  silent(rangeId: number): void {
    this.#silent.add(rangeId);
  }

  /** Questions and results of orders are reported once. Both are added again if the report gets lost. */
  report(complete: boolean): Pick<NodeHeartbeat, 'ranges' | 'results' | 'changes'> {
    if (complete) this.#told.clear();
    const since = complete ? 0 : this.#number;
    const number = ++this.#number;
    const ranges = this.#news();
    this.#silent.clear();
    const ended = [...this.#told.keys()].filter((rangeId) => this.#deps.replica(rangeId) === undefined);
    for (const rangeId of ended) this.#told.delete(rangeId);
    return { ranges, results: this.#results.splice(0), changes: { number, since, ended } };
  }

  /** HB1, HB2. */
  #news(): readonly RangeReport[] {
    const nowMs = this.#deps.clock.monotonicMs();
    const shares = Math.min(REPEATED_WITHIN, Math.ceil(this.#told.size / REPEATED_MIN));
    const news: RangeReport[] = [];
    let place = 0;
    for (const replica of this.#deps.replicas()) {
      const { rangeId } = replica;
      const told = this.#told.get(rangeId);
      const silent = this.#silent.has(rangeId);
      const repeats = shares <= 1 || place++ % shares === this.#number % shares;
      if (told !== undefined && !repeats && !mayHaveChanged(replica, told, silent)) continue;
      const report = rangeReport(replica, silent, nowMs);
      if (told !== undefined && !repeats && isSameReport(told, report)) continue;
      this.#told.set(rangeId, report);
      news.push(report);
    }
    return news;
  }

  carryOut(order: RangeOrder): void {
    const { orderId, rangeId } = order;
    const replica = this.#deps.replica(rangeId);
    const carried =
      replica === undefined ? refused(`this node holds no replica of range ${rangeId}`) : this.#done(replica, order);
    this.#results.push({ orderId, ...carried });
  }

  #done(replica: RangeReplica, { confVersion, instruction }: RangeOrder): Carried {
    switch (instruction.type) {
      case 'split':
        return replica.serving ? this.#deps.split(replica, instruction.at) : NOT_LEADING;
      case 'merge':
        return this.#deps.merge({
          targetId: replica.rangeId,
          sourceId: instruction.source.rangeId,
          bytesMax: instruction.bytesMax,
        });
      default:
        // Any change of the range's members would make the merge fail after the neighbour was sealed. The merge ends
        // soon.
        if (this.#deps.isMerging(replica.rangeId)) return MERGING;
        return replica.members.carryOut({ confVersion, instruction });
    }
  }
}

function refused(reason: string): Carried {
  return { outcome: 'refused', reason };
}
