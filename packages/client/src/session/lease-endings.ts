// E1. Nobody but its client ends a lease without expiry, and a lease with a long TTL would stay for long. So the client
//     retries to revoke it, with growing pauses, until the cluster has answered. Until then the journal names it (J1 of
//     `journal.ts`).
// E2. Closing the client tries once more at once, also for leases that the closing adds, and then stops. What is left
//     is ended by the next client through the journal, or by force.
import { sleep } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { isLeaseGone } from '../transport/request-errors.ts';
import type { Requester } from '../transport/requester.ts';
import type { LeaseJournal } from './journal.ts';

const ATTEMPT_MS = 10_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/** Revokes, in the background, the leases that could not be revoked at once. */
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

  /**
   * E2. Resolves when each lease was tried once more. A lease that is added later is tried once; the next call waits
   *     for that.
   */
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

  /** Sends one request. Resolves to whether the lease has certainly ended. */
  #revoke({ lease: id, incarnation }: SessionRef): Promise<boolean> {
    return new Promise((resolve) => {
      const revoke = { type: 'leaseRevoke', id, incarnation } as const;
      this.#requester.sendCommand(revoke, { timeoutMs: ATTEMPT_MS }, (error) => {
        resolve(error === undefined || isLeaseGone(error));
      });
    });
  }
}
