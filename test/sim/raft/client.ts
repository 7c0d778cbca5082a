/**
 * A client: one operation after another, at whichever node it believes in.
 *
 * L1. Every write has a number of its own. It is sent once: acknowledged, reported as lost, or its outcome stays unknown.
 * L2. What an answer shows is held against what any client had seen before the operation began.
 */
import type { Random } from '@remora/base';
import type { NodeRaftHost } from '@remora/raft';
import type { SimNode } from './node.ts';
import type { World } from './world.ts';

export interface OperationCounts {
  acknowledged: number;
  lost: number;
  refused: number;
  unknown: number;
  reads: number;
  leaseReads: number;
}

export function newCounts(): OperationCounts {
  return { acknowledged: 0, lost: 0, refused: 0, unknown: 0, reads: 0, leaseReads: 0 };
}

const ANSWER_MS_MAX = 1_500;

export class Client {
  readonly #world: World;
  readonly #random: Random;
  readonly #reads: boolean;
  /** The node that it turns to, per group: where it was served last. */
  readonly #believed = new Map<number, number>();
  #untilMs = 0;

  constructor(world: World, random: Random, kind: 'mixed' | 'reader') {
    this.#world = world;
    this.#random = random;
    this.#reads = kind === 'reader';
  }

  run(untilMs: number): void {
    this.#untilMs = untilMs;
    this.#later();
  }

  #later(): void {
    const { loop, options } = this.#world;
    loop.setTimer(1 + this.#random.int(2 * options.thinkMs), () => {
      if (loop.monotonicMs() < this.#untilMs) this.#next();
    });
  }

  #next(): void {
    const groupId = this.#world.groupIds[this.#random.int(this.#world.groupIds.length)] ?? 0;
    const node = this.#target(groupId);
    const kind = this.#reads ? 7 + this.#random.int(4) : this.#random.int(10);
    if (node?.up !== true) this.#later();
    else if (kind < 6) this.#write(groupId, node);
    else this.#read(groupId, node, kind < 8);
  }

  /** Mostly a node that takes itself for the leader, not always the right one. */
  #target(groupId: number): SimNode | undefined {
    const { nodes } = this.#world;
    const believed = nodes[(this.#believed.get(groupId) ?? 1) - 1];
    if (!this.#reads && believed?.group(groupId)?.role === 'leader' && this.#random.int(8) > 0) return believed;
    const leaders = nodes.filter((node) => node.group(groupId)?.role === 'leader');
    const chosen = leaders[this.#random.int(Math.max(1, leaders.length))] ?? nodes[this.#random.int(nodes.length)];
    if (chosen !== undefined) this.#believed.set(groupId, chosen.id);
    return chosen;
  }

  /** Runs `ask` in the process; the first answer, or none in time, leads to the next operation. */
  #ask(node: SimNode, ask: (host: NodeRaftHost, answered: () => boolean) => void, unknown: () => void): void {
    let open = true;
    const answered = (): boolean => {
      if (!open) return false;
      open = false;
      timer.cancel();
      this.#later();
      return true;
    };
    const timer = this.#world.loop.setTimer(ANSWER_MS_MAX, () => {
      if (answered()) unknown();
    });
    node.enter((host) => {
      if (open) ask(host, answered);
    });
  }

  #write(groupId: number, node: SimNode): void {
    const { counts, trace } = this.#world;
    const truth = this.#world.observer.group(groupId);
    const floor = truth.visible;
    const value = this.#world.nextValue();
    const data = Buffer.alloc(4 + this.#random.int(this.#world.options.payloadBytesMax));
    data.writeUInt32BE(value);
    this.#ask(
      node,
      (host, answered) => {
        const machine = node.machines.get(groupId);
        const result = host.group(groupId)?.propose(data) ?? { refused: 'notLeader' };
        if ('refused' in result || machine === undefined) {
          counts.refused++;
          answered();
          return;
        }
        const { index, term } = result;
        trace.add('proposed', node.id, groupId, index, value);
        machine.whenApplied(index, term, (applied) => {
          if (!applied) {
            truth.lost(value);
            trace.add('lost', node.id, groupId, index, value);
            counts.lost++;
            answered();
            return;
          }
          if (!answered()) return;
          truth.acknowledged({ value, index, floor });
          trace.add('acknowledged', node.id, groupId, index, value);
          counts.acknowledged++;
        });
      },
      () => {
        trace.add('unknown', node.id, groupId, 0, value);
        counts.unknown++;
      },
    );
  }

  #read(groupId: number, node: SimNode, lease: boolean): void {
    const { counts, trace } = this.#world;
    const truth = this.#world.observer.group(groupId);
    const floor = truth.visible;
    this.#ask(
      node,
      (host, answered) => {
        const machine = node.machines.get(groupId);
        const group = host.group(groupId);
        const done = (refused: unknown): void => {
          if (!answered()) return;
          if (refused !== undefined || machine === undefined || group === undefined) {
            counts.refused++;
            return;
          }
          const { index } = machine.state.applied;
          trace.add('read', node.id, groupId, index, floor, lease ? 'lease' : 'ReadIndex');
          if (lease) counts.leaseReads++;
          else counts.reads++;
          truth.read({ index, floor, how: lease ? 'lease read' : 'ReadIndex', by: group.replicaId });
        };
        if (group === undefined) done('notHere');
        else if (lease) group.leaseRead(done);
        else group.readIndex(done);
      },
      () => {
        counts.unknown++;
      },
    );
  }
}
