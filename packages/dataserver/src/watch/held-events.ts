import type { KvEvent } from '@remora/protocol';
import { bytesOf, type RevisionEvents } from './event-ring.ts';

/**
 * Events that wait to be told, as a transaction over several ranges may still commit with an older revision: the order
 * of events is that of revisions, whatever the order in which they are applied (T6 of decision 19). Nearly always
 * empty.
 */
export class HeldEvents {
  /** Ascending by revision. */
  readonly #groups: RevisionEvents[] = [];
  #bytes = 0;

  get size(): number {
    return this.#groups.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Infinity when there is none. */
  get first(): number {
    return this.#groups[0]?.revision ?? Number.POSITIVE_INFINITY;
  }

  add(revision: number, events: readonly KvEvent[]): void {
    let at = this.#groups.length;
    while (at > 0 && (this.#groups[at - 1]?.revision ?? 0) > revision) at--;
    const before = this.#groups[at - 1];
    // Two parts of one transaction, whose ranges were merged: a revision is told as a whole, or a watch goes on behind
    // half of it.
    if (before?.revision === revision) this.#groups[at - 1] = { revision, events: [...before.events, ...events] };
    else this.#groups.splice(at, 0, { revision, events });
    this.#bytes += bytesOf(events);
  }

  /** Takes out those below a revision, in order. */
  takeBelow(revision: number): readonly RevisionEvents[] {
    const end = this.#groups.findIndex((group) => group.revision >= revision);
    const taken = this.#groups.splice(0, end < 0 ? this.#groups.length : end);
    for (const { events } of taken) this.#bytes -= bytesOf(events);
    return taken;
  }
}
