/**
 * The operations of clients.
 *
 * L1. Every write has a unique number. It is sent once. It is acknowledged, or reported as lost, or its outcome stays
 *     unknown.
 * L2. Each answer is compared with everything that any client had seen before the operation began.
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

/** The node of an operation, and how long its client waits for the answer. */
export interface Target {
  readonly groupId: number;
  readonly node: SimNode;
  readonly answerMsMax: number;
}

type Ask = (host: NodeRaftHost, answered: () => boolean) => void;

export class Operations {
  readonly #world: World;
  readonly #random: Random;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** Calls `then` once, when the outcome is known or will never be known. */
  write(target: Target, then: () => void): void {
    const { counts, trace, options } = this.#world;
    const { groupId, node } = target;
    const values = this.#world.values(groupId);
    const floor = values.visible;
    const value = this.#world.nextValue();
    const data = Buffer.alloc(4 + this.#random.int(options.payloadBytesMax));
    data.writeUInt32BE(value);
    const ask: Ask = (host, answered) => {
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
          values.lost(value);
          trace.add('lost', node.id, groupId, index, value);
          counts.lost++;
          answered();
        } else if (answered()) {
          values.acknowledged({ value, index, floor });
          trace.add('acknowledged', node.id, groupId, index, value);
          counts.acknowledged++;
        }
      });
    };
    this.#ask(target, ask, then);
  }

  read(target: Target, how: 'lease read' | 'ReadIndex', then: () => void): void {
    const { counts, trace } = this.#world;
    const { groupId, node } = target;
    const values = this.#world.values(groupId);
    const floor = values.visible;
    const ask: Ask = (host, answered) => {
      const machine = node.machines.get(groupId);
      const group = host.group(groupId);
      const done = (refused: unknown): void => {
        if (!answered()) return;
        if (refused !== undefined || machine === undefined || group === undefined) {
          counts.refused++;
          return;
        }
        const { index } = machine.state.applied;
        trace.add('read', node.id, groupId, index, floor, how);
        if (how === 'lease read') counts.leaseReads++;
        else counts.reads++;
        values.read({ index, floor, how, by: group.replicaId });
      };
      if (group === undefined) done('notHere');
      else if (how === 'lease read') group.leaseRead(done);
      else group.readIndex(done);
    };
    this.#ask(target, ask, then);
  }

  /** Runs `ask` in the process. Only the first answer counts, and no answer counts after the time is over. */
  #ask({ node, answerMsMax }: Target, ask: Ask, then: () => void): void {
    let open = true;
    const close = (): boolean => {
      if (!open) return false;
      open = false;
      timer.cancel();
      return true;
    };
    const timer = this.#world.loop.setTimer(answerMsMax, () => {
      if (!close()) return;
      this.#world.counts.unknown++;
      then();
    });
    node.enter((host) => {
      if (!open) return;
      // Code that follows an answer runs in a new turn of the event loop.
      ask(host, () => {
        const first = close();
        if (first) this.#world.loop.setImmediate(then);
        return first;
      });
    });
  }
}
