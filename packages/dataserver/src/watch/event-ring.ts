import type { KvEvent } from '@remora/protocol';

export interface RevisionEvents {
  readonly revision: number;
  readonly events: readonly KvEvent[];
}

/**
 * The most recent changes of a range, in memory on every replica. Watches are served from it without a scan.
 *
 * G1. The ring holds every event with a revision at or above `from`, and no others; dropping the oldest event raises
 *     `from`, and frees its memory at once.
 */
export class EventRing {
  readonly #bytesMax: () => number;
  /** Undefined: dropped (G1). */
  #groups: (RevisionEvents | undefined)[] = [];
  /** Index of the oldest group; the array is compacted when half of it is dead. */
  #head = 0;
  #bytes = 0;
  #from: number;

  /** `bytesMax` may fall over time. */
  constructor(options: { readonly from: number; readonly bytesMax: () => number }) {
    this.#from = options.from;
    this.#bytesMax = options.bytesMax;
  }

  get from(): number {
    return this.#from;
  }

  push(revision: number, events: readonly KvEvent[]): void {
    this.#groups.push({ revision, events });
    this.#bytes += bytesOf(events);
    this.trim();
  }

  /** Drops events above the limit, except the last group. */
  trim(): void {
    const bytesMax = this.#bytesMax();
    while (this.#bytes > bytesMax && this.#head < this.#groups.length - 1) this.#dropOldest();
  }

  /** Groups with revisions at or above `revision`, oldest first; `revision` must be at least `from`. */
  *since(revision: number): IterableIterator<RevisionEvents> {
    for (let i = this.#firstAtOrAbove(revision); i < this.#groups.length; i++) {
      const group = this.#groups[i];
      if (group !== undefined) yield group;
    }
  }

  #firstAtOrAbove(revision: number): number {
    let low = this.#head;
    let high = this.#groups.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#groups[middle]?.revision ?? 0) < revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #dropOldest(): void {
    const oldest = this.#groups[this.#head];
    if (oldest === undefined) return;
    this.#bytes -= bytesOf(oldest.events);
    this.#from = oldest.revision + 1;
    this.#groups[this.#head] = undefined;
    this.#head++;
    if (this.#head > 1_024 && this.#head * 2 > this.#groups.length) {
      this.#groups = this.#groups.slice(this.#head);
      this.#head = 0;
    }
  }
}

const EVENT_OVERHEAD_BYTES = 200;

export function bytesOf(events: readonly KvEvent[]): number {
  let sum = 0;
  for (const event of events) sum += eventBytes(event);
  return sum;
}

export function eventBytes({ kv, prev }: KvEvent): number {
  return EVENT_OVERHEAD_BYTES + kv.key.length + kv.value.length + (prev?.value.length ?? 0);
}
