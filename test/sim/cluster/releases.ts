/**
 * Two releases in one cluster, in some runs: nodes start as either, until an operator upgrades them all and finalizes.
 *
 * RL1. Until there is a range, all nodes are of the earlier release: the cluster begins with its version.
 * RL2. Then each life of a node is of a release by chance, as when nodes are upgraded and taken back.
 * RL3. After a part of the run, every node that starts is of the later release, and the others are stopped for it one
 *      after the other. The operator asks to finalize until it is done, under the same faults.
 */
import { type Random, rangeUpTo, type VersionRange } from '@remora/base';
import type { SimNode } from './node.ts';
import type { World } from './world.ts';

const OLDER: VersionRange = rangeUpTo('0.1');
const NEWER: VersionRange = rangeUpTo('0.2');

/** The part of a run after which the upgrade begins. */
const BEGINS_AFTER = 0.4;
const LOOK_MS = 400;

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
  }

  /** RL3. */
  #look(): void {
    const { loop, admin, nodes, over } = this.#world;
    if (over || this.#finalized) return;
    loop.setTimer(LOOK_MS, () => this.#look());
    if (this.#isAway(this.#stopped)) return;
    this.#stopped = nodes.find((node) => node.up && !node.stopping && !node.clock.paused && node.versions === OLDER);
    if (this.#stopped !== undefined) return this.#restart(this.#stopped);
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
    void node.stop().then(() => this.#world.startAgain(node));
  }
}
