/**
 * Holds back messages that must not leave before an fsync.
 *
 * H1. A held message depends on everything that was unpersisted when it was made. It leaves when the mark that covers
 *     the last part of that is persisted (Raft dissertation, figure 3.1; traps 8).
 * H2. Marks are opened and closed in order, and messages are released in order.
 * H3. Only messages of the current term are released. An older acknowledgement or vote would still be true, but no
 *     receiver could use it.
 */
import { assert } from '@remora/base';
import type { Message } from './types.ts';

interface Held {
  readonly after: number;
  readonly message: Message;
}

export class PersistGate {
  #opened = 0;
  #closed = 0;
  readonly #held: Held[] = [];

  /** The sequence of the mark that opens now. */
  open(): number {
    this.#opened++;
    return this.#opened;
  }

  /**
   * Holds `message`; returns false if nothing that it depends on is unpersisted, so that it may leave at once. `dirty`:
   * there is something that the next mark will cover.
   */
  hold(message: Message, dirty: boolean): boolean {
    const after = dirty ? this.#opened + 1 : this.#opened;
    if (after <= this.#closed) return false;
    const last = this.#held.at(-1);
    // Acknowledgements are cumulative: among those that wait for one mark, the last one is sufficient.
    if (last !== undefined && last.after === after && supersedes(message, last.message)) this.#held.pop();
    this.#held.push({ after, message });
    return true;
  }

  /** Closes the oldest mark and returns the messages that it releases, in order. */
  close(sequence: number): readonly Message[] {
    assert(sequence === this.#closed + 1 && sequence <= this.#opened, 'H2: marks are reported in order, each once');
    this.#closed = sequence;
    let n = 0;
    while (n < this.#held.length && (this.#held[n] as Held).after <= sequence) n++;
    return n === 0 ? [] : this.#held.splice(0, n).map((held) => held.message);
  }
}

function supersedes(next: Message, last: Message): boolean {
  return (
    next.type === 'appendResponse' &&
    last.type === 'appendResponse' &&
    next.to === last.to &&
    next.term === last.term &&
    next.index >= last.index
  );
}
