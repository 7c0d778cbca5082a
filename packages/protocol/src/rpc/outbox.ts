import type { Clock } from '@remora/base';
import { encodeFrame, type Item } from './frame.ts';
import type { FrameLink } from './link.ts';

/** A frame is closed when it holds about this much, and the next one begun. */
export const FRAME_BYTES_SOFT = 1 << 20;

/** What waits is told the link when it is so much more than it was told last. */
const TOLD_BYTES = 64 * 1024;

interface Queued {
  readonly item: Item;
  readonly size: number;
  readonly sender: Sender | undefined;
}

/** Whoever wants to know when its item leaves. */
export interface Sender {
  /** Runs just before the frame with the item is handed to the link; false drops the item. */
  sending(): boolean;
}

/**
 * Gathers what one side of a link has to say during a loop turn and sends it as few frames.
 *
 * O1. Items leave in the order in which they were put.
 * O2. Until the link is open, and while it is full, items stay here unencoded; `bytes` tells how much, and whoever
 *     puts them bounds it.
 *     The link is told of it, in steps of `TOLD_BYTES`, before it is sent any of it.
 * O3. Whoever was told that there is no room hears of it when there is, also when the link was never full.
 */
export class Outbox {
  readonly #link: FrameLink;
  readonly #clock: Clock;
  readonly #onWritable: () => void;
  #queue: Queued[] = [];
  #bytes = 0;
  /** What the link was told of it (O2). */
  #told = 0;
  #state: 'closed' | 'writable' | 'full' = 'closed';
  #scheduled = false;
  /** Somebody was told that there is no room (O3). */
  #awaited = false;

  /** `onWritable` is called when everything has been sent after a time in which somebody found no room. */
  constructor(link: FrameLink, clock: Clock, onWritable: () => void) {
    this.#link = link;
    this.#clock = clock;
    this.#onWritable = onWritable;
  }

  /** About how many bytes wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether more may be put without a pause: the link takes it, and no more than `bytesMax` waits. */
  hasRoom(bytesMax: number): boolean {
    if (this.#state !== 'full' && this.#bytes <= bytesMax) return true;
    this.#awaited = true;
    return false;
  }

  put(item: Item, size: number, sender?: Sender): void {
    this.#queue.push({ item, size, sender });
    this.#bytes += size;
    this.#schedule();
    if (this.#bytes - this.#told >= TOLD_BYTES) this.#tell();
  }

  open(): void {
    this.#state = 'writable';
    this.#schedule();
  }

  /** Sends what waits now, as far as the link takes it, and not at the end of the turn. */
  flush(): void {
    if (this.#state === 'writable') this.#flush();
  }

  drained(): void {
    if (this.#state !== 'full') return;
    this.#state = 'writable';
    this.#flush();
  }

  /** Drops what waits; nothing is sent any more. */
  close(): void {
    this.#state = 'closed';
    this.#queue = [];
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

  #flush(): void {
    const queue = this.#queue;
    let at = 0;
    while (at < queue.length && this.#writable()) {
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
      this.#tell();
      if (items.length > 0 && !this.#link.send(encodeFrame(items)) && this.#writable()) this.#state = 'full';
    }
    // A link may close itself inside send; close() has then replaced the queue already.
    if (queue === this.#queue) this.#queue = at === queue.length ? [] : queue.slice(at);
    if (!this.#awaited || !this.#writable()) return;
    this.#awaited = false;
    this.#onWritable(); // O3
  }
}
