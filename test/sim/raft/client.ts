/** Clients: which node they ask, for what, and when. */
import type { Random } from '@remora/base';
import { Violation } from '../common/violation.ts';
import type { SimNode } from './node.ts';
import { Operations, type Target } from './operations.ts';
import type { World } from './world.ts';

const ANSWER_MS_MAX = 1_500;

/** Runs one operation after another, at the node that it takes for the leader. */
export class Client {
  readonly #world: World;
  readonly #random: Random;
  readonly #operations: Operations;
  /** The node that it asks, per group: the last one that served it. */
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

  /** Mostly a node that considers itself the leader, but not always the right one. */
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
/** A node that stands still answers once it continues. */
const PROBE_READ_MS_MAX = 3_000;

/**
 * Looks for groups in which two nodes consider themselves the leader. It writes at the newer one, then reads at the
 * older one. All conditions on reads exist to prevent a wrong answer there.
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

const WATCH_MS = 2;

/**
 * Repeatedly asks every node that considers itself the leader whether it holds the lease. If it does, no node may lead
 * a newer term (core/lease.ts). A node that stands still is asked as the first thing after it continues.
 */
export class LeaseWatch {
  readonly #world: World;
  /** Pending questions, by node and group. */
  readonly #asked = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  run(untilMs: number): void {
    const { loop, nodes, groupIds } = this.#world;
    loop.setTimer(WATCH_MS, () => {
      if (loop.monotonicMs() >= untilMs) return;
      for (const node of nodes) for (const groupId of groupIds) this.#ask(node, groupId);
      this.run(untilMs);
    });
  }

  #ask(node: SimNode, groupId: number): void {
    const asked = `${node.id} ${node.lives} ${groupId}`;
    if (node.group(groupId)?.role !== 'leader' || this.#asked.has(asked)) return;
    this.#asked.add(asked);
    node.enter((host) => {
      this.#asked.delete(asked);
      const group = host.group(groupId);
      if (group?.hasLease() === true) this.#excludes(node, groupId, group.term);
    });
  }

  #excludes(holder: SimNode, groupId: number, term: number): void {
    for (const node of this.#world.nodes) {
      const rival = node.group(groupId);
      const leads = rival?.role === 'leader' && rival.term > term;
      if (!leads) continue;
      this.#world.fail(
        new Violation(
          'a lease excludes',
          `node ${node.id} leads group ${groupId} in term ${rival.term}, and node ${holder.id} holds the lease of term ${term}`,
        ),
      );
    }
  }
}
