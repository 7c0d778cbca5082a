import type { Bytes, Clock } from '@remora/base';
import type { NodeHeartbeat, OrderResult, RangeOrder } from '@remora/protocol';
import { type Carried, NOT_LEADING } from './range/membership/member-orders.ts';
import type { RangeReplica } from './range/range-replica.ts';
import type { WantedMerge } from './range/reshape/merge-driver.ts';
import { rangeReport } from './range/stats/range-report.ts';
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

/** Builds a store's part of each heartbeat, and carries out the orders for leaders in the master's answer. */
export class StoreHeartbeat {
  readonly #deps: StoreHeartbeatDeps;
  /** Ranges whose replica here has not heard a leader for long. */
  readonly #silent = new Set<number>();
  /** Results of orders since the last report. */
  readonly #results: OrderResult[] = [];

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
  report(): Pick<NodeHeartbeat, 'ranges' | 'results'> {
    const nowMs = this.#deps.clock.monotonicMs();
    const ranges = [...this.#deps.replicas()].map((replica) =>
      rangeReport(replica, this.#silent.has(replica.rangeId), nowMs),
    );
    this.#silent.clear();
    return { ranges, results: this.#results.splice(0) };
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
