/**
 * The network of a world: links behave according to the current faults on them. If several apply, the worst one counts.
 */
import type { LinkFaults } from '@remora/raft/testing';
import type { LocalNetwork } from '../../../packages/raft/src/testing/local-network.ts';

/** The effect of a fault on its links. */
export interface LinkRule {
  readonly on: (from: number, to: number) => boolean;
  readonly faults: Partial<LinkFaults>;
}

export class NetworkFaults {
  readonly #network: LocalNetwork;
  readonly #nodes: readonly number[];
  readonly #base: LinkFaults;
  readonly #rules = new Set<LinkRule>();

  constructor(network: LocalNetwork, nodes: readonly number[], base: LinkFaults) {
    this.#network = network;
    this.#nodes = nodes;
    this.#base = base;
  }

  add(rule: LinkRule): () => void {
    this.#rules.add(rule);
    this.#update();
    return () => {
      if (this.#rules.delete(rule)) this.#update();
    };
  }

  clear(): void {
    this.#rules.clear();
    this.#update();
  }

  #update(): void {
    for (const from of this.#nodes) {
      for (const to of this.#nodes) {
        if (from !== to) this.#network.setLink({ from, to }, this.faultsOf(from, to));
      }
    }
  }

  /** The current faults of a link. */
  faultsOf(from: number, to: number): LinkFaults {
    let { blocked, refuses, dropPerMille, duplicatePerMille, delayMs, jitterMs, reorder, snapshotBreakPerMille } =
      this.#base;
    for (const { on, faults } of this.#rules) {
      if (!on(from, to)) continue;
      blocked ||= faults.blocked ?? false;
      refuses ||= faults.refuses ?? false;
      reorder ||= faults.reorder ?? false;
      dropPerMille = Math.max(dropPerMille, faults.dropPerMille ?? 0);
      duplicatePerMille = Math.max(duplicatePerMille, faults.duplicatePerMille ?? 0);
      delayMs = Math.max(delayMs, faults.delayMs ?? 0);
      jitterMs = Math.max(jitterMs, faults.jitterMs ?? 0);
      snapshotBreakPerMille = Math.max(snapshotBreakPerMille, faults.snapshotBreakPerMille ?? 0);
    }
    return { blocked, refuses, dropPerMille, duplicatePerMille, delayMs, jitterMs, reorder, snapshotBreakPerMille };
  }
}
