import { type Clock, ServiceError, type Timer } from '@remora/base';
import type { Command } from '@remora/protocol';
import type { Lease, Leases } from '../state/leases.ts';

interface Kept {
  readonly incarnation: number;
  /** Of the lease, as the deadline counts it (LK5). */
  change: number;
  deadlineMs: number;
  /** An expiry was proposed: no keep-alive is answered until its outcome (LK3). */
  expiring: boolean;
}

/** Expiries proposed and not decided at a time: more wait for the next sweep, so that they never crowd out requests. */
const EXPIRING_MAX = 1_000;
/** How often deadlines are looked at: the precision of expiry. */
const SWEEP_MS = 100;

/**
 * A leader's watch over the time of leases.
 *
 * LK1. Deadlines run on this leader's monotonic clock and start again in full when it becomes leader (traps 17).
 * LK2. Nothing ends here: expiry is proposed, and names the term and the incarnation.
 * LK3. After proposing the expiry of a lease, no keep-alive of it is acknowledged until the outcome (design §9 ▸).
 * LK4. A lease is said not to exist only when the state says so. A replica that does not keep its time any more, as
 *      leadership was lost between the confirmation of a keep-alive and its answer, only says that it does not lead.
 * LK5. A change of a lease's TTL counts from the next heartbeat on, whose acknowledgement names the TTL that it was given: also
 *      one that cuts short what is left. Who asks for a shorter one counts on no more from asking on (session.ts S5 of the
 *      client).
 */
export class LeaseKeeper {
  readonly #clock: Clock;
  readonly #leases: Leases;
  readonly #expire: (command: Extract<Command, { type: 'leaseExpire' }>, done: (ended: boolean) => void) => void;
  readonly #kept = new Map<bigint, Kept>();
  #term = 0;
  #expiring = 0;
  #timer: Timer | undefined;

  constructor(
    clock: Clock,
    leases: Leases,
    expire: (command: Extract<Command, { type: 'leaseExpire' }>, done: (ended: boolean) => void) => void,
  ) {
    this.#clock = clock;
    this.#leases = leases;
    this.#expire = expire;
  }

  /** LK1. Called once this replica leads and has applied an entry of its own term. */
  start(term: number): void {
    this.#term = term;
    this.#expiring = 0;
    this.#kept.clear();
    for (const lease of this.#leases.all()) this.#keep(lease);
    this.#arm();
  }

  stop(): void {
    this.#term = 0;
    this.#kept.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Leases whose time it keeps. */
  get size(): number {
    return this.#kept.size;
  }

  granted(lease: Lease): void {
    if (this.#term === 0) return;
    this.#keep(lease);
    this.#arm();
  }

  ended(id: bigint): void {
    this.#kept.delete(id);
  }

  /**
   * Renews from `receivedMs` (monotonic, when the keep-alive arrived); called when leadership at or after that moment
   * is confirmed. Returns the lease; throws LEASE_NOT_FOUND, UNAVAILABLE while its expiry is being decided, or
   * NOT_LEADER (LK4).
   */
  renew(id: bigint, incarnation: number, receivedMs: number): Lease {
    const lease = this.#leases.get(id);
    if (lease === undefined || (incarnation !== 0 && incarnation !== lease.incarnation)) {
      throw new ServiceError('LEASE_NOT_FOUND', `lease ${id} does not exist or has expired`);
    }
    const kept = this.#kept.get(id);
    if (kept === undefined) throw new ServiceError('NOT_LEADER', 'this replica does not lead the range any more');
    if (kept.expiring)
      throw new ServiceError('UNAVAILABLE', 'the lease is about to expire; its outcome is being decided');
    const deadlineMs = receivedMs + lease.ttlMs;
    // Heartbeats may be answered in another order than they came in.
    kept.deadlineMs = kept.change === lease.change ? Math.max(kept.deadlineMs, deadlineMs) : deadlineMs;
    kept.change = lease.change;
    return lease;
  }

  /** What is left of a lease, at least 0; undefined when it is not kept here. */
  remainingMs(id: bigint): number | undefined {
    const kept = this.#kept.get(id);
    return kept === undefined ? undefined : Math.max(0, kept.deadlineMs - this.#clock.monotonicMs());
  }

  #keep(lease: Lease): void {
    this.#kept.set(lease.id, {
      incarnation: lease.incarnation,
      change: lease.change,
      deadlineMs: this.#clock.monotonicMs() + lease.ttlMs,
      expiring: false,
    });
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#kept.size === 0) return;
    this.#timer = this.#clock.setTimer(SWEEP_MS, () => {
      this.#timer = undefined;
      this.#sweep();
      this.#arm();
    });
  }

  #sweep(): void {
    const now = this.#clock.monotonicMs();
    const term = this.#term;
    for (const [id, kept] of this.#kept) {
      if (kept.expiring || kept.deadlineMs > now) continue;
      if (this.#expiring >= EXPIRING_MAX) return;
      kept.expiring = true;
      this.#expiring++;
      this.#expire({ type: 'leaseExpire', id, incarnation: kept.incarnation, term }, (ended) => {
        if (term === this.#term) this.#expiring--;
        if (!ended) kept.expiring = false;
      });
    }
  }
}
