/**
 * Two releases in one cluster, in some runs: nodes start as either, until an operator upgrades them all and finalizes.
 *
 * RL1. Until there is a range, all nodes are of the earlier release: the cluster begins with its version.
 * RL2. Then each life of a node is of a release by chance, as when nodes are upgraded and taken back. Beside the faults
 *      of the run, nodes are stopped for that now and then.
 * RL3. After a part of the run, every node that starts is of the later release, and the others are stopped for it one
 *      after the other. The operator asks to finalize until it is done, under the same faults.
 */
import { type Random, rangeUpTo, type VersionRange } from '@remora/base';
import type { SimNode } from './node.ts';
import type { World } from './world.ts';

const OLDER: VersionRange = rangeUpTo('0.1');
const NEWER: VersionRange = rangeUpTo('0.2');

/** The part of a run after which the upgrade begins. */
const BEGINS_AFTER = 0.5;
const LOOK_MS = 400;
/** Between two nodes that are stopped for another release, in the first part. */
const CHANGE_MS_MIN = 500;
const CHANGE_MS_SPREAD = 2_000;

export class Releases {
  readonly #world: World;
  readonly #random: Random;
  #upgrading = false;
  #finalized = false;
  /** The node that is stopped for the later release. */
  #stopped: SimNode | undefined;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** What the life of a node that begins now can write. */
  next(): VersionRange {
    if (this.#upgrading) return NEWER; // RL3
    if (this.#world.placement.ranges.length === 0) return OLDER; // RL1
    return this.#random.int(2) === 0 ? OLDER : NEWER; // RL2
  }

  get finalized(): boolean {
    return this.#finalized;
  }

  run(): void {
    const { loop, options } = this.#world;
    loop.setTimer(options.runMs * BEGINS_AFTER, () => {
      this.#upgrading = true;
      this.#look();
    });
    this.#change();
  }

  /** RL2. */
  #change(): void {
    const { loop, nodes } = this.#world;
    loop.setTimer(CHANGE_MS_MIN + this.#random.int(CHANGE_MS_SPREAD), () => {
      if (this.#upgrading) return;
      const node = nodes[this.#random.int(nodes.length)];
      if (node !== undefined && isRunning(node) && !this.#isAway(this.#stopped)) this.#restart(node);
      this.#change();
    });
  }

  /** RL3. */
  #look(): void {
    const { loop, admin, nodes, over } = this.#world;
    if (over || this.#finalized) return;
    loop.setTimer(LOOK_MS, () => this.#look());
    if (this.#isAway(this.#stopped)) return;
    const older = nodes.find((node) => isRunning(node) && node.versions === OLDER);
    if (older !== undefined) return this.#restart(older);
    admin.ask(
      'finalize',
      (api, call) => api.finalizeUpgrade({ version: '' }, call),
      (error) => {
        if (error === undefined) this.#finalized = true;
      },
    );
  }

  /** It stops, or has started and does not serve yet. */
  #isAway(node: SimNode | undefined): boolean {
    return node !== undefined && (node.stopping || (!node.down && !node.up));
  }

  #restart(node: SimNode): void {
    this.#stopped = node;
    void node.stop().then(() => this.#world.startAgain(node));
  }
}

function isRunning(node: SimNode): boolean {
  return node.up && !node.stopping && !node.clock.paused;
}
