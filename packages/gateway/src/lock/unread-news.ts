import type { LockNews } from '@remora/lock';
import type { WatchControl } from '../backend.ts';

/**
 * How much a client that watches locks may leave unread. Far more than a page of states, which is told at once: what
 * is over it is not told, and as a watch begins anew after a pause, a bound that a page reaches is never settled.
 */
export const UNREAD_BYTES_MAX = 1_048_576;

/** Tells a client of locks. While it leaves too much unread nothing is listened to: afterwards it begins anew. */
export class UnreadNews {
  readonly #write: (one: LockNews) => number;
  readonly #control: () => Pick<WatchControl, 'pause' | 'resume'> | undefined;
  #paused = false;

  /** `write` gives how many bytes the client has not taken yet; 0 when it keeps up. */
  constructor(write: (one: LockNews) => number, control: () => Pick<WatchControl, 'pause' | 'resume'> | undefined) {
    this.#write = write;
    this.#control = control;
  }

  tell(news: readonly LockNews[]): void {
    for (const one of news) {
      if (this.#paused) return;
      if (this.#write(one) <= UNREAD_BYTES_MAX) continue;
      this.#paused = true;
      this.#control()?.pause();
    }
  }

  onDrain(): void {
    if (!this.#paused) return;
    // Before: the first news may come during the call.
    this.#paused = false;
    this.#control()?.resume();
  }
}
