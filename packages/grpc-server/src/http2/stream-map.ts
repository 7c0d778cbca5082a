/**
 * Open streams by their ids: a hash table with linear probing.
 *
 * `Map` would do, but V8 gives it new tables again and again as it grows and shrinks, and each old table points to the
 * next. Once one of them is in the old generation, all later ones are kept until the next major collection, together
 * with the calls that they had: the collector then spends a third of the CPU of a busy server on moving dead calls.
 *
 * SM1. A chain of occupied slots has no gap between an entry's home slot and its own: `delete` moves entries back.
 * SM2. At most half of the slots are occupied.
 */
import type { Stream } from './stream.ts';

const SLOTS_MIN = 16;

export class StreamMap {
  #slots: (Stream | undefined)[] = new Array(SLOTS_MIN).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let at = home(id, mask); ; at = (at + 1) & mask) {
      const stream = slots[at];
      if (stream === undefined || stream.id === id) return stream;
    }
  }

  /** The id must not be there. */
  add(stream: Stream): void {
    this.#size++;
    if (2 * this.#size > this.#slots.length) this.#grow(); // SM2
    insert(this.#slots, stream);
  }

  /** SM1 */
  delete(id: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = home(id, mask);
    while (slots[gap]?.id !== id) {
      if (slots[gap] === undefined) return;
      gap = (gap + 1) & mask;
    }
    this.#size--;
    for (let at = (gap + 1) & mask; ; at = (at + 1) & mask) {
      const stream = slots[at];
      if (stream === undefined) break;
      // It may move back unless its home is behind the gap.
      if (((at - home(stream.id, mask)) & mask) < ((at - gap) & mask)) continue;
      slots[gap] = stream;
      gap = at;
    }
    slots[gap] = undefined;
  }

  /** The streams that are open now. */
  values(): Stream[] {
    return this.#size === 0 ? [] : this.#slots.filter((stream) => stream !== undefined);
  }

  /** Gives up memory that an idle connection does not need. */
  shrink(): void {
    if (this.#size === 0 && this.#slots.length > SLOTS_MIN) this.#slots = new Array(SLOTS_MIN).fill(undefined);
  }

  #grow(): void {
    const slots: (Stream | undefined)[] = new Array(2 * this.#slots.length).fill(undefined);
    for (const stream of this.#slots) if (stream !== undefined) insert(slots, stream);
    this.#slots.fill(undefined);
    this.#slots = slots;
  }
}

function insert(slots: (Stream | undefined)[], stream: Stream): void {
  const mask = slots.length - 1;
  let at = home(stream.id, mask);
  while (slots[at] !== undefined) at = (at + 1) & mask;
  slots[at] = stream;
}

/** The ids of clients are odd, and follow each other. */
function home(id: number, mask: number): number {
  return (id >>> 1) & mask;
}
