/** A simulated cluster: its nodes, network, groups and clients, and the faults that happen to them. */
import { assert, SeededRandom } from '@remora/base';
import type { ConfState } from '@remora/raft';
import { confOf, isJoint, isMember, membersOf } from '../../../packages/raft/src/core/membership/membership.ts';
import { LocalNetwork } from '../../../packages/raft/src/testing/local-network.ts';
import { SimLoop } from '../common/env/loop.ts';
import { FaultTimeline } from '../common/faults/timeline.ts';
import { NetworkFaults } from '../common/network.ts';
import { Observer } from '../common/raft/observer.ts';
import { isQuorumOf } from '../common/raft/quorum.ts';
import type { ReplicaView } from '../common/raft/replica-view.ts';
import { Trace } from '../common/trace.ts';
import { WrittenValues } from './checks/written-values.ts';
import { SimNode } from './node.ts';
import { newCounts } from './operations.ts';
import type { WorldOptions } from './options.ts';
import { faultOf } from './schedule.ts';

const TIDY_MS = 200;

export class World {
  readonly seed: number;
  readonly options: WorldOptions;
  readonly loop = new SimLoop();
  readonly trace = new Trace(() => this.loop.monotonicMs());
  readonly network: NetworkFaults;
  readonly observer: Observer;
  readonly nodes: readonly SimNode[];
  readonly groupIds: readonly number[];
  readonly counts = newCounts();
  readonly faults = new FaultTimeline({
    loop: this.loop,
    trace: this.trace,
    begin: (event) => faultOf(event.kind).begin(this, event),
  });
  /** Snapshots that hosts installed, and those that broke off during the transfer. */
  readonly snapshots = { installed: 0, broken: 0 };
  /** The first failure. */
  failure: unknown;
  readonly #replicas = new Map<number, SimNode>();
  readonly #lost = new Set<number>();
  #keptDown: SimNode | undefined;
  /** The nodes are stopping: no node is started any more. */
  over = false;
  readonly #values = new Map<number, WrittenValues>();
  #lastValue = 0;
  #nextReplica = 1;

  constructor(seed: number, options: WorldOptions) {
    this.seed = seed;
    this.options = options;
    const { nodes, groups, linkDelayMs: delayMs, linkJitterMs: jitterMs } = options;
    const base = {
      blocked: false,
      refuses: false,
      dropPerMille: 0,
      duplicatePerMille: 0,
      delayMs,
      jitterMs,
      reorder: false,
      snapshotBreakPerMille: 0,
    };
    const network = new LocalNetwork({ clock: this.loop, random: new SeededRandom(seed * 64), faults: base });
    const ids = Array.from({ length: nodes }, (_, i) => i + 1);
    this.network = new NetworkFaults(network, ids, base);
    this.observer = new Observer({
      trace: this.trace,
      node: (nodeId) => this.nodes[nodeId - 1],
      isLost: ({ replicaId }) => this.isLost(replicaId),
      fail: (error) => this.fail(error),
    });
    this.groupIds = Array.from({ length: groups }, (_, i) => i + 2);
    this.nodes = ids.map(
      (id) =>
        new SimNode({
          id,
          seed,
          loop: this.loop,
          options: options.node(id),
          observer: this.observer,
          values: (groupId) => this.values(groupId),
          trace: this.trace,
          transport: () => network.transport(id),
          locate: (replicaId) => this.#replicas.get(replicaId)?.id,
          fail: (error) => this.fail(error),
          ended: (stats) => {
            this.snapshots.installed += stats.snapshotsReceived;
            this.snapshots.broken += stats.snapshotsSendFailed;
          },
        }),
    );
  }

  /** Starts all nodes, with their first replicas. */
  begin(): void {
    for (const groupId of this.groupIds) {
      const on = this.nodes.map((_, i) => this.nodeAt(i + groupId)).slice(0, this.options.replicas);
      const ids = on.map((node) => this.#newReplica(node));
      const conf = confOf(ids);
      this.observer.addGroup(groupId, conf);
      this.#values.set(groupId, new WrittenValues(groupId));
      for (const [i, node] of on.entries()) node.create(groupId, ids[i] ?? 0, conf);
    }
    for (const node of this.nodes) node.start();
    this.#tidyLater();
  }

  #newReplica(node: SimNode): number {
    const id = this.#nextReplica++;
    this.#replicas.set(id, node);
    return id;
  }

  // ------------------------------------------------------------------------------------------ replicas

  /** Whether a node may get a replica of a group: it has none, and its log has nothing left of an earlier one. */
  mayCreate(node: SimNode, groupId: number): boolean {
    return node.up && node.engine.record(groupId) === undefined && !node.durable.groups.has(groupId);
  }

  /** A new replica, which is not a member yet. */
  createReplica(node: SimNode, groupId: number): number {
    const replicaId = this.#newReplica(node);
    const first = this.observer.group(groupId).confs[0]?.conf;
    assert(first !== undefined, 'a group has a first membership');
    node.create(groupId, replicaId, first);
    this.trace.add('replica', node.id, groupId, replicaId, 1);
    return replicaId;
  }

  /** Whether a replica's data is lost for good. */
  isLost(replicaId: number): boolean {
    return this.#lost.has(replicaId);
  }

