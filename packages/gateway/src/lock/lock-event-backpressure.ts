import type { LockNews } from '@remora/lock';
import { HeldBytes } from '@remora/protocol';
import type { WatchControl } from '../backend.ts';

/** How many bytes a client that watches locks may leave unread at first. */
export const BACKLOG_BYTES_MAX = 1_048_576;
/** The most to which that may grow. A client for which this is too little has to read events as fast as they come. */
export const BACKLOG_BYTES_GROWN_MAX = 64 * BACKLOG_BYTES_MAX;
/** What all clients of one service may leave unread together, beyond what each may leave at first. */
const GROWN_TOGETHER_MAX = 4 * BACKLOG_BYTES_GROWN_MAX;

/** UN3. Shared by all clients that watch locks through one service. */
export function sharedBacklog(bytes = GROWN_TOGETHER_MAX): HeldBytes {
  return new HeldBytes(bytes);
}

/**
 * Sends lock events to a client. While the client leaves too much unread, the watch is paused; it starts again with the
 * states of all locks afterwards.
 *
 * UN1. A page of states, or one lock with a thousand holders, is sent whole, however large it is: otherwise the watch
 *      would start again for ever. So at most one of these exceeds the bound.
 * UN2. The states of many locks come faster than clients read. A client that was paused and then has read everything
 *      may leave twice as much unread, so that in the end all states fit. A client that reads nothing is never sent
 *      more than the first bound.
 * UN3. What clients may leave unread beyond the first bound is bounded together. When that is used up, the bound of a
 *      client grows only after other watches have ended.
 */
export class LockEventBackpressure {
  readonly #write: (event: LockNews) => number;
  readonly #control: () => Pick<WatchControl, 'pause' | 'resume'> | undefined;
  readonly #shared: HeldBytes;
  /** Set by the last write. What the client has read since then is unknown until it has read everything. */
  #unreadBytes = 0;
  #unreadMax = BACKLOG_BYTES_MAX;
  #paused = false;

  /** `write` returns how many bytes the client has not taken yet; 0 when it keeps up. */
  constructor(
    write: (event: LockNews) => number,
    control: () => Pick<WatchControl, 'pause' | 'resume'> | undefined,
    shared: HeldBytes,
  ) {
    this.#write = write;
    this.#control = control;
    this.#shared = shared;
  }

  send(events: readonly LockNews[]): void {
    if (this.#paused) return;
    if (this.#unreadBytes > this.#unreadMax) {
      this.#paused = true;
      this.#control()?.pause();
      return;
    }
    for (const event of events) this.#unreadBytes = this.#write(event); // UN1
  }

  onDrain(): void {
    this.#unreadBytes = 0;
    if (!this.#paused) return;
    const moreBytes = Math.min(this.#unreadMax, BACKLOG_BYTES_GROWN_MAX - this.#unreadMax);
    if (this.#shared.take(moreBytes)) this.#unreadMax += moreBytes; // UN2, UN3
    // Before the call, during which the first events may come.
    this.#paused = false;
    this.#control()?.resume();
  }

  /** Gives the client's part of the shared bound back; no events may follow. */
  close(): void {
    this.#shared.give(this.#unreadMax - BACKLOG_BYTES_MAX);
    this.#unreadMax = BACKLOG_BYTES_MAX;
    this.#paused = false;
  }
}
