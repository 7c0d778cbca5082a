/** Courses: faults that last for a while and proceed in steps. */

import { type Fault, type FaultEvent, SILENT } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';

export type On = (from: number, to: number) => boolean;

export const from =
  (node: number): On =>
  (sender) =>
    sender === node;
export const to =
  (node: number): On =>
  (_, receiver) =>
    receiver === node;
export const around =
  (node: number): On =>
  (sender, receiver) =>
    sender === node || receiver === node;
/** One link, one way. */
export const on =
  (sender: number, receiver: number): On =>
  (from, to) =>
    from === sender && to === receiver;

/** A fault that lasts for a while and proceeds in steps. When it ends, everything that a step began ends with it. */
export class Course {
  readonly #world: World;
  readonly #ends: (() => void)[] = [];
  #over = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** Drops all messages silently: leaders continue with what they heard before. */
  block(on: On): () => void {
    return this.#keep(this.#world.network.add({ on, faults: SILENT }));
  }

  /** Nothing passes, and both ends are refused when they dial the other, although it runs. */
  refuse(on: On): void {
    this.#keep(this.#world.network.add({ on, faults: { refuses: true } }));
  }

  delay(on: On, delayMs: number): void {
    this.#keep(this.#world.network.add({ on, faults: { delayMs } }));
  }

  after(ms: number, step: () => void): void {
    this.#world.loop.setTimer(ms, () => {
      if (!this.#over) step();
    });
  }

  /** Ends a process now, and restarts it after `ms`. */
  restart(nodeId: number, power: boolean, ms: number): void {
    const node = this.#world.nodeAt(nodeId - 1);
    if (!node.up) return;
    node.end(power);
    this.#world.loop.setTimer(ms, () => this.#world.startAgain(node));
  }

  /** A process stands still for `ms`, or until this course ends. */
  stand(nodeId: number, how: 'pause' | 'suspend', ms: number): void {
    const node = this.#world.nodeAt(nodeId - 1);
    if (!node.up || node.clock.paused) return;
    const { lives } = node;
    node.clock[how]();
    let over = false;
    const goOn = (): void => {
      if (!over && node.lives === lives && node.up) node.clock.resume();
      over = true;
    };
    this.after(ms, this.#keep(goOn));
  }

  /** Asks the leader to transfer its leadership of a group to the replica on another node. */
  transfer(groupId: number, leaderId: number, targetId: number): void {
    const target = this.#world.nodeAt(targetId - 1).group(groupId)?.replicaId;
    if (target === undefined) return;
    this.#world.nodeAt(leaderId - 1).enter((host) => host.group(groupId)?.transferLeader(target));
  }

  readonly end = (): void => {
    this.#over = true;
    for (const end of this.#ends) end();
  };

  #keep(end: () => void): () => void {
    this.#ends.push(end);
    return end;
  }
}

export function leaderNode(world: World, drawn: number): number | undefined {
  return world.leaderOf(world.groupAt(drawn))?.id;
}

export function course(
  kind: string,
  begin: (course: Course, world: World, leader: number, event: FaultEvent) => void,
): Fault<World> {
  return {
    kind,
    lastsMs: (random, electionMs) => electionMs + random.int(4 * electionMs),
    begin: (world, event) => {
      const leader = leaderNode(world, event.a);
      if (leader === undefined) return undefined;
      const going = new Course(world);
      begin(going, world, leader, event);
      return going.end;
    },
  };
}
