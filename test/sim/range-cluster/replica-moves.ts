/**
 * Moves replicas from node to node as the master orders it: a learner is added on the new node, replaces the old
 * replica as voter once it has caught up, and the old replica is removed.
 *
 * RV1. A range has one move at a time. A move is given up if the range has ended, or if its nodes have changed.
 */
import type { SeededRandom } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';
import type { RangeDescriptor, ReplicaDescriptor } from '@remora/protocol';
import type { MemberInstruction } from '../../../packages/dataserver/src/range/membership/member-orders.ts';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';

interface Move {
  readonly rangeId: number;
  readonly from: ReplicaDescriptor;
  readonly to: number;
  readonly replicaId: number;
}

export interface ReplicaMovesDeps {
  readonly clock: ManualClock;
  readonly random: SeededRandom;
  readonly dataNodes: readonly number[];
  /** Replicas that lead their ranges. */
  readonly leading: () => readonly RangeReplica[];
  /** A node's order to its replica of a range. */
  readonly order: (replica: RangeReplica, order: MemberInstruction) => void;
  /** The master's order to a node to create a replica. */
  readonly create: (nodeId: number, range: RangeDescriptor, replicaId: number) => void;
}

/** Above the ids of splits and of the initial replicas. */
const FIRST_REPLICA_ID = 1_000_000;
const ORDER_MS = 60;

export class ReplicaMoves {
  readonly #deps: ReplicaMovesDeps;
  readonly #inFlight = new Map<number, Move>();
  #replicaIds = FIRST_REPLICA_ID;
  moved = 0;
  /** Moves whose range had a prepared transaction when they began or ended. */
  amidTransactions = 0;

  constructor(deps: ReplicaMovesDeps) {
    this.#deps = deps;
  }

  /** Begins to move a replica of some range to a node that has none of it. */
  begin(): void {
    const { random, leading, dataNodes } = this.#deps;
    const ranges = leading();
    const range = ranges[random.int(Math.max(1, ranges.length))];
    if (range === undefined || this.#inFlight.has(range.rangeId)) return;
    const { replicas } = range.state.descriptor;
    const from = replicas[random.int(replicas.length)];
    const to = dataNodes.find((id) => replicas.every(({ nodeId }) => nodeId !== id));
    if (from === undefined || to === undefined) return;
    const move = { rangeId: range.rangeId, from, to, replicaId: ++this.#replicaIds };
    if (range.state.transactions.prepared > 0) this.amidTransactions++;
    this.#inFlight.set(range.rangeId, move);
    this.#goOn(move);
  }

  /** RV1. No more orders are given. */
  stop(): void {
    this.#inFlight.clear();
  }

  #goOn(move: Move): void {
    if (this.#inFlight.get(move.rangeId) !== move) return;
    const replica = this.#deps.leading().find(({ rangeId }) => rangeId === move.rangeId);
    if (replica !== undefined) this.#orderNext(move, replica);
    this.#deps.clock.setTimer(ORDER_MS, () => this.#goOn(move));
  }

  #orderNext(move: Move, replica: RangeReplica): void {
    const { descriptor, transactions } = replica.state;
    const { from, to, replicaId } = move;
    const there = descriptor.replicas.find(({ nodeId }) => nodeId === to);
    const old = descriptor.replicas.find((one) => one.replicaId === from.replicaId);
    if ((there !== undefined && there.replicaId !== replicaId) || (there === undefined && old === undefined)) {
      this.#inFlight.delete(move.rangeId);
    } else if (there === undefined) {
      this.#deps.order(replica, { type: 'addLearner', nodeId: to, replicaId });
    } else if (there.type === 'voter' && old === undefined) {
      this.#inFlight.delete(move.rangeId);
      this.moved++;
      if (transactions.prepared > 0) this.amidTransactions++;
    } else {
      this.#deps.create(to, descriptor, replicaId);
      this.#deps.order(replica, this.#exchange(move, replica));
    }
  }

  /** A leader that is to be removed transfers its leadership first. */
  #exchange({ from, replicaId }: Move, { group, state }: RangeReplica): MemberInstruction {
    const other = state.descriptor.replicas.find((one) => one.type === 'voter' && one.replicaId !== from.replicaId);
    if (group.replicaId === from.replicaId && other !== undefined) {
      return { type: 'transferLeader', replicaId: other.replicaId };
    }
    return { type: 'changeVoters', promote: [replicaId], remove: [from.replicaId] };
  }
}
