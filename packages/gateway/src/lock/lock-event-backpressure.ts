import type { LockNews } from '@remora/lock';
import { HeldBytes } from '@remora/protocol';
import type { WatchControl } from '../backend.ts';

/** How much a client that watches locks may leave unread at first, before it is told more. */
export const UNREAD_BYTES_MAX = 1_048_576;
/** And how much at most: states of more locks than this takes reach only clients that read them as fast as they come. */
export const UNREAD_BYTES_GROWN_MAX = 64 * UNREAD_BYTES_MAX;
/** What all clients of one door may leave unread together, beyond what each may at first. */
const GROWN_TOGETHER_MAX = 4 * UNREAD_BYTES_GROWN_MAX;

/** UN3. Of one door, for all who watch locks through it. */
export function unreadRoom(bytes = GROWN_TOGETHER_MAX): HeldBytes {
  return new HeldBytes(bytes);
}

/**
 * Tells a client of locks. While it leaves too much unread nothing is listened to: afterwards it begins anew.
 *
 * UN1. What is told at a time is told whole, however large it is (a page of states, or one lock with a thousand holders):
 *      otherwise it would begin anew for ever. So the bound is exceeded by one of these at most.
 * UN2. The states of many locks come faster than clients read. Who was paused, and then has read everything, may leave twice
 *      as much: in the end all of them fit. Who reads nothing is never left more than at first.
 * UN3. What they may leave beyond that is bounded together, too: when nothing is left of it, nobody is let grow before others
 *      have ended.
 */
export class LockEventBackpressure {
  readonly #write: (one: LockNews) => number;
  readonly #control: () => Pick<WatchControl, 'pause' | 'resume'> | undefined;
  readonly #room: HeldBytes;
  /** By the last write; of what was read since nothing is known until all is. */
  #unread = 0;
  #unreadMax = UNREAD_BYTES_MAX;
  #paused = false;

  /** `write` gives how many bytes the client has not taken yet; 0 when it keeps up. */
  constructor(
    write: (one: LockNews) => number,
    control: () => Pick<WatchControl, 'pause' | 'resume'> | undefined,
    room: HeldBytes,
  ) {
    this.#write = write;
    this.#control = control;
    this.#room = room;
  }

  tell(news: readonly LockNews[]): void {
    if (this.#paused) return;
    if (this.#unread > this.#unreadMax) {
      this.#paused = true;
      this.#control()?.pause();
      return;
    }
    for (const one of news) this.#unread = this.#write(one); // UN1
  }

  onDrain(): void {
    this.#unread = 0;
    if (!this.#paused) return;
    const moreBytes = Math.min(this.#unreadMax, UNREAD_BYTES_GROWN_MAX - this.#unreadMax);
    if (this.#room.take(moreBytes)) this.#unreadMax += moreBytes; // UN2, UN3
    // Before: the first news may come during the call.
    this.#paused = false;
    this.#control()?.resume();
  }

  /** Nothing is told any more. */
  close(): void {
    this.#room.give(this.#unreadMax - UNREAD_BYTES_MAX);
    this.#unreadMax = UNREAD_BYTES_MAX;
    this.#paused = false;
  }
}
