import type { Clock } from '@remora/base';
import { encodeFrame, type Item } from './frame.ts';
import type { FrameLink } from './link.ts';

/** A frame is closed at about this size, and the next one begins. */
export const FRAME_BYTES_SOFT = 1 << 20;

/** The size at which the rest of the queue waits for another turn (O4): some milliseconds of packing and copying. */
const FLUSH_BYTES_MAX = FRAME_BYTES_SOFT;

/** The link learns the number of waiting bytes each time that it has grown by this much. */
const TOLD_BYTES = 64 * 1024;

interface Queued {
  readonly item: Item;
  readonly size: number;
  readonly sender: Sender | undefined;
}

/** Learns when its item leaves. */
export interface Sender {
  /** Runs just before the frame with the item is passed to the link; false drops the item. */
  sending(): boolean;
}

/**
 * Gathers the items that one side of a link sends during a loop turn, and sends them as few frames.
 *
 * O1. Items leave in the order in which they were put.
 * O2. Until the link is open, and while it is full, items stay here unencoded. `bytes` is their approximate size, and
 *     the caller that puts them bounds it. The link is informed of that size, in steps of `TOLD_BYTES`, before any of
 *     it is sent.
 * O3. A caller that found no room is notified when everything has been sent, even if the link was never full.
 * O4. One turn encodes items until they have FLUSH_BYTES_MAX bytes; the others wait for the next turn, so that a long
 *     queue does not hold the loop. A single larger item is one piece.
 * O5. While it holds, items wait, except those that are put ahead. Released items leave in their order.
 */
export class Outbox {
  readonly #link: FrameLink;
  readonly #clock: Clock;
  readonly #onWritable: () => void;
  #queue: Queued[] = [];
  /** What waits for `release` (O5); undefined while nothing is held. */
  #held: Queued[] | undefined;
  #bytes = 0;
  /** The size that the link was last informed of (O2). */
  #told = 0;
  #state: 'closed' | 'writable' | 'full' = 'closed';
  #scheduled = false;
  /** A caller found no room (O3). */
  #awaited = false;

  /** `onWritable` is called when everything has been sent after a caller found no room. */
  constructor(link: FrameLink, clock: Clock, onWritable: () => void) {
    this.#link = link;
    this.#clock = clock;
    this.#onWritable = onWritable;
  }

  /** The approximate number of waiting bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether more may be put without a pause: the link accepts it, and at most `bytesMax` waits. */
  hasRoom(bytesMax: number): boolean {
    if (this.#state !== 'full' && this.#bytes <= bytesMax) return true;
    this.#awaited = true;
    return false;
  }

  put(item: Item, size: number, sender?: Sender): void {
    this.#add(this.#held ?? this.#queue, { item, size, sender });
  }

  /** O5. */
  putAhead(item: Item, size: number, sender?: Sender): void {
    this.#add(this.#queue, { item, size, sender });
  }

  /** O5. What was put before still leaves. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    for (const queued of held) this.#queue.push(queued); // A spread would pass them as arguments: too many at once.
    this.#schedule();
  }

  #add(queue: Queued[], queued: Queued): void {
    const { size } = queued;
    queue.push(queued);
    this.#bytes += size;
    this.#schedule();
    if (this.#bytes - this.#told >= TOLD_BYTES) this.#tell();
  }

  open(): void {
    this.#state = 'writable';
    this.#schedule();
  }

  /** Sends waiting items now, as far as the link accepts them, instead of at the end of the turn, and however many. */
  flush(): void {
    if (this.#state === 'writable') this.#flush(Number.POSITIVE_INFINITY);
  }

  drained(): void {
    if (this.#state !== 'full') return;
    this.#state = 'writable';
    this.#flush();
  }

  /** Drops waiting items; nothing is sent any more. */
  close(): void {
    this.#state = 'closed';
    this.#queue = [];
    if (this.#held !== undefined) this.#held = [];
    this.#bytes = 0;
    this.#tell();
  }

  #tell(): void {
    if (this.#told === this.#bytes) return;
    this.#told = this.#bytes;
    this.#link.holdsBack?.(this.#bytes);
  }

  #writable(): boolean {
    return this.#state === 'writable';
  }

  #schedule(): void {
    if (this.#scheduled || this.#state !== 'writable' || this.#queue.length === 0) return;
    this.#scheduled = true;
    this.#clock.setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(bytesMax = FLUSH_BYTES_MAX): void {
    const queue = this.#queue;
    let at = 0;
    let sent = 0;
    while (at < queue.length && sent < bytesMax && this.#writable()) {
      const items: Item[] = [];
      let size = 0;
      for (; at < queue.length && size < FRAME_BYTES_SOFT; at++) {
        const next = queue[at];
        if (next === undefined) break;
        this.#bytes -= next.size;
        if (next.sender !== undefined && !next.sender.sending()) continue;
        size += next.size;
        items.push(next.item);
      }
      sent += size;
      this.#tell();
      if (items.length > 0 && !this.#link.send(encodeFrame(items, size)) && this.#writable()) this.#state = 'full';
    }
    // A link may close itself inside send; then close() has already replaced the queue.
    if (queue === this.#queue) this.#queue = at === queue.length ? [] : queue.slice(at);
    this.#schedule(); // O4
    if (!this.#awaited || !this.#writable() || this.#queue.length > 0) return;
    this.#awaited = false;
    this.#onWritable(); // O3
  }
}
