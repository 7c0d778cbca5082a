/** Clients: who asks whom for what, and when. */
import type { Random } from '@remora/base';
import type { SimNode } from './node.ts';
import { Operations, type Target } from './operations.ts';
import type { World } from './world.ts';

const ANSWER_MS_MAX = 1_500;

/** One operation after another, at whichever node it believes in. */
export class Client {
  readonly #world: World;
  readonly #random: Random;
  readonly #operations: Operations;
  /** The node that it turns to, per group: where it was served last. */
  readonly #believed = new Map<number, number>();

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
    this.#operations = new Operations(world, random);
  }

  run(untilMs: number): void {
    const { loop, options } = this.#world;
    loop.setTimer(1 + this.#random.int(2 * options.thinkMs), () => {
      if (loop.monotonicMs() < untilMs) this.#next(() => this.run(untilMs));
    });
  }

  #next(then: () => void): void {
    const groupId = this.#world.groupAt(this.#random.int(this.#world.groupIds.length));
    const node = this.#target(groupId);
    const kind = this.#random.int(10);
    const target: Target = { groupId, node, answerMsMax: ANSWER_MS_MAX };
    if (!node.up) then();
    else if (kind < 6) this.#operations.write(target, then);
    else this.#operations.read(target, kind < 8 ? 'lease read' : 'ReadIndex', then);
  }

  /** Mostly a node that takes itself for the leader, not always the right one. */
  #target(groupId: number): SimNode {
    const { nodes } = this.#world;
    const believed = nodes[(this.#believed.get(groupId) ?? 1) - 1];
    if (believed?.group(groupId)?.role === 'leader' && this.#random.int(8) > 0) return believed;
    const leaders = nodes.filter((node) => node.group(groupId)?.role === 'leader');
    const any = this.#random.int(Math.max(leaders.length, 1));
    const chosen = leaders[any] ?? this.#world.nodeAt(this.#random.int(nodes.length));
    this.#believed.set(groupId, chosen.id);
    return chosen;
  }
}

const LOOK_MS = 6;
const PROBE_MS_MAX = 200;
/** A node that stands still answers when it goes on. */
const PROBE_READ_MS_MAX = 3_000;

/**
 * Looks for groups of which two nodes take themselves for the leader: writes at the newer one, then reads at the older.
 * A wrong answer there is what all the conditions on reads are about.
 */
export class Prober {
  readonly #world: World;
  readonly #random: Random;
  readonly #operations: Operations;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
    this.#operations = new Operations(world, random);
  }

  run(untilMs: number): void {
    const { loop } = this.#world;
    loop.setTimer(LOOK_MS, () => {
      if (loop.monotonicMs() >= untilMs) return;
      this.#probe(() => this.run(untilMs));
    });
  }

  #probe(then: () => void): void {
    const { nodes, groupIds } = this.#world;
    for (const groupId of groupIds) {
      const leaders = nodes.filter((node) => node.group(groupId)?.role === 'leader');
      if (leaders.length < 2) continue;
      const termOf = (node: SimNode): number => node.group(groupId)?.term ?? 0;
      const [newest, ...older] = leaders.sort((a, b) => termOf(b) - termOf(a));
      if (newest === undefined) continue;
      this.#operations.write({ groupId, node: newest, answerMsMax: PROBE_MS_MAX }, () => {
        const how = this.#random.int(4) === 0 ? 'ReadIndex' : 'lease read';
        for (const node of older) this.#read({ groupId, node, answerMsMax: PROBE_READ_MS_MAX }, how);
        then();
      });
      return;
    }
    then();
  }

  #read(target: Target, how: 'ReadIndex' | 'lease read'): void {
    if (target.node.up) this.#operations.read(target, how, () => undefined);
  }
}
