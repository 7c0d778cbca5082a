/** While the cluster works: periodically compares the state of every replica with others that were at its position. */
import type { SimNode } from '../node.ts';
import type { World } from '../world.ts';
import { GivenIds } from './given-ids.ts';
import { masterSumOf, type Replica, type StateSum, StateSums, sumOf } from './replicas.ts';

const EVERY_MS = 4_000;

export class StateWatch {
  readonly #world: World;
  readonly #sums = new StateSums();
  readonly #ids = new GivenIds();

  constructor(world: World) {
    this.#world = world;
  }

  /** Comparisons of two replicas. */
  get compared(): number {
    return this.#sums.compared;
  }

  run(): void {
    this.#world.loop.setTimer(EVERY_MS, () => {
      if (this.#world.resting) return;
      for (const node of this.#world.nodes) node.enter(() => this.#look(node));
      this.run();
    });
  }

  #look(node: SimNode): void {
    const { lives } = node;
    const master = node.roles?.master;
    if (master !== undefined) {
      try {
        this.#ids.look(master.state.image());
        this.#sums.add(masterSumOf(node.id, master.state));
      } catch (error) {
        this.#world.fail(error);
      }
    }
    for (const replica of replicasOn(node)) {
      sumOf(replica, false)
        .then((sum) => this.#sums.add(sum))
        .catch((error: unknown) => {
          // A read in progress gets no result if the process ended, began to stop, or its disk failed.
          if (node.lives === lives && node.up && !node.stopping && !node.diskFault) this.#world.fail(error);
        });
    }
  }
}

/** Every replica at rest, masters included. */
export function sumsOf(nodes: readonly SimNode[]): Promise<readonly StateSum[]> {
  const masters = nodes.flatMap(({ id, roles }) =>
    roles?.master === undefined ? [] : masterSumOf(id, roles.master.state),
  );
  return Promise.all([...masters, ...nodes.flatMap(replicasOn).map((replica) => sumOf(replica, true))]);
}

function replicasOn({ id, roles }: SimNode): readonly Replica[] {
  if (roles === undefined) return [];
  const { engine } = roles;
  const replicas = [...(roles.store?.replicas() ?? [])].filter(({ replacing }) => !replacing);
  return replicas.map(({ state }) => ({ nodeId: id, engine, state }));
}
