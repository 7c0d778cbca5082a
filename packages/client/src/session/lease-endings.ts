// E1. A lease that may have no expiry is ended by its client or by nobody, and one with a long TTL by nobody for long: it is
//     asked for again and again, with growing pauses, until the cluster has answered. Until then the journal names it (J1 of
//     `journal.ts`).
// E2. Closing the client asks once more at once, also for what only its closing adds, and then no further: what is left is the next one's by the journal, or
//     somebody's by force.
import { sleep } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { isLeaseGone } from '../transport/request-errors.ts';
import type { Requester } from '../transport/requester.ts';
import type { LeaseJournal } from './journal.ts';

const ATTEMPT_MS = 10_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/** Leases that could not be ended at once, and are being ended in the background. */
export class LeaseEndings {
  readonly #requester: Requester;
  readonly #journal: LeaseJournal | undefined;
  readonly #pending = new Map<bigint, Promise<void>>();
  /** Aborts when the client is being closed. */
  readonly #closing = new AbortController();

  constructor(requester: Requester, journal: LeaseJournal | undefined) {
    this.#requester = requester;
    this.#journal = journal;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Does not keep the process alive. */
  add(ref: SessionRef): void {
    if (this.#pending.has(ref.lease)) return;
    const ended = this.#end(ref).finally(() => this.#pending.delete(ref.lease));
    this.#pending.set(ref.lease, ended);
  }

  /** E2. Resolves when each was asked for once more. What is added from then on is asked for once, and waited for by the next call. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#pending.values());
  }

  async #end(ref: SessionRef): Promise<void> {
    const { clock } = this.#requester.ports;
    const { signal } = this.#closing;
    let last = false;
    for (let pauseMs = PAUSE_MIN_MS; !last; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
      last = signal.aborted;
      if (await this.#revoke(ref)) return this.#journal?.remove(ref.lease);
      if (!last) await sleep(clock, pauseMs, signal).catch(() => {});
    }
  }

  /** Asks once. Resolves to whether the lease has certainly ended. */
  #revoke({ lease: id, incarnation }: SessionRef): Promise<boolean> {
    return new Promise((resolve) => {
      const revoke = { type: 'leaseRevoke', id, incarnation } as const;
      this.#requester.sendCommand(revoke, { timeoutMs: ATTEMPT_MS }, (error) => {
        resolve(error === undefined || isLeaseGone(error));
      });
    });
  }
}
