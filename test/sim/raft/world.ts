/** A simulated cluster: its nodes, network, groups, clients and the faults that befall them. */
import { assert, SeededRandom } from '@remora/base';
import { confOf } from '../../../packages/raft/src/core/membership.ts';
import { LocalNetwork } from '../../../packages/raft/src/multi/transport/local-network.ts';
import { newCounts } from './client.ts';
import { SimLoop } from './env/loop.ts';
import type { FaultEvent } from './faults/fault.ts';
import { NetworkFaults } from './network.ts';
import { SimNode } from './node.ts';
import { Observer } from './observer.ts';
import type { WorldOptions } from './options.ts';
import { faultOf } from './schedule.ts';
import { Trace } from './trace.ts';

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
  /** How often each kind of fault happened. */
  readonly fired = new Map<string, number>();
  /** What went wrong first. */
  failure: unknown;
  readonly #replicas = new Map<number, SimNode>();
  /** How faults under way end. */
  readonly #open = new Set<() => void>();
  #healing = false;
  /** The nodes are stopping: none is started any more. */
  over = false;
  #values = 0;
  #nextReplica = 1;

  constructor(seed: number, options: WorldOptions) {
    this.seed = seed;
    this.options = options;
    const { nodes, groups, linkDelayMs: delayMs, linkJitterMs: jitterMs } = options;
    const base = { blocked: false, dropPerMille: 0, duplicatePerMille: 0, delayMs, jitterMs, reorder: false };
    const network = new LocalNetwork({ clock: this.loop, random: new SeededRandom(seed * 64), faults: base });
    const ids = Array.from({ length: nodes }, (_, i) => i + 1);
    this.network = new NetworkFaults(network, ids, base);
    this.observer = new Observer({ trace: this.trace, nodeOf: (replicaId) => this.#replicas.get(replicaId) });
    this.groupIds = Array.from({ length: groups }, (_, i) => i + 2);
    this.nodes = ids.map(
      (id) =>
        new SimNode({
          id,
          seed,
          loop: this.loop,
          options: options.node(id),
          observer: this.observer,
          trace: this.trace,
          transport: () => network.transport(id),
          locate: (replicaId) => this.#replicas.get(replicaId)?.id,
          fail: (error) => this.fail(error),
        }),
    );
  }

  /** Starts all nodes, with their first replicas. */
  begin(): void {
    for (const groupId of this.groupIds) {
      const on = this.nodes.map((_, i) => this.nodeAt(i + groupId)).slice(0, this.options.replicas);
      const ids = on.map((node) => this.newReplica(node));
      const conf = confOf(ids);
      for (const [i, node] of on.entries()) node.create(groupId, ids[i] ?? 0, conf);
    }
    for (const node of this.nodes) node.start();
  }

  newReplica(node: SimNode): number {
    const id = this.#nextReplica++;
    this.#replicas.set(id, node);
    return id;
  }

  nextValue(): number {
    this.#values++;
    return this.#values;
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

  /** The id of a leader's node as often as of any: what happens to leaders matters most. */
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

  /** Whether this node's machine is one that gets suspended; such a one's wall clock never jumps back. */
  suspends(nodeId: number): boolean {
    return (nodeId + this.seed) % 2 === 0;
  }

  // ------------------------------------------------------------------------------------------ faults

  schedule(events: readonly FaultEvent[]): void {
    for (const event of events) this.loop.setTimer(event.atMs, () => this.#befall(event));
  }

  #befall(event: FaultEvent): void {
    if (this.#healing) return;
    const end = faultOf(event.kind).begin(this, event);
    if (end === undefined) return;
    this.trace.add('fault', 0, 0, Math.round(event.lastsMs), event.a, `${event.kind} ${event.b} ${event.c}`);
    this.fired.set(event.kind, (this.fired.get(event.kind) ?? 0) + 1);
    const once = (): void => {
      if (!this.#open.delete(once)) return;
      this.trace.add('healed', 0, 0, 0, 0, event.kind);
      end();
    };
    this.#open.add(once);
    this.loop.setTimer(event.lastsMs, once);
  }

  /** Starts a node again that had ended, if nobody did before. */
  startAgain(node: SimNode): void {
    if (!node.down || this.over) return;
    if (node.diskFull) {
      this.loop.setTimer(100, () => this.startAgain(node));
      return;
    }
    node.start();
  }

  /** Ends all faults, for good. */
  heal(): void {
    this.#healing = true;
    for (const end of [...this.#open]) end();
    this.network.clear();
    for (const node of this.nodes) {
      node.disk.repair();
      this.startAgain(node);
    }
  }
}
