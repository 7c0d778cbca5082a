/**
 * The master's part in a run: it learns of ranges late, and orders splits, merges and moves, as its schedulers would.
 */
import { compareBytes, SeededRandom, ServiceError, spanContains } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import type { MemberInstruction } from '../../../packages/dataserver/src/range/membership/member-orders.ts';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import { RangeRegistry } from '../../../packages/master/src/ranges/range-registry.ts';
import { borderAt, type RangeCluster, type RangePlan } from './bed.ts';
import { ReplicaMoves } from './replica-moves.ts';
import { SplitDesk } from './split-desk.ts';

export class RangeMaster {
  readonly desk: SplitDesk;
  readonly moves: ReplicaMoves;
  /** Splits of a range that had a prepared transaction. */
  splitsAmidTransactions = 0;
  readonly #bed: RangeCluster;
  readonly #plan: RangePlan;
  /** The master's view of the ranges. */
  readonly #registry = new RangeRegistry();

  constructor(bed: RangeCluster, { seed, plan }: { readonly seed: number; readonly plan: RangePlan }) {
    this.#bed = bed;
    this.#plan = plan;
    this.desk = new SplitDesk(this.#registry, new SeededRandom(seed + 0x2000_0000));
    this.moves = new ReplicaMoves({
      ...{ clock: bed.clock, dataNodes: bed.dataNodes, random: new SeededRandom(seed + 0x3000_0000) },
      leading: () => this.#leading,
      order: (replica, instruction) => this.#order(replica, instruction),
      create: (nodeId, range, replicaId) => void this.#create(nodeId, range, replicaId),
    });
  }

  /** Begins to observe ranges, if the plan changes any. */
  start(): void {
    const { splits, moves, sizes } = this.#plan;
    if (splits.length > 0 || this.mayMerge || moves !== undefined || sizes !== undefined) this.#hearLeaders();
  }

  /** The number of completed splits. */
  get splits(): number {
    return this.desk.splits;
  }

  get #leading(): readonly RangeReplica[] {
    return [...this.#bed.nodes.values()].flatMap(({ running }) =>
      [...(running?.store?.replicas() ?? [])].filter((replica) => replica.leading),
    );
  }

  /** Like heartbeats. */
  #hearLeaders(): void {
    if (this.#plan.moves !== undefined) this.removeEnded();
    this.#heard(this.#leading.map(({ state }) => state.descriptor));
    this.#bed.clock.setTimer(1_000, () => this.#hearLeaders());
  }

  /**
   * Orders a split at one of the remaining planned keys, as the master would, if there is one left and the range has a
   * leader.
   */
  splitSomewhere(): void {
    const { splits } = this.#plan;
    const at = borderAt(splits[this.#bed.laterRandom.int(splits.length)] ?? '');
    for (const { running } of this.#bed.nodes.values()) {
      const parent = [...(running?.store?.replicas() ?? [])].find(
        ({ leading, state }) => leading && spanContains(state.bounds, at),
      );
      if (parent === undefined) continue;
      const { rangeId, state } = parent;
      const { confVersion } = state.descriptor.epoch;
      running?.store?.heartbeat.carryOut({ orderId: 1, rangeId, confVersion, instruction: { type: 'split', at } });
    }
  }

  #splitAtOnce(): void {
    const { splits } = this.#plan;
    const at = borderAt(splits[this.#bed.laterRandom.int(splits.length)] ?? '');
    const parent = this.#leading.find(({ state }) => spanContains(state.bounds, at));
    const ids = parent && this.#idsFor(parent.state.descriptor);
    if (parent === undefined || ids === undefined) return;
    const { descriptor, transactions } = parent.state;
    parent.split({ type: 'split', at, epoch: descriptor.epoch, ...ids, keys: 1, bytes: 1 }, (_error, result) => {
      if (result !== undefined && transactions.size > 0) this.splitsAmidTransactions++;
    });
  }

  /** Undefined while the leader does not know the range's latest change. */
  #idsFor(descriptor: RangeDescriptor): ReturnType<SplitDesk['idsOf']> | undefined {
    try {
      return this.desk.idsOf(descriptor);
    } catch (error) {
      if (error instanceof ServiceError) return undefined;
      throw error;
    }
  }

  /** Orders a split as soon as a transaction is prepared in some range, or after this many attempts. */
  splitAmidTransaction(looks = 300): void {
    const { laterRandom: random } = this.#bed;
    if (looks === 0 || this.#leading.some(({ state }) => state.transactions.prepared > 0)) this.#splitAtOnce();
    else this.#bed.clock.setTimer(1 + random.int(4), () => this.splitAmidTransaction(looks - 1));
  }

  /** The master's instruction to nodes that lack a replica. Usually a snapshot took them past a split. */
  async createMissing(): Promise<void> {
    for (const range of this.#bed.view.ranges) {
      for (const { nodeId, replicaId } of range.replicas) await this.#create(nodeId, range, replicaId);
    }
  }

  async #create(nodeId: number, range: RangeDescriptor, replicaId: number): Promise<void> {
    await this.#bed
      .node(nodeId)
      .running?.store?.createReplica(range, replicaId)
      .catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error; // Not possible yet: the instruction is repeated.
      });
  }

