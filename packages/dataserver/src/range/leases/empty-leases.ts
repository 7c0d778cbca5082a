/**
 * Ends leases that never expire once nothing belongs to them any more. A lock that never expires has such a lease of
 * its own (docs/decisions/0035), which its client ends when it releases the lock. A client that is gone does not, so
 * that the lease would stay for ever after its lock was taken by force. Part of a range's leader.
 *
 * EM1. Only a lease is ended whose TTL was changed to never (`endsEmpty` of leases.ts): the client does that when it
 *      has the lock, so that an empty one has lost what it was for. One that was granted with that TTL may be waiting
 *      for its first key.
 * EM2. Every range is asked what it has of the lease, after the home has said that it is such a lease: held locks,
 *      places in queues, keys. It is ended if nobody has anything, by its incarnation. The end is applied only if the
 *      home has still nothing of it, and it is still such a lease (LC5 of lease-commands.ts). Another range answers for
 *      the moment at which it is asked: what comes to belong to the lease there between its answer and the end goes
 *      with the lease.
 * EM3. A range looks when a lock of its own was taken from the lease by force, and in rounds: the home at leases that
 *      have nothing and never had anything elsewhere; a range that refers to a lease at those that have nothing here
 *      (lease-audit.ts). So what a leader leaves undone, a later round does. A look that is not answered ends nothing.
 */
import type { Clock, Timer } from '@remora/base';
import { endsEmpty, type Leases } from '../../state/leases/leases.ts';
import type { OtherRanges } from '../reshape/other-ranges.ts';

export interface LeaseRef {
  readonly id: bigint;
  readonly incarnation: number;
}

export interface EmptyLeasesDeps {
  readonly clock: Clock;
  readonly leases: Pick<Leases, 'all' | 'attached'>;
  readonly others: OtherRanges;
  /** From one round to the next. */
  readonly intervalMs?: number | undefined;
}

const INTERVAL_MS = 300_000;
const TIMEOUT_MS = 5_000;
/** Between two looks, each of which asks all ranges: it bounds what they cost. */
const PAUSE_MS = 20;
/** Leases that wait for their look; more are left to the next round. */
const WAITING_MAX = 1_000;

export class EmptyLeases {
  readonly #deps: EmptyLeasesDeps;
  /** By id: which incarnation is to be looked at. */
  readonly #waiting = new Map<bigint, LeaseRef>();
  /** Grows with each term: what was begun in an earlier one is over. */
  #life = 0;
  #serving = false;
  #looking = false;
  #round: Timer | undefined;
  #giveUp: () => void = () => {};

  constructor(deps: EmptyLeasesDeps) {
    this.#deps = deps;
  }

  /** Called once this replica leads and has applied an entry of its own term. */
  start(): void {
    this.stop();
    this.#serving = true;
    this.#rest();
  }

  stop(): void {
    this.#serving = false;
    this.#life++;
    this.#looking = false;
    this.#waiting.clear();
    this.#round?.cancel();
    this.#giveUp();
    this.#giveUp = () => {};
  }

  /** The lease may have nothing any more. */
  look(lease: LeaseRef): void {
    if (!this.#serving || this.#waiting.size >= WAITING_MAX) return;
    this.#waiting.set(lease.id, lease);
    if (this.#looking) return;
    this.#looking = true;
    this.#after(PAUSE_MS, () => this.#next());
  }

  /** EM3. */
  #rest(): void {
    const { clock, leases, intervalMs = INTERVAL_MS } = this.#deps;
    this.#round = clock.setTimer(intervalMs, () => {
      for (const lease of leases.all()) {
        if (endsEmpty(lease) && lease.spans.length === 0 && !leases.attached.any(lease.id)) this.look(lease);
      }
      this.#rest();
    });
  }

  #next(): void {
    const [lease] = this.#waiting.values();
    this.#looking = lease !== undefined;
    if (lease === undefined) return;
    this.#waiting.delete(lease.id);
    this.#askHome(lease, () => this.#after(PAUSE_MS, () => this.#next()));
  }

  /** EM1. */
  #askHome({ id, incarnation }: LeaseRef, done: () => void): void {
    this.#ask({ type: 'leaseTimeToLive', id, keys: true }, (result) => {
      const lease = result?.type === 'leaseTimeToLive' ? result.lease : undefined;
      const isEmpty = lease?.incarnation === incarnation && lease.endsEmpty && lease.keys.length === 0;
      if (isEmpty) this.#askForLocks({ id, incarnation }, done);
      else done();
    });
  }

  /** EM2. */
  #askForLocks({ id, incarnation }: LeaseRef, done: () => void): void {
    this.#ask({ type: 'session', id, incarnation: 0 }, (result) => {
      const isEmpty = result?.type === 'session' && result.locks.length === 0 && !result.more;
      if (!isEmpty || result.session?.incarnation !== incarnation) return done();
      const life = this.#life;
      const command = { type: 'leaseRevoke', id, incarnation, ifEmpty: true } as const;
      this.#giveUp = this.#deps.others.command(command, { timeoutMs: TIMEOUT_MS }, () => {
        if (life === this.#life) done();
      });
    });
  }

  #ask(query: Parameters<OtherRanges['query']>[0], told: (result: Answer | undefined) => void): void {
    const life = this.#life;
    this.#giveUp = this.#deps.others.query(query, { timeoutMs: TIMEOUT_MS }, (_error, reply) => {
      if (life === this.#life) told(reply?.result);
    });
  }

  #after(ms: number, work: () => void): void {
    const life = this.#life;
    this.#deps.clock.setTimer(ms, () => {
      if (life === this.#life) work();
    });
  }
}

type Answer = NonNullable<Parameters<Parameters<OtherRanges['query']>[2]>[1]>['result'];
