import type { Bytes, Clock } from '@remora/base';
import type { NodeHeartbeat, OrderResult, RangeOrder } from '@remora/protocol';
import type { Carried } from './range/membership/member-orders.ts';
import type { RangeReplica } from './range/range-replica.ts';
import type { WantedMerge } from './range/reshape/merge-driver.ts';
import { rangeReport } from './range/stats/range-report.ts';
import type { OrderedSplit } from './splitting/splitter.ts';

export interface StoreHeartbeatDeps {
  readonly clock: Clock;
  readonly replica: (rangeId: number) => RangeReplica | undefined;
  readonly replicas: () => Iterable<RangeReplica>;
  /** Splits a range that is led here, in the middle when there is no key; told again it says how that stands. */
  readonly split: (replica: RangeReplica, at: Bytes | undefined) => OrderedSplit;
  /** The same for the merge of a range that is led here with the one behind it. */
  readonly merge: (wanted: WantedMerge) => Carried;
  /** Whether a neighbour is being merged with a range that is led here. */
  readonly isMerging: (rangeId: number) => boolean;
}

const MERGING: Carried = { outcome: 'underWay', reason: 'a neighbour is being merged with the range' };

/** What a store tells the master with each heartbeat, and what it does of what leaders are ordered in the answer. */
export class StoreHeartbeat {
  readonly #deps: StoreHeartbeatDeps;
  /** Ranges of which the replica here has heard no leader for long. */
  readonly #silent = new Set<number>();
  /** How orders came out that were given since the last report. */
  readonly #results: OrderResult[] = [];

  constructor(deps: StoreHeartbeatDeps) {
    this.#deps = deps;
  }

  /** A replica has heard no leader for long: the next report asks whether it still belongs (design §5 ▸, traps 11). */
  silent(rangeId: number): void {
    this.#silent.add(rangeId);
  }

  /** What it asks, and how orders came out, is told once: both come again if the report gets lost. */
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
        return replica.serving
          ? this.#deps.split(replica, instruction.at)
          : refused('this replica does not lead the range');
      case 'merge':
        return this.#deps.merge({
          targetId: replica.rangeId,
          sourceId: instruction.source.rangeId,
          bytesMax: instruction.bytesMax,
        });
      default:
        // Any change of its members would have the merge refused, with the neighbour sealed already. It is over soon.
        if (this.#deps.isMerging(replica.rangeId)) return MERGING;
        return replica.members.carryOut({ confVersion, instruction });
    }
  }
}

function refused(reason: string): Carried {
  return { outcome: 'refused', reason };
}