  /**
   * The master's instruction to replicas whose ranges ended in a merge, and to replicas that are no members any more.
   */
  removeEnded(): void {
    for (const { running } of this.#bed.nodes.values()) {
      for (const { rangeId, group } of [...(running?.store?.replicas() ?? [])]) {
        const confVersion = this.#endedSince(rangeId, group.replicaId);
        if (confVersion !== undefined) {
          running?.store?.removeReplica({ rangeId, replicaId: group.replicaId, confVersion });
        }
      }
    }
  }

  #endedSince(rangeId: number, replicaId: number): number | undefined {
    if (this.#registry.mergedInto(rangeId) !== undefined) return Number.MAX_SAFE_INTEGER;
    const known = this.#bed.view.ranges.find((range) => range.rangeId === rangeId);
    const isMember = known?.replicas.some((replica) => replica.replicaId === replicaId) ?? true;
    return isMember ? undefined : known?.epoch.confVersion;
  }

  /** Moves some replica, if a node has none of its range. */
  moveSomething(): void {
    this.moves.begin();
  }

  stopMoves(): void {
    this.moves.stop();
  }

  #order(replica: RangeReplica, instruction: MemberInstruction): void {
    const { rangeId, state } = replica;
    const { confVersion } = state.descriptor.epoch;
    const node = [...this.#bed.nodes.values()].find(({ running }) =>
      [...(running?.store?.replicas() ?? [])].includes(replica),
    );
    node?.running?.store?.heartbeat.carryOut({ orderId: 1, rangeId, confVersion, instruction });
  }

  /** Whether keys of several ranges may be in one range later. */
  get mayMerge(): boolean {
    return this.#plan.merges !== undefined;
  }

  /** Asks the leader of some range to absorb the next one. */
  mergeSomewhere(): void {
    const targets = this.#leading;
    const target = targets[this.#bed.laterRandom.int(Math.max(1, targets.length))];
    const { ranges } = this.#bed.view;
    const place = ranges.findIndex(({ rangeId }) => rangeId === target?.rangeId);
    const source = ranges[place + 1];
    if (target !== undefined && source !== undefined)
      this.merge({ targetId: target.rangeId, sourceId: source.rangeId });
  }

  /** The master's order to the target's leaders. Returns their answers. */
  merge(order: { readonly targetId: number; readonly sourceId: number }): readonly string[] {
    return [...this.#bed.nodes.values()].flatMap(({ running }) => {
      const replica = [...(running?.store?.replicas() ?? [])].find(({ rangeId }) => rangeId === order.targetId);
      return replica?.leading === true ? (running?.store?.merges.carryOut(order).outcome ?? []) : [];
    });
  }

  /** The number of ranges that others have absorbed. */
  get merged(): number {
    const ids = this.#leading.flatMap(({ state }) => state.merging.absorbed);
    return new Set(ids).size;
  }

  #heard(changed: readonly RangeDescriptor[]): void {
    for (const range of [...this.#bed.view.ranges, ...changed]) this.#registry.describe(range);
    const ranges = [...this.#registry.all()].sort((a, b) => compareBytes(a.start, b.start));
    this.#bed.view = { ...this.#bed.view, ranges };
  }
}
