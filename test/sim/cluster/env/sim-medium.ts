/**
 * The rows of a node's engine on the machine's disk. It remembers what its last batches replaced: LevelDB would still
 * keep these batches in its own log, and would drop some of them, at a start, if a bit flipped there.
 */
import type { Bytes } from '@remora/base';
import type { Name } from '../../../../packages/dataserver/src/engine/latin1.ts';
import { MemoryMedium, type RowChange } from '../../../../packages/dataserver/src/testing/memory-store.ts';

const RECENT_MAX = 16;

/** By name, the rows that a batch replaced. */
type Batch = ReadonlyMap<Name, Bytes | undefined>;

export class SimMedium extends MemoryMedium {
  /** Oldest first. */
  #recent: Batch[] = [];

  override apply(changes: readonly RowChange[]): void {
    this.#recent.push(new Map(changes.map(([name]) => [name, this.rows.get(name)])));
    if (this.#recent.length > RECENT_MAX) this.#recent.shift();
    super.apply(changes);
  }

  /** A process opens its store, which makes tables of the contents of its log and begins a new one. */
  opened(): void {
    this.#recent = [];
  }

  /** Draws consecutive batches, like those that share a block; undefined if there are none yet. */
  drawBatches({ place, count }: { readonly place: number; readonly count: number }): LostBatches | undefined {
    const first = place % Math.max(1, this.#recent.length);
    const batches = this.#recent.slice(first, first + count);
    return batches.length === 0 ? undefined : new LostBatches(this, new Set(batches));
  }

  holdsAll(batches: ReadonlySet<Batch>): boolean {
    return [...batches].every((batch) => this.#recent.includes(batch));
  }

  endsWith(batches: ReadonlySet<Batch>): boolean {
    const last = this.#recent.at(-1);
    return last !== undefined && batches.has(last);
  }

  /** The changes that make the rows as if these batches had never been written. */
  changesWithout(batches: ReadonlySet<Batch>): readonly RowChange[] {
    const found = new Map<Name, Bytes | undefined>();
    const later = new Set<Name>();
    for (const batch of this.#recent.toReversed()) {
      for (const [name, replaced] of batch) {
        if (!batches.has(batch)) later.add(name);
        else if (!later.has(name)) found.set(name, replaced);
      }
    }
    return [...found];
  }
}

/**
 * Batches that the next start of a node does not find. The medium stays unchanged until then, for the checks, and in
 * case the bit flips back.
 */
export class LostBatches {
  readonly #medium: SimMedium;
  readonly #batches: ReadonlySet<Batch>;

  constructor(medium: SimMedium, batches: ReadonlySet<Batch>) {
    this.#medium = medium;
    this.#batches = batches;
  }

  /** Whether they are still where the bit flipped; otherwise all of them are in tables by now. */
  get stand(): boolean {
    return this.#medium.holdsAll(this.#batches);
  }

  /** Whether there are later ones, which are found. */
  get beforeOthers(): boolean {
    return !this.#medium.endsWith(this.#batches);
  }

  /** The rows without them. */
  rest(): MemoryMedium {
    const rest = new MemoryMedium(this.#medium.rows.clone());
    rest.apply(this.#medium.changesWithout(this.#batches));
    return rest;
  }

  /** They are lost for good. */
  lose(): void {
    this.#medium.apply(this.#medium.changesWithout(this.#batches));
  }
}