  /**
   * Whether all groups of a node can continue without it, whatever is in progress: no membership change is pending, and
   * no other member of any membership that a replica believes in is lost. Committed entries are on a majority, and at
   * most one of its nodes goes.
   */
  canSpare(node: SimNode): boolean {
    return node.groupIds.every((groupId) => {
      const id = node.engine.record(groupId)?.replicaId ?? 0;
      const views = this.#viewsOf(groupId);
      if (views.some((view) => view.confs.some((index) => index > view.applied))) return false;
      const confs = views.filter((view) => isMember(view.conf, view.replicaId)).map((view) => view.conf);
      return confs.every((conf) => !isMember(conf, id) || this.#goesOnWithoutOne(conf));
    });
  }

  #goesOnWithoutOne(conf: ConfState): boolean {
    return !isJoint(conf) && conf.voters.length >= 3 && !membersOf(conf).some((member) => this.isLost(member));
  }

  loseDisk(node: SimNode): void {
    for (const groupId of node.groupIds) this.#lost.add(node.engine.record(groupId)?.replicaId ?? 0);
    node.end(true);
    node.replaceDisk();
  }

  #viewsOf(groupId: number): readonly ReplicaView[] {
    return this.nodes.flatMap((node) => {
      const view = this.observer.view(groupId, node.engine.record(groupId)?.replicaId ?? 0);
      return view === undefined ? [] : [view];
    });
  }

  /** From time to time, deletes replicas that were removed, as a master does. */
  #tidyLater(): void {
    this.loop.setTimer(TIDY_MS, () => {
      if (this.faults.healed) return;
      for (const groupId of this.groupIds) this.tidy(groupId);
      this.#tidyLater();
    });
  }

  /**
   * Deletes replicas that are no members any more. The remaining members must not need them: a majority has the removal
   * in a checkpoint, and will not ask the removed replicas for votes after a restart.
   */
  tidy(groupId: number): void {
    const { confs } = this.observer.group(groupId);
    const now = confs.at(-1);
    if (now === undefined) return;
    const knows = (id: number): boolean => {
      const record = this.#replicas.get(id)?.engine.record(groupId);
      return record?.replicaId === id && record.applied.index >= now.index;
    };
    if (!isQuorumOf(now.conf, knows)) return;
    for (const node of this.nodes) {
      const id = node.engine.record(groupId)?.replicaId;
      if (id === undefined || isMember(now.conf, id)) continue;
      const wasMember = confs.some(({ conf }) => isMember(conf, id));
      if (!wasMember && !this.faults.healed) continue; // It may be about to become one.
      this.trace.add('replica', node.id, groupId, id, 0);
      node.remove(groupId);
    }
  }

  nextValue(): number {
    this.#lastValue++;
    return this.#lastValue;
  }

  /** The values that clients wrote into a group. */
  values(groupId: number): WrittenValues {
    const values = this.#values.get(groupId);
    assert(values !== undefined, `there is no group ${groupId}`);
    return values;
  }

  /** The run ends with the first failure. */
  fail(error: unknown): void {
    this.failure ??= error;
  }

  // ------------------------------------------------------------------------------------------ who

  nodeAt(i: number): SimNode {
    const node = this.nodes[i % this.nodes.length];
    assert(node !== undefined, 'a world has nodes');
    return node;
  }

  groupAt(i: number): number {
    return this.groupIds[i % this.groupIds.length] ?? 0;
  }

  /** Returns the id of a leader's node as often as of any node: faults of leaders matter most. */
  target(drawn: number): number {
    const leader = drawn % 2 === 0 ? this.leaderOf(this.groupAt(drawn >> 1)) : undefined;
    return (leader ?? this.nodeAt(drawn >> 1)).id;
  }

  /** The node that leads the group in the highest term. */
  leaderOf(groupId: number): SimNode | undefined {
    let best: SimNode | undefined;
    for (const node of this.nodes) {
      const group = node.group(groupId);
      if (group?.role === 'leader' && group.term > (best?.group(groupId)?.term ?? 0)) best = node;
    }
    return best;
  }

  /** Whether this node's machine may be suspended. Its wall clock never jumps back then. */
  suspends(nodeId: number): boolean {
    return (nodeId + this.seed) % 2 === 0;
  }

  // ------------------------------------------------------------------------------------------ faults

  /** Many proposals at once, whose outcomes are ignored. */
  burst(groupId: number, leader: SimNode, count: number, bytes: number): void {
    leader.enter((host) => {
      for (let i = 0; i < count; i++) {
        const data = Buffer.alloc(4 + bytes);
        data.writeUInt32BE(this.nextValue());
        host.group(groupId)?.propose(data);
      }
    });
  }

  /** Restarts a node that had ended, unless it was restarted before. */
  startAgain(node: SimNode): void {
    if (!node.down || this.over || node === this.#keptDown) return;
    if (node.diskFull) {
      this.loop.setTimer(100, () => this.startAgain(node));
      return;
    }
    node.start();
  }

  /** Ends all faults for good. One node may stay down for now if every group works without it. */
  heal(spare: SimNode | undefined): void {
    this.faults.heal();
    this.network.clear();
    this.#keptDown = spare !== undefined && this.canSpare(spare) ? spare : undefined;
    this.#keptDown?.end(true);
    for (const node of this.nodes) {
      node.disk.repair();
      this.startAgain(node);
    }
  }

  get keptDown(): SimNode | undefined {
    return this.#keptDown;
  }

  healAll(): void {
    const node = this.#keptDown;
    this.#keptDown = undefined;
    if (node !== undefined) this.startAgain(node);
  }
}
