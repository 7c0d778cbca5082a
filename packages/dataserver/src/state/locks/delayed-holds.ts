import { binaryString, type Engine, LazyMap, type Span, spanContains, spanCovers } from '@remora/base';
import { type DelayedHold, delayedHolds, type LockId, lockPrefix, type Owner } from '@remora/lock';
import { LOCK_SPACE } from '@remora/protocol';
import { intersection } from '../bounds.ts';

const LOCKS: Span = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };

/**
 * The holds of a range that still block others although their session has ended. The records of the locks contain them;
 * this table makes them easy to find. Their end is not decided here: the leader watches the time and proposes
 * (range/locks/lock-delays.ts).
 *
 * DH1. Every delayed hold in the records is in this table. A hold that was taken away by force stays in the table until
 *      its delay is over: ending it then does nothing.
 * DH2. A split and a merge hand the table over. To rebuild it from the records, all locks of the range would have to be
 *      read in the one step that applies the split or merge, and every request would wait meanwhile.
 */
export class DelayedHolds {
  readonly #engine: Engine;
  readonly #holds = new LazyMap<string, DelayedHold>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  get size(): number {
    return this.#holds.size;
  }

  all(): IterableIterator<DelayedHold> {
    return this.#holds.values();
  }

  has(hold: Pick<DelayedHold, 'lock' | 'owner' | 'version'>): boolean {
    return this.#holds.has(nameOf(hold));
  }

  /** Loads the holds of a span of routing keys, when the replica starts or has installed a snapshot. */
  load(routed: Span): void {
    this.#holds.clear();
    const span = intersection(routed, LOCKS);
    if (span === undefined) return;
    const scan = (start: Uint8Array, end: Uint8Array, limit: number) =>
      this.#engine.scanResident({ start, end, limit });
    this.takeOver(delayedHolds({ scan }, span));
  }

  /**
   * Takes over the holds of another range whose locks belong to this one now, from memory without reading rows (DH2).
   */
  takeOver(holds: Iterable<DelayedHold>): void {
    for (const hold of holds) this.add(hold);
  }

  /** Removes and returns the holds outside a span of routing keys: they go to another range. */
  cut(routed: Span): readonly DelayedHold[] {
    if (spanCovers(routed, LOCKS)) return [];
    const gone = [...this.#holds.values()].filter(({ lock }) => !spanContains(routed, lockPrefix(lock)));
    for (const hold of gone) this.remove(hold);
    return gone;
  }

  add(hold: DelayedHold): void {
    this.#holds.set(nameOf(hold), hold);
  }

  remove(hold: Pick<DelayedHold, 'lock' | 'owner' | 'version'>): void {
    this.#holds.delete(nameOf(hold));
  }
}

function nameOf({ lock, owner, version }: { lock: LockId; owner: Owner; version: number }): string {
  return `${version}/${owner.session.lease}/${owner.token}/${binaryString(lockPrefix(lock))}`;
}
