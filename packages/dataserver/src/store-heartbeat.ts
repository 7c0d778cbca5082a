import { type Bytes, type Clock, Rotation } from '@remora/base';
import {
  isSameReport,
  type NodeHeartbeat,
  type OrderResult,
  type RangeOrder,
  type RangeReport,
} from '@remora/protocol';
import { type Carried, NOT_LEADING } from './range/membership/member-orders.ts';
import type { RangeReplica } from './range/range-replica.ts';
import type { WantedMerge } from './range/reshape/merge-driver.ts';
import { isAtRest, mayHaveChanged, rangeReport } from './range/stats/range-report.ts';
import { looksFor } from './replicas/active-ranges.ts';
import type { OrderedSplit } from './splitting/splitter.ts';

export interface StoreHeartbeatDeps {
  readonly clock: Clock;
  readonly replica: (rangeId: number) => RangeReplica | undefined;
  readonly replicas: () => Iterable<RangeReplica>;
  /** How many replicas there are. */
  readonly count: () => number;
  /** Ranges that something happened to (replicas/active-ranges.ts AC1). */
  readonly marks: Set<number>;
  /** Splits a range that is led here; without a key, in the middle. A repeated call returns the state of the split. */
  readonly split: (replica: RangeReplica, at: Bytes | undefined) => OrderedSplit;
  /** Merges a range that is led here with the range behind it. A repeated call returns the state of the merge. */
  readonly merge: (wanted: WantedMerge) => Carried;
  /** Whether a neighbour is being merged with a range that is led here. */
  readonly isMerging: (rangeId: number) => boolean;
}

const MERGING: Carried = { outcome: 'underWay', reason: 'a neighbour is being merged with the range' };

/**
 * Builds a store's part of each heartbeat, and carries out the orders for leaders in the master's answer.
 *
 * HB1. A heartbeat has the reports that differ from what the masters know: those of the heartbeats before it, each of
 *      which was answered. After one that was not, all reports are sent.
 * HB2. Unchanged reports are repeated, a share of them in each heartbeat: the masters examine a range again whenever
 *      they hear of it. Up to a number of ranges, every heartbeat has the reports of all (active-ranges.ts AC3).
 * HB3. Reports are made of ranges that something happened to, until the report says that nothing goes on there.
 */
export class StoreHeartbeat {
  readonly #deps: StoreHeartbeatDeps;
  /** Ranges whose replica here has not heard a leader for long. */
  readonly #silent = new Set<number>();
  /** Results of orders since the last report. */
  readonly #results: OrderResult[] = [];
  /** The last report of each range. */
  readonly #told = new Map<number, RangeReport>();
  readonly #repeated: Rotation<RangeReplica>;
  /** The number of the last heartbeat. */
  #number = 0;

  constructor(deps: StoreHeartbeatDeps) {
    this.#deps = deps;
    this.#repeated = new Rotation(deps.replicas);
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
    const ended = this.#ended();
    const ranges = this.#news(complete);
    return { ranges, results: this.#results.splice(0), changes: { number, since, ended } };
  }

  /** The ranges whose replica has ended since the last heartbeat. */
  #ended(): readonly number[] {
    const { marks, replica } = this.#deps;
    const ended: number[] = [];
    for (const rangeId of marks) {
      if (replica(rangeId) !== undefined) continue;
      marks.delete(rangeId);
      if (this.#told.delete(rangeId)) ended.push(rangeId);
    }
    return ended;
  }

  /** HB1, HB2, HB3. */
  #news(complete: boolean): readonly RangeReport[] {
    const { count, marks, replica, replicas } = this.#deps;
    const looks = complete ? 1 : looksFor(count());
    const news: RangeReport[] = [];
    const repeated = looks === 1 ? replicas() : this.#repeated.next(Math.ceil(count() / looks));
    const sent = new Set<number>();
    for (const one of repeated) {
      sent.add(one.rangeId);
      news.push(this.#report(one));
    }
    for (const rangeId of [...marks, ...this.#silent]) {
      const one = sent.has(rangeId) ? undefined : replica(rangeId);
      if (one === undefined) continue;
      const told = this.#told.get(rangeId);
      if (told !== undefined && !mayHaveChanged(one, told, this.#silent.has(rangeId))) marks.delete(rangeId);
      else {
        const report = this.#report(one);
        if (told === undefined || !isSameReport(told, report)) news.push(report);
      }
      sent.add(rangeId);
    }
    this.#silent.clear();
    return news;
  }

  #report(replica: RangeReplica): RangeReport {
    const { clock, marks } = this.#deps;
    const { rangeId } = replica;
    const report = rangeReport(replica, this.#silent.has(rangeId), clock.monotonicMs());
    this.#told.set(rangeId, report);
    if (isAtRest(report)) marks.delete(rangeId);
    else marks.add(rangeId);
    return report;
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
