/**
 * Ends leases that never expire once they have no attachments any more. A lock that never expires has such a lease of
 * its own (docs/decisions/0035), which its client ends when it releases the lock. If the client is gone, the lease
 * would stay for ever after its lock was taken by force. Part of a range's leader.
 *
 * EM1. A lease is ended only if its TTL was changed to never (`endsEmpty` of leases.ts): the client makes that change
 *      when it has the lock, so an empty lease has lost its purpose. A lease that was granted with that TTL may be
 *      waiting for its first key.
 * EM2. After the home has confirmed that it is such a lease, every range is asked for the lease's attachments: held
 *      locks, places in queues, keys. If no range has any, the lease is ended by its incarnation. The end is applied
 *      only if the home still has no attachments, and the lease is still such a lease (LC5 of lease-commands.ts).
 *      Another range answers for the moment at which it is asked: what is attached there between its answer and the end
 *      is deleted with the lease.
 * EM3. A range looks when a lock of its own was taken from the lease by force, and in rounds. In a round the home looks
 *      at leases that have no attachments and never had any elsewhere; a range that refers to a lease looks at those
 *      that have none here (lease-audit.ts). So a later round finishes what a leader leaves undone. A look without an
 *      answer ends nothing.
 * EM4. A range without leases has no timer. The timer begins with the entry that brings the first lease, so each round
 *      follows within one interval, however rarely periodic work visits the range.
 */
import { type Clock, LazyMap, type Timer } from '@remora/base';
import { endsEmpty, type Leases } from '../../state/leases/leases.ts';
import type { OtherRanges } from '../reshape/other-ranges.ts';

export interface LeaseRef {
  readonly id: bigint;
  readonly incarnation: number;
}

export interface EmptyLeasesDeps {
  readonly clock: Clock;
  readonly leases: Pick<Leases, 'all' | 'attached' | 'size'>;
  readonly others: OtherRanges;
  /** The time from one round to the next. */
  readonly intervalMs?: number | undefined;
}

const INTERVAL_MS = 300_000;
const TIMEOUT_MS = 5_000;
/** The pause between two looks, each of which asks all ranges: it bounds their cost. */
const PAUSE_MS = 20;
/** Leases that wait for their look; the next round finds the others. */
const WAITING_MAX = 1_000;

export class EmptyLeases {
  readonly #deps: EmptyLeasesDeps;
  /** By id: the incarnation to look at. */
  readonly #waiting = new LazyMap<bigint, LeaseRef>();
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
    this.applied();
  }

  /** EM4. Called after each entry. */
  applied(): void {
    if (this.#serving && this.#round === undefined && this.#deps.leases.size > 0) this.#rest();
  }

  stop(): void {
    this.#serving = false;
    this.#life++;
    this.#looking = false;
    this.#waiting.clear();
    this.#round?.cancel();
    this.#round = undefined;
    this.#giveUp();
    this.#giveUp = () => {};
  }

  /** The lease may have lost its last attachment. */
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
      this.#round = undefined;
      for (const lease of leases.all()) {
        if (endsEmpty(lease) && lease.spans.length === 0 && !leases.attached.any(lease.id)) this.look(lease);
      }
      this.applied();
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
