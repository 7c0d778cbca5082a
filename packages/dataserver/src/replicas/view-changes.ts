import type { Epoch, RangeDescriptor } from '@remora/protocol';
import type { ReplicaTable } from './replica-table.ts';

/**
 * What the masters' list of ranges does not show yet of the ranges here. While the list stays the same, only ranges
 * that something happened to are compared with it (active-ranges.ts AC1).
 */
export class ViewChanges {
  readonly #replicas: ReplicaTable;
  readonly #marks: Set<number>;
  #seen: { readonly ranges: readonly RangeDescriptor[]; readonly epochs: ReadonlyMap<number, Epoch> } | undefined;

  constructor(replicas: ReplicaTable, marks: Set<number>) {
    this.#replicas = replicas;
    this.#marks = marks;
  }

  /** Returns the ranges here whose epoch is later than in this list, or that it does not have. */
  since(ranges: readonly RangeDescriptor[]): readonly RangeDescriptor[] {
    if (this.#seen?.ranges !== ranges) {
      this.#seen = { ranges, epochs: new Map(ranges.map(({ rangeId, epoch }) => [rangeId, epoch])) };
      for (const { rangeId } of this.#replicas.all()) this.#marks.add(rangeId);
    }
    const { epochs } = this.#seen;
    const changed: RangeDescriptor[] = [];
    for (const rangeId of this.#marks) {
      const descriptor = this.#replicas.get(rangeId)?.replica.state.descriptor;
      if (descriptor !== undefined && isLater(descriptor.epoch, epochs.get(rangeId))) changed.push(descriptor);
      else this.#marks.delete(rangeId); // until something happens to it, or the list changes
    }
    return changed;
  }
}

function isLater(epoch: Epoch, known: Epoch | undefined): boolean {
  return known === undefined || epoch.confVersion > known.confVersion || epoch.version > known.version;
}
