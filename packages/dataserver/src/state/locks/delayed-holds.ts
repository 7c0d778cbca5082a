import { binaryString, type Engine, type Span, spanContains, spanCovers } from '@remora/base';
import { type DelayedHold, delayedHolds, type LockId, lockPrefix, type Owner } from '@remora/lock';
import { LOCK_SPACE } from '@remora/protocol';
import { intersection } from '../bounds.ts';

const LOCKS: Span = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };

/**
 * The holds of a range that keep others off though their session has ended. The records of the locks say so; this is
 * where to find them. When they end is not decided here: the leader watches the time and proposes
 * (range/locks/lock-delays.ts).
 *
 * DH1. Whatever the records say is in here. One that was taken away by force stays until its delay is over: it is no
 *      secret to who ends it that there is nothing to end.
 * DH2. A split and a merge hand over what is in here. To find it in the records all locks of the range would be read,
 *      for which everybody waits, as both are applied in one step.
 */
export class DelayedHolds {
  readonly #engine: Engine;
  readonly #holds = new Map<string, DelayedHold>();

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

  /** Reads those of a span of routing keys, when the replica starts or has installed a snapshot. */
  load(routed: Span): void {
    this.#holds.clear();
    const span = intersection(routed, LOCKS);
    if (span === undefined) return;
    const scan = (start: Uint8Array, end: Uint8Array, limit: number) =>
      this.#engine.scanResident({ start, end, limit });
    this.takeOver(delayedHolds({ scan }, span));
  }

  /** Those of another range, whose locks are this one's now: what is in memory there is not read again (DH2). */
  takeOver(holds: Iterable<DelayedHold>): void {
    for (const hold of holds) this.add(hold);
  }

  /** Forgets those outside of a span of routing keys, which go to another range, and gives them. */
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
