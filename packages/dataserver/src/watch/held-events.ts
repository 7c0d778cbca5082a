import type { KvEvent } from '@remora/protocol';
import { bytesOf, type RevisionEvents } from './event-ring.ts';

/**
 * Events that are held back because a transaction over several ranges may still commit with an older revision: events
 * are sent in the order of revisions, in whatever order they are applied (T6 of decision 19). Nearly always empty.
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

  /** Infinity when no events are held. */
  get first(): number {
    return this.#groups[0]?.revision ?? Number.POSITIVE_INFINITY;
  }

  add(revision: number, events: readonly KvEvent[]): void {
    let at = this.#groups.length;
    while (at > 0 && (this.#groups[at - 1]?.revision ?? 0) > revision) at--;
    const before = this.#groups[at - 1];
    // Two parts of one transaction, whose ranges were merged. A revision is sent as a whole; otherwise a watch would
    // continue behind half of it.
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
